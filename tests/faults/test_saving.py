import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import ahop
from ahop import _files
from ahop.index import storage
from ahop.memories.storage import FILE

SCRIPT = Path(__file__).with_name("writers.py")
spec = importlib.util.spec_from_file_location("writers", SCRIPT)
writers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(writers)


def until(over, work):
    """Threads that do this over and over, and what went wrong in them."""
    wrong = []

    def run(place):
        try:
            while not over.is_set():
                work(place)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    return threads, wrong


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("kills", [3, 100])
def test_readers_see_whole_files_alone_whoever_writes_and_whoever_is_killed(tmp_path, monkeypatch, kills):
    writers.save(tmp_path, 0)
    loads = []

    def read(place):
        loads.append(writers.is_whole(ahop.load(tmp_path)))
        done = json.loads((tmp_path / writers.REPORT).read_text())["done"]
        loads.append(len(done) == 500 * (done[0]["kind"] + 1))
        loads.append(writers.is_whole_index(ahop.load(tmp_path / writers.INDEX)))

    over = threading.Event()
    process = subprocess.Popen([sys.executable, str(SCRIPT), str(tmp_path), str(kills)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    savers, unsaved = until(over, lambda place: writers.save(tmp_path, 5 + place))
    readers, unread = until(over, read)
    process.communicate()
    over.set()
    for thread in [*savers, *readers]:
        thread.join()

    assert process.returncode == 0 and not unsaved and not unread
    assert len(loads) > 10 and all(loads)
    ahop.index.verify(tmp_path / writers.INDEX)
    whole = {FILE, writers.REPORT, writers.INDEX}
    left = {path.name for path in tmp_path.iterdir()} - whole
    left |= {path.name for path in (tmp_path / writers.INDEX).iterdir() if path.name.endswith(".part")}
    assert left or kills < 100, "no writer was killed on its way"
    monkeypatch.setattr(_files, "OLD", 0.0)
    monkeypatch.setattr(storage, "OLD", 0.0)
    # A file that is as old as the page is not older.
    time.sleep(0.01)
    writers.save(tmp_path, 3)
    assert {path.name for path in tmp_path.iterdir()} == whole
    assert {path.name[:5] for path in (tmp_path / writers.INDEX).iterdir()} == {"index", "large", "small"}
    assert len(list((tmp_path / writers.INDEX).iterdir())) == 3
    assert ahop.load(tmp_path).patterns[0, 0] == 3 == ahop.load(tmp_path / writers.INDEX).memory.patterns[0, 0]
