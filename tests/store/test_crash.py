"""kill -9 at any moment: every commit is there whole or not at all, and the store is sound without repair."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from store.processes import interpreter
from store.test_space import PLAN, append_numbers, numbers

from simindex.store import Store

WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
import numpy as np
from store.test_concurrent import write_round
from store.test_space import PLAN
from simindex.store import Store
store = Store.open(sys.argv[1], durability="relaxed")
rng = np.random.default_rng(int(sys.argv[3]))
print("ready", flush=True)
while True:
    write_round(store, rng)
    with store.read() as snapshot:
        sys.stdout.write(f"{snapshot.collection(1, PLAN).state.change}\\n")
        sys.stdout.flush()
"""


def kill_and_look(path: Path, seed: int) -> int:
    """Let a writer work, kill it at some moment, check what it left; return how often it committed."""
    rng = np.random.default_rng(seed)
    with interpreter(WRITER, path, Path(__file__).parent.parent, seed) as writer:
        assert writer.stdout is not None
        time.sleep(float(rng.uniform(0.02, 0.4)))
        os.kill(writer.pid, signal.SIGKILL)
        said = writer.stdout.read().split(b"\n")[:-1]
    with Store.open(path) as store, store.read() as snapshot:
        table = snapshot.collection(1, PLAN)
        assert table.state.change >= (int(said[-1]) if said else 0), "a commit that was reported is lost"
        first, live = table.state.counters.get("first", 0), table.state.live
        assert (np.sort(numbers(table)) == np.arange(first, first + live)).all()
        ptr, rows = table.lookup_keys(np.arange(first, first + live, dtype=np.uint64) << np.uint64(32))
        assert (np.diff(ptr) == 1).all()
        assert len(np.unique(rows)) == live
        assert list(snapshot.verify()) == []
        return table.state.change


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("kills", [8, pytest.param(200, marks=pytest.mark.long)])
def test_killed_writers_leave_whole_commits(tmp_path: Path, kills: int) -> None:
    path = tmp_path / "store"
    with Store.open(path) as store, store.write() as tx:
        tx.create_collection(b"schema")
        append_numbers(tx.collection(1, PLAN), np.arange(1000))
    changes = [kill_and_look(path, seed) for seed in range(kills)]
    assert changes == sorted(changes)
    assert changes[-1] > kills, "the writers did too little for this test to mean much"
