"""An index on disk: opened without being read, since its large files are mapped into memory.

A folder has a page, ``index.json``, that names two safetensors files: a large one with patterns and codes, and a small
one with what was learned. The page is written last. So a crash leaves what was there before, and of several that save
to one folder the last one wins.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import safetensors
import torch
from torch import Tensor

from ahop._component import family, from_plain, single, to_plain
from ahop._files import OLD, atomic_file, digest, own_folder, write_atomically, write_tensors
from ahop._version import __version__
from ahop.index.host import Host
from ahop.index.products import Products
from ahop.index.rough import Engine, Rough
from ahop.index.scan import Scan
from ahop.similarity.codes import Steps

PAGE = "index.json"
FORMAT = "1"
_STORED = ("patterns", "values", "prior")
# The files of any index, and those that are being written.
_TENSORS = r"(large|small)-[0-9a-f]{16}\.safetensors"
_OWN_FILES = re.compile(rf"{_TENSORS}|\.{_TENSORS}-[0-9a-f]+\.part")


def save(memory: Host, engine: Engine, folder: str | os.PathLike[str]) -> None:
    """Write a memory and its codes into ``folder``, which is made if need be; the one that it lies in must be there.

    Args:
        memory: What is indexed.
        engine: Its codes.
        folder: Where to write.
    """
    arguments = {key: to_plain(value) for key, value in memory.arguments().items() if key not in _STORED}
    small = {f"memory.{key}": value for key, value in memory.state_dict().items() if key not in _STORED}
    for number, (_, codes) in enumerate(engine.rough.parts):
        small |= {f"codes.{number}.{key}": value for key, value in codes.state_dict().items()}
    large = {key: value for key in _STORED if (value := getattr(memory, key)) is not None}
    own, shapes = engine.tensors()
    small |= {f"engine.{key}": value for key, value in shapes.items()}
    large |= {f"engine.{key}": value for key, value in own.items()}
    recipe = json.dumps(
        {
            "memory": {"name": memory.name, "arguments": arguments},
            "parts": [{"log_share": share, "codes": to_plain(codes)} for share, codes in engine.rough.parts],
            "beta": engine.rough.beta,
            "engine": type(engine).__name__,
        },
        sort_keys=True,
    )
    token, place = secrets.token_hex(8), own_folder(folder)
    page: dict[str, Any] = {"format": FORMAT, "ahop": __version__, "recipe": recipe}
    for name, tensors in (("large", large), ("small", small)):
        still = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
        path = place / f"{name}-{token}.safetensors"
        with atomic_file(path) as file:
            write_tensors(still, file)
        page[name] = {"file": path.name, "bytes": path.stat().st_size, "sha256": digest(recipe, still)}
    before = _named(place) | {page["large"]["file"], page["small"]["file"]}
    write_atomically(json.dumps(page, indent=1) + "\n", place / PAGE)
    # Another may have saved meanwhile: the last one wins.
    _tidy(place, before)


def remove(folder: str | os.PathLike[str]) -> None:
    """Take away the index that is in ``folder``, if there is one, and no file of others."""
    place = Path(folder)
    before = _named(place)
    (place / PAGE).unlink(missing_ok=True)
    _tidy(place, before)


def _named(place: Path) -> set[str]:
    """The files of the index that is there, if any."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        page = json.loads((place / PAGE).read_text())
        return {page["large"]["file"], page["small"]["file"]}
    return set()


def _tidy(place: Path, before: set[str]) -> None:
    """Remove files that were named before and are not now, and those that killed writers left long ago."""
    # Another process may have one open, or have removed it.
    with suppress(OSError):
        page, named = place / PAGE, _named(place)
        now = page.stat().st_mtime if page.exists() else 0.0
        for path in list(place.iterdir()):
            with suppress(OSError):
                ours = _OWN_FILES.fullmatch(path.name) and path.name not in named
                if ours and (path.name in before or now - path.stat().st_mtime > OLD):
                    path.unlink()


