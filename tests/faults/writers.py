"""Processes that save without end and are killed on the way: ``python writers.py FOLDER KILLS``."""

import functools
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

import ahop
from ahop_paper import report

COUNT = 9
REPORT, INDEX = "report.json", "index"


@functools.cache
def head():
    """Of every report, and made once: it asks for the commit, and the time is for writing."""
    return report.stamp("some", {}, __file__)


def memory(kind):
    """The memories differ in all that a file holds: size, every value, settings."""
    return ahop.ModernHopfield(torch.full((500 + kind, 64), float(kind)), beta=1.0 + kind)


@functools.cache
def index(kind):
    """One of a memory that differs from others as well."""
    return ahop.BayesianHopfield(torch.full((300 + kind, 4), float(kind)), values=[[kind]] * (300 + kind)).index()


def is_whole_index(opened):
    kind, patterns = int(opened.memory.patterns[0, 0]), opened.memory.patterns
    whole = len(opened.engine) == len(patterns) == 300 + kind and bool((patterns == kind).all())
    return whole and bool((opened.memory.values == kind).all())


def is_whole(loaded):
    """Whether this is one of them, all of it."""
    kind = int(loaded.patterns[0, 0])
    wanted = memory(kind)
    return torch.equal(loaded.patterns, wanted.patterns) and torch.equal(loaded.separation.beta, wanted.separation.beta)


def save(folder, kind):
    memory(kind).save(folder)
    index(kind).save(folder / INDEX)
    report.write({**head(), "done": [{"kind": kind}] * 500 * (kind + 1)}, folder / REPORT)


def _writer(folder, kind):
    """The process of one writer, which ends only when it is killed."""
    child = os.fork()
    if not child:
        # Even where nobody is left to do it.
        signal.alarm(120)
    while not child:
        save(folder, kind)
    return child


def main(folder, kills):
    for kind in range(COUNT):
        # Before processes part: libraries that have threads of their own do not like to be parted.
        index(kind)
    head()
    # As in two containers.
    os.getpid = lambda: 1
    print("ready", flush=True)
    draw = random.Random(0)
    living = [_writer(folder, 0), _writer(folder, 1)]
    for turn in range(kills):
        time.sleep(draw.uniform(0.005, 0.05))
        killed = living.pop(0)
        os.kill(killed, signal.SIGKILL)
        os.waitpid(killed, 0)
        living.append(_writer(folder, turn % COUNT))
    for child in living:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), int(sys.argv[2]))
