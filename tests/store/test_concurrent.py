"""Readers in other threads and processes see whole commits, whatever a writer does meanwhile."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from store.test_space import PLAN, append_numbers, numbers

from simindex.errors import Closed
from simindex.store import Store


def check_once(store: Store) -> int:
    with store.read() as snapshot:
        table = snapshot.collection(1, PLAN)
        found = numbers(table)
        assert len(found) == table.state.live
        first = table.state.counters.get("first", 0)
        assert (np.sort(found) == np.arange(first, first + table.state.live)).all()
        return table.state.change


def write_round(store: Store, rng: np.random.Generator) -> None:
    """Append a few numbers after the highest, remove some of the lowest; sometimes abort half-way."""
    with store.write() as tx:
        table = tx.collection(1, PLAN)
        first, live = table.state.counters.get("first", 0), table.state.live
        append_numbers(table, np.arange(first + live, first + live + int(rng.integers(1, 700))))
        gone = min(int(rng.integers(0, 700)), live)
        rows = np.concatenate([np.empty(0, np.uint32), *table.live_rows()])
        order = np.argsort(numbers(table))
        table.remove(rows[order][:gone])
        table.count("first", gone)
        if rng.random() < 0.2:
            tx.abort()


@pytest.mark.parametrize("readers", [3])
def test_threads_see_whole_commits(tmp_path: Path, readers: int) -> None:
    store = Store.open(tmp_path / "store", durability="relaxed")
    with store.write() as tx:
        tx.create_collection(b"schema")
    done = threading.Event()
    failures: list[BaseException] = []
    seen: set[int] = set()

    def read() -> None:
        try:
            while not done.is_set():
                seen.add(check_once(store))
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=read) for _ in range(readers)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        for thread in threads:
            thread.start()
        rng = np.random.default_rng(3)
        for _ in range(60):
            write_round(store, rng)
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(before)
    assert not failures
    assert len(seen) > 2
    with store.read() as snapshot:
        assert list(snapshot.verify()) == []
    store.close()


READER = """
import sys
sys.path.insert(0, sys.argv[2])
from store.test_concurrent import Store, check_once
store = Store.open(sys.argv[1], mode="r")
seen = set()
while sys.stdin.readline():
    seen.add(check_once(store))
    print(len(seen), flush=True)
"""


def test_another_process_sees_whole_commits(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = Store.open(path, durability="relaxed")
    with store.write() as tx:
        tx.create_collection(b"schema")
    command = [sys.executable, "-c", READER, str(path), str(Path(__file__).parent.parent)]
    rng = np.random.default_rng(4)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for _ in range(30):
            child.stdin.write("go\n")
            child.stdin.flush()  # the reader works while the next round is written
            write_round(store, rng)
            assert child.stdout.readline()
        child.stdin.close()
        assert child.wait(60) == 0
    store.close()


def test_tables_refuse_to_read_after_their_transaction(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    with store.write() as tx:
        number = tx.create_collection(b"schema")
        written = tx.collection(number, PLAN)
        append_numbers(written, np.arange(10))
    with store.read() as snapshot:
        table = snapshot.collection(number, PLAN)
        signatures, records = table.signatures(3), table.records
        signatures.need_all()
        records.need_all()
        assert len(numbers(table)) == 10
    row = np.array([1], np.uint32)
    for late in (
        lambda: signatures.rows(row),
        lambda: signatures.need_all(),
        lambda: records.value(1),
        lambda: records.values(row),
        lambda: table.lookup_keys(np.zeros(1, np.uint64)),
        lambda: table.lookup(3, np.zeros((1, 2), np.uint64)),
        lambda: list(table.live_rows()),
        lambda: table.are_live(row),
        lambda: written.remove(row),
        lambda: append_numbers(written, np.arange(3)),
        lambda: snapshot.catalog(),
    ):
        with pytest.raises(Closed):
            late()
    store.close()


def test_close_waits_for_writers_and_ends_their_queue(tmp_path: Path) -> None:
    """Writers that wait for the lock while the last opener closes meet Closed, never a closed descriptor."""
    for pause in (0.0, 0.002, 0.005, 0.01, 0.02):
        store = Store.open(tmp_path / "store", durability="relaxed")
        strange: list[BaseException] = []

        def write(store: Store = store, strange: list[BaseException] = strange) -> None:
            try:
                while True:
                    with store.write():
                        pass
            except Closed:
                pass
            except BaseException as error:
                strange.append(error)

        threads = [threading.Thread(target=write) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(pause)
        store.close()
        for thread in threads:
            thread.join(10)
        assert strange == []
        assert not any(thread.is_alive() for thread in threads)
