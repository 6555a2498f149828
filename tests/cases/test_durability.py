"""Kills, exceptions, full disks, forks, second openers (D1 to D5), and readers that stay.

Not run here: the 1 MiB map of D3, for the map's size is not a user's setting (1 TiB is reserved); macOS and
Windows.
"""

import contextlib
import multiprocessing
import os
import random
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases.children import insert_part, keys_found, row
from cases.sets import tok
from crash.victim import kill

import simindex
from simindex.errors import DiskFull, QuotaReached

TAGS = {"tags": simindex.tokens(threshold=0.5)}


def write_batches(path: Path, start: int, size: int, report: Any) -> None:
    with simindex.open(path) as db:
        db.create_collection("d", TAGS, key="int", exist_ok=True)
        for number in range(start, start + 1_000):
            with db.write() as tx:
                for at in range(0, size, 1_000):  # several calls, one transaction
                    some = range(number * size + at, number * size + min(at + 1_000, size))
                    tx["d"].put_many([row(i, n=number) for i in some], threads=0)
                if number:
                    tx["d"].delete((number - 1) * size)
            report(number)


@pytest.mark.parametrize(("rounds", "size"), [(8, 500), pytest.param(200, 5_000, marks=pytest.mark.long)])
def test_a_kill_leaves_all_or_none_of_a_batch(path: Path, rounds: int, size: int) -> None:
    """D1: elsewhere parts out of step, rows lost with exit code 0. No repair: open, check, go on."""
    rng, whole = random.Random(1), 0
    for _ in range(rounds):
        first = whole
        reported = kill(
            lambda report, first=first: write_batches(path, first, size, report), rng, most=3, pause=0.1
        )
        if not path.exists():
            continue
        with simindex.open(path) as db:
            if "d" not in db:
                assert not reported
                continue
            assert db.check() == []
            items = db["d"]
            sure = reported[-1] + 1 if reported else whole
            gone = lambda n: max(n - 1, 0)  # noqa: E731
            whole = next(n for n in (sure, sure + 1) if len(items) == n * size - gone(n))
            assert (whole * size - 1 in items) == (whole > 0)
            if whole:
                last = whole * size - 1
                assert [h.key for h in items.search(tags=row(last)["tags"], threshold=1)] == [last]
    assert whole


def test_an_exception_in_a_batch_stores_nothing(path: Path) -> None:
    """D2: elsewhere the 10 good ones are flushed."""
    with simindex.open(path) as db:
        items = db.create_collection("d", TAGS, key="int")
        with pytest.raises(RuntimeError, match="mine"), db.write() as tx:  # noqa: PT012
            for i in range(10):
                tx["d"].put(i, {"tags": row(i)["tags"]})
            assert len(tx["d"]) == 10
            raise RuntimeError("mine")
        assert len(items) == 0
        assert items.search(tags=row(3)["tags"]) == []
        with pytest.raises(simindex.SimindexError, match="3"):
            items.put_many([row(i) if i != 3 else {"key": 3, "tags": 5} for i in range(10)])
        assert len(items) == 0
    with simindex.open(path) as db:
        assert len(db["d"]) == 0


@pytest.mark.parametrize(
    "bad", [{"key": 6, "tags": [1.5]}, {"key": "6", "tags": []}, {"tags": []}, {"key": -1}, 7]
)
def test_bad_records_can_be_skipped_and_are_listed(path: Path, bad: Any) -> None:
    """D2."""
    rows: list[Any] = [row(i) for i in range(10)]
    rows[6] = bad
    with simindex.open(path) as db:
        items = db.create_collection("d", TAGS, key="int")
        report = items.put_many(rows, on_error="skip")
        assert report.inserted == len(items) == 9
        assert [reject.position for reject in report.rejects] == [6]
        assert report.rejects[0].error
        assert sorted(items) == [0, 1, 2, 3, 4, 5, 7, 8, 9]


