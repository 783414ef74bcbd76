"""What an experiment leaves behind: a JSON file with its configuration, versions and figures."""

from __future__ import annotations

import importlib
import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from numbers import Integral
from pathlib import Path
from typing import Any

import torch

from ahop._files import require_writable, write_atomically
from ahop._version import __version__
from ahop_paper import provenance

# Some libraries take whole numbers of 31 bits, and seeds are counted up from the first.
MOST_SEED = 10**9
# What tells the parts of a run apart.
_PART_KEYS = ("data", "check", "world", "model", "way", "split", "seed", "trial")
# Of that, what makes parts repetitions of each other.
_REPETITION_KEYS = ("split", "seed", "trial")
# The fingerprint of the code that makes a row, from what the row says of itself.
CodeOf = Callable[[dict[str, Any]], str]


def require_seed(seed: int) -> None:
    """Refuse a seed that not every library can take."""
    if not isinstance(seed, Integral) or not 0 <= seed <= MOST_SEED:
        raise ValueError(f"seed must be an integer between 0 and {MOST_SEED}, got {seed!r}")


def stamp(name: str, config: dict[str, Any], file: str, libraries: Sequence[str] = ()) -> dict[str, Any]:
    """The head of a report: which experiment, how it was set up, with which versions, where, when and by which code.

    To be called before the work begins. A run that was resumed has several sittings. A set-up that says of
    itself that it is ``quick`` is marked as such, for nobody to take its figures for results.

    Args:
        name: What the experiment is called.
        config: Its settings.
        file: Where its code lies: ``__file__``.
        libraries: Those of others whose version matters.
    """
    versions = {"ahop": __version__, "torch": torch.__version__, "python": platform.python_version()}
    versions |= {library: importlib.import_module(library).__version__ for library in libraries}
    config = dict(config)
    quick = config.pop("quick", False)
    device = torch.device(config.get("device", "cpu"))
    machine = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{os.cpu_count()} cores"
    began = datetime.now(timezone.utc).isoformat(timespec="seconds")
    code = {**provenance.commit(), "code": provenance.fingerprint(file)}
    # A run may go on where versions are others; those of its last sitting stand at the head, too.
    sitting = {"machine": machine, "began": began, **code, "versions": versions}
    return {"experiment": name, "quick": quick, "config": config, "versions": versions, "sittings": [sitting]}