def read(folder: str | os.PathLike[str]) -> tuple[Host, Engine]:
    """The memory that was saved in ``folder`` and its codes, mapped into memory."""
    place = Path(folder)
    page, small, large = _read(place)
    try:
        recipe = json.loads(page["recipe"])
        memory = _memory(recipe["memory"], small, large)
        parts = []
        for number, part in enumerate(recipe["parts"]):
            codes = from_plain(part["codes"])
            codes.load_state_dict(_under(small, f"codes.{number}."))
            parts.append((part["log_share"], codes))
        rough = Rough(parts, recipe["beta"])
        makers: dict[str, Callable[..., Engine]] = {"Scan": _scan, "Products": _products}
        engine = makers[recipe["engine"]](rough, _under(large, "engine."), _under(small, "engine."))
    except Exception as error:  # What a recipe asks for may fail in any way.
        raise ValueError(
            f"{place} cannot be loaded as an index, written by ahop {page.get('ahop')}: {error}"
        ) from error
    return memory, engine


def verify(folder: str | os.PathLike[str]) -> None:
    """Read all of a saved index, and refuse it if anything was altered; opening it looks at its small part alone."""
    place = Path(folder)
    page, _, large = _read(place)
    if digest(page["recipe"], large) != page["large"]["sha256"]:
        raise ValueError(f"{place / page['large']['file']} is damaged: its contents do not match their checksum")


def _read(place: Path) -> tuple[dict[str, Any], dict[str, Tensor], dict[str, Tensor]]:
    """The page and the tensors of both files, of one index even where others are saved meanwhile."""
    while True:
        before = _named(place)
        try:
            return _read_once(place)
        except (FileNotFoundError, ValueError):
            # A file that goes away while it is being opened is an error of many kinds, by who opens it.
            if _named(place) in (set(), before):
                raise


def _read_once(place: Path) -> tuple[dict[str, Any], dict[str, Tensor], dict[str, Tensor]]:
    try:
        page = json.loads((place / PAGE).read_text())
        if page["format"] != FORMAT:
            raise ValueError(f"it has format {page['format']!r}, written by ahop {page.get('ahop')}")
        found = []
        for name in ("small", "large"):
            path, size = place / page[name]["file"], page[name]["bytes"]
            if path.parent != place or path.stat().st_size != size:
                raise ValueError(f"{path.name} must be a file of {size} bytes beside it")
            with safetensors.safe_open(path, "pt") as file:
                found.append({key: file.get_tensor(key) for key in file.keys()})  # noqa: SIM118
        checksums = [page[name]["sha256"] for name in ("small", "large")]
        intact = digest(page["recipe"], found[0]) == checksums[0]
    except FileNotFoundError as error:
        raise FileNotFoundError(f"folder {str(place)!r} holds no complete index: {error}") from error
    except Exception as error:  # Safetensors and JSON have errors of many kinds.
        raise ValueError(f"{place / PAGE} is damaged: {' '.join(str(error).split())}") from error
    if not intact:
        raise ValueError(f"{place / page['small']['file']} is damaged: its contents do not match their checksum")
    return page, found[0], found[1]


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}


def _memory(recipe: dict[str, Any], small: dict[str, Tensor], large: dict[str, Tensor]) -> Any:
    """The memory, made around one pattern: its own would be copied and looked at."""
    arguments = {key: from_plain(value) for key, value in recipe["arguments"].items()}
    one = {key: large[key][:1] for key in _STORED if key in large and key != "prior"}
    prior = torch.ones(1) if "prior" in large else None
    memory = family("memory").named(recipe["name"])(**one, prior=prior, **arguments)
    memory.load_state_dict(_under(small, "memory."), strict=False)
    for key in _STORED:
        if key in large:
            setattr(memory, key, large[key])
    return memory


def _scan(rough: Rough, large: dict[str, Tensor], small: dict[str, Tensor]) -> Scan:
    scan = Scan(rough, Steps(small["values"], small["edges"]), small.get("priors"))
    scan.packed = large["packed"].numpy()
    scan.sample = scan.sample.holding(*(small[key] for key in ("places", "codes", "weighed")))
    return scan


def _products(rough: Rough, large: dict[str, Tensor], small: dict[str, Tensor]) -> Products:
    products = Products(rough, torch.device("cpu"))
    products.codes = [single(large[f"{number}"]) for number in range(len(rough.parts))]
    return products
