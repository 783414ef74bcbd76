import asyncio
import json
import types

import pytest

from ahop.playground import sent
from ahop.playground.sent import File, Shelf, UploadError


def named(*pairs):
    return json.dumps([{"name": name, "key": key} for name, key in pairs])


def test_files_arrive_as_they_were():
    text = named(("a.npz", sent.SHELF.put(b"12\x00")), ("b", sent.SHELF.put(b"")))
    assert sent.files(text, most=2) == [File("a.npz", b"12\x00"), File("b", b"")]
    assert sent.files(text, most=2) == sent.files(text, most=2), "what was sent can be asked for again"


@pytest.mark.parametrize(
    "text",
    [
        *("", "no", "[]", "{}", "3", '[{"name": "a"}]', '[{"name": "a", "key": "%"}]', "[null]"),
        *("[" * 10**5, '[{"name": "a", "key": ["é"]}]'),
    ],
    ids=lambda text: text[:40],
)
def test_what_names_no_files_is_refused_in_a_sentence(text):
    with pytest.raises(UploadError, match=r"\.$"):
        sent.files(text)


def test_a_file_that_is_too_large_and_files_that_are_too_many_are_refused():
    with pytest.raises(UploadError, match=r"^big is too large: at most 8 MB are read\.$"):
        sent.files(named(("big", None)))
    with pytest.raises(UploadError, match="big is too large"):
        sent.files(named(("big", sent.SHELF.put(bytes(8 * 2**20 + 1)))))
    with pytest.raises(UploadError, match="Choose one file, not 2"):
        sent.files(named(("a", ""), ("b", "")))


def test_what_came_first_goes_where_there_is_no_room():
    shelf = Shelf(room=5)
    first, second, third = (shelf.put(content) for content in (b"12", b"345", b"6"))
    assert [shelf.get(key) for key in (first, second, third)] == [None, b"345", b"6"]
    assert shelf.get(shelf.put(b"too long")) is None and shelf.get(third) is None


def asked(kind, *parts):
    async def stream():
        for part in parts:
            yield part

    return types.SimpleNamespace(headers={"content-type": kind}, stream=stream)


def test_the_server_keeps_what_its_own_page_sends_and_no_more_than_it_says(monkeypatch):
    pytest.importorskip("starlette")
    answer = asyncio.run(sent.keep(asked(sent.KIND, b"12", b"3")))
    assert answer.status_code == 200 and sent.SHELF.get(answer.body.decode()) == b"123"
    # What a form of another site could send.
    assert asyncio.run(sent.keep(asked("text/plain", b"12"))).status_code == 415
    monkeypatch.setattr(sent, "MOST_TABLE_BYTES", 2)
    assert asyncio.run(sent.keep(asked(sent.KIND, b"12", b"3"))).status_code == 413
