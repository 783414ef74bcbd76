"""The page in a real browser: every part is used, in both widths, light and dark."""

import io
import os
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.slow
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SCREENS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
# For what has to be learned on a busy machine.
PATIENCE = 120_000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a page that another process serves, from a folder and with a folder for files of its own."""
    if BROWSER is None:
        pytest.skip("the playground's page was NOT tested: there is no browser here (Debian: apt-get install chromium)")
    for library in ("gradio", "playwright"):
        pytest.importorskip(library, reason=f"the playground's page was NOT tested: {library} is not installed")
    folder = tmp_path_factory.mktemp("playground")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = "from ahop.cli import app; app()"
    serving = subprocess.Popen(
        [sys.executable, "-c", command, "playground", "--no-browser", "--port", str(port)],
        cwd=folder,
        env={**os.environ, "GRADIO_TEMP_DIR": str(folder / "files")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with serving as process:
        try:
            said = process.stdout.readline()
            assert said == f"playground: http://127.0.0.1:{port}/ (Ctrl+C stops it)\n"
            yield f"http://127.0.0.1:{port}/"
            written = [path for path in folder.rglob("*") if path.is_file()]
            assert not written, "what was put into the page was written to disk"
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def chromium(server):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # Chromium's own sandbox does not work for root, whom tests often run as.
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.fixture(params=SCREENS, ids=[f"{width}-{scheme}" for width, scheme in SCREENS])
def page(request, chromium, server):
    """The page on a screen; what it complains of and whom else it asks is looked at in the end."""
    width, scheme = request.param
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    complaints, strangers = [], []
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request", lambda one: None if one.url.startswith((server, "data:", "blob:")) else strangers.append(one.url)
    )
    page.set_default_timeout(PATIENCE)
    page.goto(server)
    page.wait_for_selector(".picker button")
    yield page
    looked_at(page, width, scheme)
    text = page.inner_text("body")
    context.close()
    assert "Traceback" not in text
    assert complaints == [] and strangers == []


def looked_at(page, width, scheme):
    """The whole page as a picture: not blank, as dark as was asked for, and no wider than the screen."""
    picture = np.asarray(Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("L"), float)
    assert page.evaluate("document.documentElement.scrollWidth") == picture.shape[1] == width
    assert picture.std() > 10 and len(np.unique(picture)) > 50
    assert (np.median(picture) < 100) == (scheme == "dark")


def source(page, chosen):
    return page.locator(chosen).first.get_attribute("src")


def test_a_damaged_picture_is_brought_back(page):
    preview = 'img[alt$="damaged"]'
    before = source(page, preview)
    asked = []
    page.on("request", lambda one: asked.append(one.url) if "queue/join" in one.url else None)
    canvas = page.locator(".painter canvas")
    # A brush is pressed as soon as the page listens; hovering waits until the picture stands still.
    page.wait_for_selector('.painter [data-shade][aria-pressed="true"]')
    canvas.hover(position={"x": 20, "y": 40})
    page.mouse.down()
    canvas.hover(position={"x": 120, "y": 60})
    with page.expect_request("**/queue/join*"):
        page.mouse.up()
    page.wait_for_function("([chosen, before]) => document.querySelector(chosen).src !== before", arg=[preview, before])
    page.get_by_role("button", name="clean").click()
    page.wait_for_function("([chosen, before]) => document.querySelector(chosen).src === before", arg=[preview, before])
    # Gradio may lose an answer where two questions are under way at a time.
    assert len(asked) == 2, "a stroke or a click asks the server once"

    page.get_by_role("button", name="Bring it back").click()
    page.wait_for_function("document.querySelectorAll('#recall-cards [data-memory]').length === 7")
    page.wait_for_selector("#recall-film svg")
    for card in page.locator("#recall-cards .card").all():
        assert card.locator("li").count() == 5 and "first choice is" in card.inner_text()
    page.get_by_role("radio", name="b-hop", exact=True).check()
    page.wait_for_selector('#recall-film img[alt="film of b-hop"]')


def test_a_slider_changes_what_the_memories_see_and_old_answers_go(page):
    preview = 'img[alt$="damaged"]'
    page.get_by_label("faces").first.check()
    page.wait_for_function("document.querySelectorAll('.picker')[0].children.length === 48")
    page.locator(".picker button").nth(5).click()
    page.wait_for_function("document.querySelectorAll('.picker button')[5].ariaPressed === 'true'")
    page.wait_for_function(
        "document.querySelector('img[alt$=damaged]').alt.startsWith('no hair, awake, amazed, glasses')"
    )
    before = source(page, preview)
    page.get_by_label("number input for Light").first.fill("0.8")
    page.keyboard.press("Enter")
    page.wait_for_function("([chosen, before]) => document.querySelector(chosen).src !== before", arg=[preview, before])
    assert page.locator("#recall-cards .card").count() == 0


def png(shade):
    file = io.BytesIO()
    Image.new("RGB", (40, 30), (shade, shade, 90)).save(file, "png")
    return {"name": f"{shade}.png", "mimeType": "image/png", "buffer": file.getvalue()}


def test_pictures_of_your_own_are_stored_and_bad_ones_are_refused(page):
    page.get_by_label("yours").first.check()
    page.get_by_text("No pictures of yours yet").wait_for()
    drop = page.locator('.drop input[accept="image/*"]')
    drop.set_input_files([png(0), {"name": "bad.png", "mimeType": "image/png", "buffer": b"no picture"}])
    page.get_by_role("alert").get_by_text("bad.png is not a picture").wait_for()
    drop.set_input_files([png(10), png(120), png(250)])
    page.wait_for_function("document.querySelectorAll('.picker')[0].children.length === 3")
    page.wait_for_function("document.querySelector('img[alt$=damaged]').alt === '10.png, damaged'")
    assert page.get_by_role("alert").count() == 0


def test_accuracy_rises_beside_the_ceiling(page):
    page.get_by_role("tab", name="Learn").click()
    page.get_by_label("number input for Examples to show").fill("20")
    page.keyboard.press("Enter")
    page.get_by_label("Say which picture").uncheck()
    page.locator("#learn-go").click()
    page.wait_for_selector("#learn-told .words li")
    page.wait_for_function("document.querySelectorAll('#learn-curve circle.b-hop').length === 2")
    assert "b-hop, no labels" in page.locator("#learn-curve").inner_text()


def test_two_pictures_and_a_query_leave_footprints(page):
    page.get_by_role("tab", name="Footprint").click()
    page.locator("#footprint-go").click()
    page.wait_for_selector("#footprint-shown svg")
    shown = page.locator("#footprint-shown")
    assert shown.locator("svg").count() == 3
    assert "B is more alike, which is wrong" in shown.inner_text() and "A, the right one" in shown.inner_text()


def test_basins_are_drawn_for_the_memory_and_the_temperature_that_were_chosen(page):
    page.get_by_role("tab", name="Energy").click()
    page.locator("#energy-go").click()
    shown = page.locator("#energy-shown")
    shown.get_by_text("5 wells; 5 of 6 patterns").wait_for()
    beta = page.get_by_label("number input for Inverse temperature")
    beta.fill("2")
    page.keyboard.press("Enter")
    page.locator("#energy-go").click()
    shown.get_by_text("1 well; 0 of 6 patterns").wait_for()
    page.get_by_role("radio", name="classical", exact=True).check()
    page.wait_for_selector('#energy-shown svg[aria-label="energy of classical"]')
    assert "From 100 % of the plane" in shown.inner_text() and shown.locator("circle").count() == 6
    beta.wait_for(state="hidden")


def test_tables_of_yours_are_matched_and_bad_ones_are_refused(page, tmp_path):
    page.get_by_role("tab", name="Your data").click()
    stored, incoming, pairs = (
        page.locator(f'.drop input[aria-label^="{name}"]') for name in ("Stored", "Inc", "Known")
    )
    go, shown = page.locator("#yours-go"), page.locator("#yours-shown")
    go.click()
    page.get_by_role("alert").get_by_text("Two tables are needed").wait_for()
    stored.set_input_files({"name": "x.npz", "mimeType": "application/zip", "buffer": b"PK nothing"})
    incoming.set_input_files({"name": "y.csv", "mimeType": "text/csv", "buffer": b"${1},<b>\n1,2\n3\n"})
    page.locator(".drop").get_by_text("x.npz").wait_for()
    go.click()
    page.get_by_role("alert").get_by_text("x.npz is not an NPZ file").wait_for()

    draw, file = np.random.default_rng(0), io.BytesIO()
    patterns, origins = draw.normal(size=(12, 4)), draw.integers(12, size=60)
    np.savez(file, patterns=patterns)
    # Mended, and under the name of the bad one.
    stored.set_input_files({"name": "x.npz", "mimeType": "application/zip", "buffer": file.getvalue()})
    go.click()
    page.get_by_role("alert").get_by_text("y.csv, line 3 must have 2 cells").wait_for()
    rows = "\n".join(";".join(f"{value:.4f}" for value in row) for row in patterns[origins] + 0.5).replace(".", ",")
    incoming.set_input_files({"name": "y.csv", "mimeType": "text/csv", "buffer": rows.encode()})
    known = "\n".join(f"{row},{origin}" for row, origin in enumerate(origins[:50]))
    pairs.set_input_files({"name": "known.csv", "mimeType": "text/csv", "buffer": known.encode()})
    go.click()
    page.wait_for_selector("#yours-shown .film .models")
    assert shown.locator(".film tbody tr").count() == 9 and "ridge regression" in shown.inner_text()
    assert "ahop match x.npz y.csv --pairs known.csv" in shown.inner_text()
    with page.expect_download() as saving:
        page.get_by_role("link", name="matches.csv").click()
    saving.value.save_as(tmp_path / "matches.csv")
    assert len((tmp_path / "matches.csv").read_text().splitlines()) == 61


def test_tables_as_large_as_the_page_says_are_sent_and_read(chromium, server, tmp_path):
    page = chromium.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(server)
    page.get_by_role("tab", name="Your data").click()
    np.save(tmp_path / "x.npy", np.zeros((20_000, 1_000), np.float32))
    for name, file in (("Stored", "x.npy"), ("Incoming", "x.npy")):
        page.locator(f'.drop input[aria-label^="{name}"]').set_input_files(tmp_path / file)
        page.locator(f'.drop:has(input[aria-label^="{name}"])').get_by_text("x.npy").wait_for()
    page.locator("#yours-go").click()
    # Both were read: nothing but constant columns is what is wrong with them.
    page.get_by_role("alert").get_by_text("constant").wait_for()
    page.close()


def test_the_page_is_there_for_this_computer_alone(server):
    port = int(server.rstrip("/").rpartition(":")[2])
    # Another address of the same computer: it would answer to a server that listens everywhere.
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.2", port), timeout=5)


def test_no_file_can_be_left_on_the_server(server):
    body = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n1234\r\n--x--\r\n'
    head = {"Content-Type": "multipart/form-data; boundary=x"}
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(urllib.request.Request(f"{server}gradio_api/upload", body, head))