@pytest.mark.parametrize("n", [4_000, pytest.param(200_000, marks=pytest.mark.long)])
def test_two_writing_processes_and_four_readers(path: Path, n: int) -> None:
    """D3: elsewhere MDB_CORRUPTED, assertions, endless MapFull."""
    with simindex.open(path) as db:
        items = db.create_collection("d", TAGS, key="int")
        context = multiprocessing.get_context("spawn")
        writers = [
            context.Process(target=insert_part, args=(str(path), a, a + n // 2, max(n // 40, 100)))
            for a in (0, n // 2)
        ]
        for writer in writers:
            writer.start()
        errors: list[BaseException] = []
        done = threading.Event()

        def read(seed: int) -> None:
            rng, least = random.Random(seed), 0
            try:
                while not done.wait(0.002):
                    count = len(items)
                    assert count >= least
                    least = count
                    i = rng.randrange(n)
                    keys = [h.key for h in items.search(tags=row(i)["tags"], threshold=1)]
                    assert keys in ([], [i])
            except BaseException as error:
                errors.append(error)

        readers = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
        for reader in readers:
            reader.start()
        for writer in writers:
            writer.join(1_200)
        done.set()
        for reader in readers:
            reader.join(60)
        assert errors == []
        assert [writer.exitcode for writer in writers] == [0, 0]
        assert len(items) == n
        assert db.check() == []


def fill(path: Path, error: type[Exception], **options: Any) -> None:
    """Insert until there is no room; then everything stored is there, and deletes and small puts work."""
    with simindex.open(path, **options) as db:
        items = db.create_collection("d", TAGS, key="int")
        stored = 0
        with pytest.raises(error):  # noqa: PT012
            while True:
                items.put_many([row(i, fill="x" * 100) for i in range(stored, stored + 1_000)])
                stored += 1_000
                assert stored < 1_000_000
        assert stored
        assert len(items) == stored
        assert [h.key for h in items.search(tags=row(7)["tags"], threshold=1)] == [7]
        assert db.check() == []
        with db.write() as tx:
            for i in range(stored // 2):
                assert tx["d"].delete(i)
        assert len(items) == stored - stored // 2
        assert db.check() == []
    with simindex.open(path, **options) as db:
        assert len(db["d"]) == stored - stored // 2
        assert [h.key for h in db["d"].search(tags=row(stored - 1)["tags"], threshold=1)] == [stored - 1]
        db["d"].put(0, {"tags": row(0)["tags"]})


@pytest.mark.parametrize("mib", [4, pytest.param(20, marks=pytest.mark.long)])
def test_a_quota_is_a_clean_error(path: Path, mib: int) -> None:
    """D3."""
    fill(path, QuotaReached, max_bytes=mib << 20)


def test_the_quota_is_the_largest_size_of_the_file(path: Path) -> None:
    """D3."""
    with simindex.open(path, max_bytes=4 << 20) as db:
        items = db.create_collection("d", TAGS, key="int")
        with pytest.raises(QuotaReached):  # noqa: PT012
            for at in range(0, 1_000_000, 1_000):
                items.put_many([row(i, fill="x" * 100) for i in range(at, at + 1_000)])
    assert path.stat().st_size <= 4 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("needs root, to mount a small file system")
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this system does not let us mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_a_clean_error(small_disk: Path) -> None:
    """D3: elsewhere SIGBUS."""
    fill(small_disk / "t.simdb", DiskFull)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_processes_reads_and_the_parent_goes_on(path: Path, method: str) -> None:
    """D4: elsewhere bad reader slots, corruption."""
    with simindex.open(path) as db:
        items = db.create_collection("d", TAGS, key="int")
        items.put_many([row(i) for i in range(200)])
        assert len(items.search(tags=row(3)["tags"], threshold=1)) == 1
        workers = 8 if method == "fork" else 3
        with multiprocessing.get_context(method).Pool(workers) as pool:
            answers = pool.starmap(keys_found, [(str(path), i) for i in range(0, 200, 10)])
        assert answers == [[i] for i in range(0, 200, 10)]
        items.put_many([row(1_000)])
        assert [h.key for h in items.search(tags=row(1_000)["tags"], threshold=1)] == [1_000]
        assert [h.key for h in items.search(tags=row(3)["tags"], threshold=1)] == [3]


def in_child(action: Any) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        with contextlib.suppress(BaseException):
            code = 0 if action() else 2
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_child_that_only_inherits_never_closes_the_parents_handle(path: Path) -> None:
    """D4."""
    with simindex.open(path) as db:
        items = db.create_collection("d", TAGS, key="int")
        items.put_many([row(i) for i in range(50)])

        def read_and_close() -> bool:
            right = [h.key for h in items.search(tags=row(7)["tags"], threshold=1)] == [7]
            db.close()
            return right

        for action in (lambda: True, read_and_close):
            assert in_child(action) == 0
            assert [h.key for h in items.search(tags=row(7)["tags"], threshold=1)] == [7]
            items.put(60, {"tags": row(60)["tags"]})
            assert items.delete(60)
        assert len(items) == 50


def test_a_file_opened_twice_works_until_its_last_close(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D5: by path, link and relative path, in threads; elsewhere a crash."""
    link = path.parent / "link.simdb"
    link.symlink_to(path)
    monkeypatch.chdir(path.parent)
    opened = [simindex.open(path)]
    opened[0].create_collection("d", TAGS, key="int").put_many([row(i) for i in range(20)])
    threads = [
        threading.Thread(target=lambda p=p: opened.append(simindex.open(p))) for p in (link, path.name)
    ]
    for thread in threads:
        thread.start()
        thread.join()
    assert len(opened) == 3
    for i in range(3):
        for db in opened[i:]:
            assert [h.key for h in db["d"].search(tags=row(i)["tags"], threshold=1)] == [i]
            db["d"].put(100 + i, {"tags": row(100 + i)["tags"]})
        opened[i].close()
        opened[i].close()
        with pytest.raises(simindex.SimindexError):
            opened[i]["d"]


def test_close_waits_for_a_search_in_another_thread(path: Path) -> None:
    """D5: elsewhere a segmentation fault."""
    from simindex.errors import Closed

    with simindex.open(path) as db:
        db.create_collection("d", TAGS, key="int").put_many([row(i) for i in range(500)])
    for _ in range(10):
        db = simindex.open(path)
        items, outcome, started = db["d"], [], threading.Event()

        def search(items: Any = items, outcome: list = outcome, started: threading.Event = started) -> None:
            try:
                while True:
                    batch = items.search_many(tags=[row(i)["tags"] for i in range(100)], threshold=1)
                    assert list(batch) == [[(i, 1.0)] for i in range(100)]
                    started.set()
            except Closed:
                outcome.append("closed")
            except BaseException as error:
                outcome.append(repr(error))

        thread = threading.Thread(target=search)
        thread.start()
        assert started.wait(60)
        db.close()
        thread.join(60)
        assert outcome == ["closed"]


def test_a_reader_that_stays_is_reported(path: Path) -> None:
    with simindex.open(path) as db:
        items = db.create_collection("d", TAGS, key="int")
        items.put_many([row(i) for i in range(20)])
        assert db.stats().oldest is None
        with db.snapshot() as before:
            for i in range(5):
                items.put(100 + i, {"tags": tok(0, 3)})
            stats = db.stats()
            assert stats.oldest is not None
            assert stats.oldest.pid == os.getpid()
            assert stats.oldest.lag == 5
            assert f"process {os.getpid()}, 5 commits behind" in str(stats)
            assert len(before["d"]) == 20
            assert before["d"].search(tags=tok(0, 3)) == []
        assert db.stats().oldest is None
