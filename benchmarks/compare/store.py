"""Ingest and search beside FastSketchLSH's in-memory LSH and datasketch.

Ours durable, keyed, verified and scored. Signatures are given (k = 128; ours 8-bit slots, theirs uint64),
16 bands of 8 rows, int keys, verify="estimate", commits of 10,000.
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import datasketch
import FastSketchLSH
import numpy as np
from measure import Row, paired, seconds

import simindex

BATCH = 10_000


def build(folder: Path, n: int, name: str = "items") -> tuple[Any, Any, list[float]]:
    """Put n random signatures; return the database, the collection and each batch's seconds."""
    db = simindex.open(folder / f"{name}.simdb")
    items = db.create_collection(
        name,
        {"body": simindex.text(threshold=0.8, k=128, slots=8, bands=(16, 8), verify="estimate")},
        key="int",
    )
    rng = np.random.default_rng(2)
    times = []
    for s in range(0, n, BATCH):
        signatures = rng.integers(0, 256, size=(BATCH, 128), dtype=np.uint8)
        keys = np.arange(s, s + BATCH, dtype=np.uint64)
        times.append(seconds(lambda: items.put_many({"key": keys, "body": signatures})))  # noqa: B023
    return db, items, times


def ingest(n: int) -> list[Row]:
    rng = np.random.default_rng(3)
    peer = FastSketchLSH.LSH(num_perm=128, num_bands=16, num_threads=1)
    theirs = 0.0
    for _ in range(0, n, BATCH):
        matrix = rng.integers(0, 2**63, size=(BATCH, 128), dtype=np.uint64)
        theirs += seconds(lambda: peer.insert(matrix))  # noqa: B023
    with tempfile.TemporaryDirectory() as folder:
        db, items, times = build(Path(folder), n)
        ours = sum(times)
        size = (Path(folder) / "items.simdb").stat().st_size / n
        compact = time.perf_counter()
        db.compact()
        compact = time.perf_counter() - compact
        small = (Path(folder) / "items.simdb").stat().st_size / n
        items = db["items"]
        one = [seconds(lambda i=i: items.put(n + i, {})) for i in range(50)]
        db.close()
    millions = [sum(times[i : i + 100]) for i in range(0, len(times), 100)]
    return [
        Row(
            "ingest", f"{n:,} items, durable, commits of 10,000", "items/s",
            n / ours, {"FastSketchLSH (memory)": n / theirs},
            {"FastSketchLSH (memory)": theirs / ours}, bar="2 x",
            more={
                "items/s by million": [1e6 / m for m in millions],
                "commit ms": {
                    "median": 1e3 * statistics.median(times),
                    "p99": 1e3 * float(np.quantile(times, 0.99)),
                    "max": 1e3 * max(times),
                },
                "file bytes an item": {"after the load": size, "after compact": small},
                "compact s": compact,
                "one item, durable, ms": 1e3 * statistics.median(one),
            },
        )
    ]  # fmt: skip


def lookup(n: int = 1_000_000, queries: int = 100_000) -> list[Row]:
    rng = np.random.default_rng(2)
    peer = FastSketchLSH.LSH(num_perm=128, num_bands=16, num_threads=1)
    seed = np.random.default_rng(3)
    matrix = None
    for _ in range(0, n, BATCH):
        matrix = seed.integers(0, 2**63, size=(BATCH, 128), dtype=np.uint64)
        peer.insert(matrix)
    del rng
    out = []
    with tempfile.TemporaryDirectory() as folder:
        db, items, _ = build(Path(folder), n)
        again = np.random.default_rng(2)
        stored = np.concatenate(
            [again.integers(0, 256, size=(BATCH, 128), dtype=np.uint8) for _ in range(queries // BATCH)]
        )
        half = queries // 2
        fresh = np.random.default_rng(9).integers(0, 256, size=(queries - half, 128), dtype=np.uint8)
        mine = np.concatenate([stored[:half], fresh])
        seed = np.random.default_rng(3)
        theirs = np.concatenate(
            [seed.integers(0, 2**63, size=(BATCH, 128), dtype=np.uint64) for _ in range(half // BATCH)]
            + [np.random.default_rng(8).integers(0, 2**63, size=(queries - half, 128), dtype=np.uint64)]
        )
        for state in ("at any time", "compacted"):
            if state == "compacted":
                db.compact()
                items = db["items"]
            ours, peers, ratio = paired(
                lambda i=items: i.search_many(body=mine, threshold=0.8, plan="buckets"),
                {"FastSketchLSH (memory)": lambda: peer.query(theirs, format="csr")},
                runs=3,
            )
            rates = {name: queries / t for name, t in peers.items()}
            out.append(
                Row("search_many", f"{queries:,} signatures, half stored, in {n:,}, {state}", "queries/s",
                    queries / ours, rates, ratio, bar="1.5 x", note="ours verified and scored")
            )  # fmt: skip
        db.close()
    return out


def one_text(texts: list[str]) -> list[Row]:
    """`search` of one text of about 1 KB beside datasketch's sign + query, in the same texts."""

    def shingles(text: str) -> list[bytes]:
        words = text.lower().split()
        return [" ".join(words[i : i + 3]).encode() for i in range(len(words) - 2)]

    def theirs(text: str) -> list[str]:
        sketch = datasketch.MinHash(num_perm=128)
        sketch.update_batch(shingles(text))
        return index.query(sketch)

    index = datasketch.MinHashLSH(params=(16, 8), num_perm=128)
    for i, text in enumerate(texts):
        sketch = datasketch.MinHash(num_perm=128)
        sketch.update_batch(shingles(text))
        index.insert(i, sketch)
    questions = texts[:: max(1, len(texts) // 1000)]
    out = []
    with tempfile.TemporaryDirectory() as folder, simindex.open(Path(folder) / "one.simdb") as db:
        items = db.create_collection(
            "items", {"body": simindex.text(threshold=0.8, bands=(16, 8))}, key="int"
        )
        for s in range(0, len(texts), 1000):
            chunk = texts[s : s + 1000]
            items.put_many({"key": np.arange(s, s + len(chunk), dtype=np.uint64), "body": chunk})
        for state, bar in (("at any time", "4 x"), ("compacted", "8 x")):
            if state == "compacted":
                db.compact()
                items = db["items"]
            ours, peers, ratio = paired(
                lambda i=items: [i.search(body=q, plan="buckets") for q in questions],
                {"datasketch": lambda: [theirs(q) for q in questions]},
                runs=5,
            )
            each = 1e6 / len(questions)
            out.append(
                Row("search", f"one text of about 1 KB in {len(texts):,}, {state}", "us", ours * each,
                    {n: t * each for n, t in peers.items()}, ratio, bar=bar)
            )  # fmt: skip
    return out
