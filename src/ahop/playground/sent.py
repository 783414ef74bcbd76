"""Files that the page sends: kept in memory, the oldest only as long as there is room."""

from __future__ import annotations

import json
import secrets
import threading
from typing import Any, NamedTuple

from ahop._extras import require

# Of a picture or a list of pairs, and of a table.
MOST_BYTES, MOST_TABLE_BYTES = 8 * 2**20, 256 * 2**20
# Where the page sends them, and how: a kind that no form of another site can send.
ADDRESS, KIND = "kept", "application/octet-stream"


class UploadError(ValueError):
    """A file that cannot be used, and why, in a sentence for the page."""


class File(NamedTuple):
    """A file as it came: its name, and what is in it."""

    name: str
    content: bytes


class Shelf:
    """What was sent, by a key that nobody can guess.

    Args:
        room: Bytes in all; where more comes, what came first goes.

    Example:
        >>> shelf = Shelf(room=10)
        >>> first, second = shelf.put(b"12345678"), shelf.put(b"abcd")
        >>> shelf.get(first), shelf.get(second)
        (None, b'abcd')
    """

    def __init__(self, room: int):
        self.room = room
        self._kept: dict[str, bytes] = {}
        self._turn = threading.Lock()

    def put(self, content: bytes) -> str:
        """Keep it; returns its key."""
        key = secrets.token_hex(16)
        with self._turn:
            self._kept[key] = content
            while sum(map(len, self._kept.values())) > self.room:
                del self._kept[next(iter(self._kept))]
        return key

    def get(self, key: Any) -> bytes | None:
        """What was kept; None where it is no longer, or never was."""
        with self._turn:
            return self._kept.get(key) if isinstance(key, str) else None


# Two tables and a few small files.
SHELF = Shelf(room=2 * MOST_TABLE_BYTES + 64 * MOST_BYTES)


def files(text: str, most: int = 1, bytes: int = MOST_BYTES) -> list[File]:
    """The files that the page names, which it has sent before.

    Args:
        text: JSON, ``[{"name": ..., "key": ...}, ...]``; a key of null is that of a file too large to send.
        most: How many files are taken.
        bytes: How long each may be.
    """
    try:
        pairs = [(str(one["name"]), one["key"]) for one in json.loads(text)]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UploadError("The page sent no files that can be read.") from error
    if not 1 <= len(pairs) <= most:
        raise UploadError(
            f"Choose one file, not {len(pairs)}." if most == 1 else f"Choose 1 to {most} files, not {len(pairs)}."
        )
    found = []
    for name, key in pairs:
        content = SHELF.get(key)
        if key is None or (content is not None and len(content) > bytes):
            raise UploadError(f"{name} is too large: at most {bytes // 2**20} MB are read.")
        if content is None:
            raise UploadError(f"{name} is not here, or no longer. Please choose it again.")
        found.append(File(name, content))
    return found


async def keep(request: Any) -> Any:
    """What the server answers to a file that is sent: its key, or why it is not kept."""
    if request.headers.get("content-type") != KIND:
        return _answer(f"a file comes as {KIND}", 415)
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > MOST_TABLE_BYTES:
            return _answer(f"at most {MOST_TABLE_BYTES:,} bytes are kept", 413)
    return _answer(SHELF.put(bytes(content)))


def _answer(text: str, status: int = 200) -> Any:
    # It comes with Gradio.
    require("starlette", extra="playground")
    from starlette.responses import PlainTextResponse

    return PlainTextResponse(text, status)
