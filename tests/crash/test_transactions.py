"""kill -9 at any moment (case D1): each transaction is there as a whole or not at all, without any repair."""

import random

import pytest
from crash.victim import kill

from simindex.errors import MapFull
from simindex.store import openfile
from simindex.store.env import Environment

SEED = 20_261_201
BATCH = 100


def write_batch(env, number):
    """Add batch `number`: BATCH records in two databases, one large value, a counter; drop batch number -
    5.
    """
    rng = random.Random(number)
    with env.begin_write(30) as w:
        records, postings, meta = w.db("records"), w.db("postings"), w.db("meta")
        for i in range(BATCH):
            w.txn.put(b"%08d.%04d" % (number, i), b"%d" % number * rng.randint(1, 40), db=records)
            w.txn.put(b"%08d.%04d" % (number, i), b"x" * rng.randint(1, 40), db=postings)
            if number >= 5:
                assert w.txn.delete(b"%08d.%04d" % (number - 5, i), db=records)
        w.txn.put(b"big", b"%08d" % number * rng.randint(1, 40_000), db=w.db("originals"))
        w.txn.put(b"count", b"%d" % (number + 1), db=meta)


def check(env):
    """Check that the store holds whole batches 0..n-1 and nothing else; return n."""
    with env.begin_read() as r:
        count = r.txn.get(b"count", db=r.db("meta"))
        n = 0 if count is None else int(bytes(count))
        for kind, first in (("records", max(n - 5, 0)), ("postings", 0)):
            stored = [bytes(key) for key in r.txn.cursor(db=r.db(kind)).iternext(values=False)]
            assert stored == [b"%08d.%04d" % (b, i) for b in range(first, n) for i in range(BATCH)]
        for key, value in r.txn.cursor(db=r.db("records")).iternext():
            number = b"%d" % int(bytes(key[:8]))
            assert bytes(value) == number * (len(value) // len(number))
        big = r.txn.get(b"big", db=r.db("originals"))
        if n:
            assert bytes(big) == b"%08d" % (n - 1) * (len(big) // 8)
        return n


def run(path, rounds, seed, **options):
    """Kill, reopen, check, `rounds` times; return how many batches there are in the end."""
    rng, n = random.Random(seed), 0
    Environment.open(path, **options).close()
    for _ in range(rounds):

        def body(report, start=n):
            with Environment.open(path, **options) as env:
                for number in range(start, start + 1000):
                    while True:
                        try:
                            write_batch(env, number)
                            break
                        except MapFull:
                            continue
                    report(number)

        reported = kill(body, rng)
        assert reported == list(range(n, n + len(reported)))
        with Environment.open(path, **options) as env:
            found = check(env)
            assert n + len(reported) <= found <= n + len(reported) + 1
            n = found
            write_batch(env, n)
            n += 1
            assert env.info().readers == ()
    return n


@pytest.mark.parametrize("durability", ["full", "relaxed"])
def test_a_kill_leaves_whole_transactions(tmp_path, rounds, durability):
    assert run(tmp_path / "a.simdb", rounds, SEED, durability=durability) > 3 * rounds


def test_a_kill_while_the_map_grows_leaves_whole_transactions(tmp_path, rounds, monkeypatch):
    monkeypatch.setattr(openfile, "_MARGIN", 1 << 14)
    assert run(tmp_path / "a.simdb", rounds, SEED + 1, durability="relaxed", _map_bytes=1 << 16) > 3 * rounds


def test_an_open_handle_goes_on_beside_killed_writers(tmp_path, rounds):
    path, rng, n = tmp_path / "a.simdb", random.Random(SEED + 2), 0
    with Environment.open(path, durability="relaxed") as env:
        for _ in range(rounds):
            with env.begin_read() as held:

                def body(report, start=n):
                    for number in range(start, start + 1000):  # through the inherited object
                        write_batch(env, number)
                        report(number)

                reported = kill(body, rng)
                assert held.txn.stat(held.db("postings"))["entries"] == n * BATCH
            found = check(env)
            assert n + len(reported) <= found <= n + len(reported) + 1
            write_batch(env, found)
            n = found + 1


def test_a_kill_while_a_store_is_made_leaves_a_whole_store_or_none(tmp_path, rounds):
    rng = random.Random(SEED + 3)
    for number in range(rounds):
        path = tmp_path / f"{number}.simdb"

        def body(report, path=path):
            with Environment.open(path) as env:
                write_batch(env, 0)
                report(0)
                write_batch(env, 1)
                while True:
                    env.begin_read().end()

        reported = kill(body, rng, most=1, pause=0.02)
        if path.exists() or reported:
            with Environment.open(path, mode="r") as env:
                assert check(env) >= len(reported)
        with Environment.open(path) as env:
            write_batch(env, check(env))


def test_a_kill_while_copying_leaves_a_whole_copy_or_none(tmp_path, rounds):
    rng = random.Random(SEED + 4)
    with Environment.open(tmp_path / "a.simdb", durability="relaxed") as env:
        for number in range(20):
            write_batch(env, number)
        for number in range(rounds):
            target = tmp_path / f"copy{number}.simdb"

            def body(report, target=target):
                report(0)
                env.copy(target, compact=True)
                while True:
                    env.begin_read().end()

            kill(body, rng, most=1)
            if target.exists():
                with Environment.open(target) as copy:
                    assert check(copy) == 20
        assert check(env) == 20