def resume(
    path: str | os.PathLike[str] | None, head: dict[str, Any], free: Sequence[str], code: CodeOf | None = None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What an earlier run of the same experiment has already done, if it was set up alike but for what is ``free``.

    What was done by other code is refused: a row stands for the code of now. ``code`` says what that is for a row; one
    that does not say by which it was made counts by the sitting that it was made in.

    Returns:
        The head with the sittings before this one, and what was done in them.
    """
    if path is None or not Path(path).exists():
        return head, []
    with reading(path):
        before = json.loads(Path(path).read_text())
        done, config, experiment = [dict(one) for one in before["done"]], dict(before["config"]), before["experiment"]
        versions = {**before.get("versions", {}), **head["versions"]}
        sittings = [*before.get("sittings", []), *head["sittings"]]
        other = by_other_code(before, head["sittings"][-1]["code"], code)
    # As it would be read back: JSON has no tuples.
    now = json.loads(json.dumps(head))
    alike = experiment == now["experiment"] and all(
        config.get(key) == value for key, value in now["config"].items() if key not in free
    )
    if not alike:
        raise ValueError(f"{path} holds a run with different settings; choose another file")
    if other:
        at = ", ".join(dict.fromkeys(provenance.at(sitting) for _, sitting in other))
        old = [one for one, _ in other if code is not None and "code" not in one]
        made = f", of which {len(old)} were made before rows had fingerprints" if old else ""
        raise ValueError(
            f"{path} has {len(other)} parts that other code made, commit {at}: {_names([one for one, _ in other])}"
            f"{made}; the code is now that of commit {provenance.at(head['sittings'][-1])}."
            " Choose another file (--join, where a command has it, makes one report of several), delete this one, or"
            " go on with it at its own commit"
        )
    return {**head, "versions": versions, "sittings": sittings}, done


def by_other_code(
    report: dict[str, Any], whole: str, code: CodeOf | None = None
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """What was not made by the code of now, each with its sitting; reports of old do not say by which.

    Args:
        report: The report as it was read.
        whole: The fingerprint of the whole experiment, which rows without one of their own count by.
        code: That of a row.
    """
    sittings = report.get("sittings", [])
    if "done" in report:
        made = [(dict(one), sittings[one["sitting"]] if "sitting" in one else {}) for one in report["done"]]
    else:
        made = [({}, sitting) for sitting in sittings[-1:] or [{}]]
    own = None if code is None else _once(code)
    return [
        (one, sitting)
        for one, sitting in made
        if not (_is_of_now(one, own) if own is not None and "code" in one else sitting.get("code") == whole)
    ]


def _once(code: CodeOf) -> CodeOf:
    """The same, asked once for all repetitions of a row."""
    known: dict[str, str] = {}

    def asked(one: dict[str, Any]) -> str:
        if (cell := _cell(one)) not in known:
            known[cell] = code(one)
        return known[cell]

    return asked


def _is_of_now(one: dict[str, Any], code: CodeOf) -> bool:
    try:
        return bool(one["code"] == code(one))
    except KeyError:
        # Its model or its data are gone.
        return False


def _cell(one: dict[str, Any]) -> str:
    """What a part shares with its repetitions; a trial, a choice and a test of a model are told apart by their keys."""
    keys = sorted(key for key in one if key not in ("sitting", "code"))
    return repr(([one.get(key) for key in _PART_KEYS if key not in _REPETITION_KEYS], keys))


def _names(parts: Sequence[dict[str, Any]], most: int = 3) -> str:
    names = [" ".join(str(one[key]) for key in _PART_KEYS if one.get(key) is not None) for one in parts[:most]]
    return ", ".join(names) + (f" and {len(parts) - most} more" if len(parts) > most else "")


def join(
    paths: Sequence[str | os.PathLike[str]], experiment: str, config: dict[str, Any], free: Sequence[str]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What several machines did of one experiment, each into a file of its own, as if one run had done it all.

    What more than one file has, since they went on from the same beginning, is taken once. Repetitions of a row must be
    the work of one code, which need not be that of now; so must all rows that do not say themselves by which.

    Args:
        paths: Files of runs that can be resumed.
        experiment: What it is called.
        config: The settings of the whole.
        free: Settings in which the files may differ from it.

    Returns:
        A head with all sittings, and what was done in them.
    """
    now = json.loads(json.dumps({key: value for key, value in config.items() if key != "quick"}))
    versions: dict[str, str] = {}
    sittings: list[dict[str, Any]] = []
    parts: dict[str, tuple[dict[str, Any], Any]] = {}
    for path in paths:
        with reading(path):
            report = json.loads(Path(path).read_text())
            done, own = [dict(one) for one in report["done"]], [dict(one) for one in report["sittings"]]
            settings, name, quick = dict(report["config"]), report["experiment"], report["quick"]
            versions |= report["versions"]
            made = [own[one["sitting"]] for one in done]
        # As the printed command has to say it: a processor is what every machine has.
        if settings.get("device", "cpu") != "cpu":
            now["device"] = settings["device"]
        kept = {key: value for key, value in now.items() if key not in free}
        if name != experiment or quick or {key: settings.get(key) for key in kept} != kept:
            raise ValueError(f"{path} holds a run with different settings from those to join")
        sittings += [sitting for sitting in own if sitting not in sittings]
        for one, sitting in zip(done, made, strict=True):
            one["sitting"] = sittings.index(sitting)
            # A trial, a choice and a test of the same model are told apart by what they hold.
            which = repr(([one.get(key) for key in _PART_KEYS], sorted(one)))
            before, other = parts.setdefault(which, (one, path))
            # Whenever it was done.
            if {**before, "sitting": None} != {**one, "sitting": None}:
                raise ValueError(f"{other} and {path} have different figures for {_names([one])}; leave one out")
    done = [one for one, _ in parts.values()]
    codes: dict[str, set[str | None]] = {}
    for one in done:
        # Rows of old count by their sitting, and together.
        which, made_by = (_cell(one), one["code"]) if "code" in one else ("", sittings[one["sitting"]].get("code"))
        codes.setdefault(which, set()).add(made_by)
    if any(len(known) > 1 or None in known for known in codes.values()):
        at = ", ".join(dict.fromkeys(provenance.at(sittings[one["sitting"]]) for one in done))
        raise ValueError(f"files to join must come from the same code; got commits {at}")
    return {"experiment": experiment, "quick": False, "config": now, "versions": versions, "sittings": sittings}, done


@contextmanager
def reading(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """An error in the block means that the file is no report, or was altered."""
    try:
        yield
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no report of a run that can be resumed; choose another file") from error


class Journal:
    """A run that can be resumed: what was done so far, in a file that is written whenever a part is ready.

    Args:
        out: The file; None keeps nothing.
        head: As :func:`stamp` makes it.
        free: Settings that may differ from those of the sittings before.
        summary: The whole report from a head and all that was done.
        code: The fingerprint of the code that makes a row, which is kept with it.
    """

    def __init__(
        self,
        out: str | os.PathLike[str] | None,
        head: dict[str, Any],
        free: Sequence[str],
        summary: Callable[[dict[str, Any], list[dict[str, Any]]], dict[str, Any]],
        code: CodeOf | None = None,
    ) -> None:
        if out is not None:
            # Before the work, not after it.
            require_writable(out)
        self.out, self.summary, self.code = out, summary, None if code is None else _once(code)
        self.head, self.done = resume(out, head, free, code)
        with reading(out):
            self.report()

    def report(self) -> dict[str, Any]:
        return self.summary(self.head, self.done)

    def add(self, found: Iterable[dict[str, Any]], instead_of: Sequence[dict[str, Any]] = ()) -> None:
        """Keep what was found, with the number of the sitting and its code; it may stand for what was kept before."""
        self.done = [one for one in self.done if one not in instead_of]
        for one in found:
            own = {} if self.code is None else {"code": self.code(one)}
            self.done.append({**one, "sitting": len(self.head["sittings"]) - 1, **own})
        if self.out:
            write(self.report(), self.out)


def write(report: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the report, whole or not at all, with the seconds that this sitting took so far."""
    *before, sitting = report["sittings"]
    passed = datetime.now(timezone.utc) - datetime.fromisoformat(sitting["began"])
    write_as_is({**report, "sittings": [*before, {**sitting, "seconds": round(passed.total_seconds())}]}, path)


def write_as_is(report: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a report that nobody works at any more."""
    write_atomically(json.dumps(report, indent=1) + "\n", path)
