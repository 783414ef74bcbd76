import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from ahop.cli import app


@pytest.mark.slow
def test_the_command_line_does_not_import_the_page():
    code = "import sys, ahop.cli; assert not {'gradio', 'ahop.playground'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_its_extra_the_command_names_it_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "gradio", None)
    result = CliRunner().invoke(app, ["playground"])
    assert (result.exit_code, result.output) == (
        2,
        "error: gradio is not installed: pip install 'ahop[playground]'\n",
    )


class Page:
    local_url = "http://127.0.0.1:1234/"
    waited = False

    def block_thread(self):
        self.waited = True


@pytest.mark.parametrize(
    ("asked", "start"),
    [
        ([], ("127.0.0.1", 7860, True)),
        (["--host", "0.0.0.0", "--port", "99", "--no-browser"], ("0.0.0.0", 99, False)),
    ],
)
def test_the_page_is_for_this_computer_alone_unless_asked(asked, start, monkeypatch):
    page, begun = Page(), []

    def start_it(host, port, *, browser):
        begun.append((host, port, browser))
        return page

    # A stand-in where the extra is not installed.
    monkeypatch.setitem(sys.modules, "gradio", sys)
    monkeypatch.setattr("ahop.playground.page.start", start_it)
    result = CliRunner().invoke(app, ["playground", *asked])
    assert result.output == "playground: http://127.0.0.1:1234/ (Ctrl+C stops it)\n"
    assert begun == [start] and page.waited


def test_a_place_where_nobody_can_listen_is_refused_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "gradio", sys)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["playground", "--port", str(port)])
    assert result.exit_code == 2
    assert result.output == f"error: the page cannot be at 127.0.0.1, port {port}: Address already in use\n"
    result = CliRunner().invoke(app, ["playground", "--port", "0"])
    assert (result.exit_code, result.output) == (2, "error: port must be between 1 and 65535, got 0\n")
