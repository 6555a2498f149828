"""Durable ingest: rates, slowest commits, bytes per item; and what a record costs in Python.

usage: bench_ingest.py [--items 1000000] [--batch 10000] [--folder DIR] [--threads 1]

From arrays: signatures given, int keys, 16 bands of 8 rows, verify="estimate", every commit on disk when it
returns. Beside each rate the machine's own fdatasync of as many bytes as a commit writes, measured in the
same run.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

import simindex


def arrays(folder: Path, n: int, batch: int, threads: int) -> None:
    rng = np.random.default_rng(1)
    field = simindex.tokens(threshold=0.8, bands=(16, 8), verify="estimate", force=True)
    path = folder / "ingest.simdb"
    with simindex.open(path) as db:
        items = db.create_collection("c", {"tags": field}, key="int")
        keys = rng.permutation(n).astype(np.uint64)
        signatures = rng.integers(0, 256, (n, field.family.width), dtype=np.uint8)
        times, peak = [], 0.0
        start = time.perf_counter()
        step = max(n // 10, batch)
        for at in range(0, n, step):
            before = time.perf_counter()
            items.put_many(
                {"key": keys[at : at + step], "tags": signatures[at : at + step]},
                batch=batch,
                threads=threads,
            )
            times.append(min(step, n - at) / (time.perf_counter() - before))
            peak = max(peak, os.path.getsize(path) / min(at + step, n))
        total = time.perf_counter() - start
        print(f"{n:,} items, commits of {batch:,}, {threads} preparing: {n / total:,.0f} items/s")
        print(f"  by tenths: {', '.join(f'{rate:,.0f}' for rate in times)}")
        slow = commits(items, rng, n, batch, field.family.width)
        print(f"  commit of {batch:,}: median {slow[0]:.1f} ms, slowest of 30 {slow[1]:.1f} ms")
        for small in (1, 100):
            one = commits(items, rng, 2 * n, small, field.family.width)
            print(f"  commit of {small}: median {one[0]:.2f} ms, slowest of 30 {one[1]:.2f} ms")
        used = db.stats()
        print(f"  file {used.bytes_per_item['all']:.0f} bytes an item, peak {peak:.0f}", end="")
        db.compact()
        print(f", after compact {db.stats().bytes_per_item['all']:.0f}")
    print(f"  fdatasync of {batch * 300:,} bytes: {sync(folder, batch * 300):.1f} ms")


def commits(
    items: simindex.Collection, rng: np.random.Generator, start: int, n: int, width: int
) -> tuple[float, float]:
    times = []
    for i in range(30):
        keys = np.arange(start + i * n, start + (i + 1) * n)
        signatures = rng.integers(0, 256, (n, width), dtype=np.uint8)
        before = time.perf_counter()
        items.put_many({"key": keys, "tags": signatures}, batch=n, threads=0)
        times.append((time.perf_counter() - before) * 1e3)
    times.sort()
    return times[15], times[-1]


def sync(folder: Path, size: int) -> float:
    """Return the median time of writing and syncing `size` bytes, in milliseconds."""
    times, data = [], os.urandom(size)
    with open(folder / "sync", "wb", buffering=0) as file:
        for _ in range(20):
            before = time.perf_counter()
            file.write(data)
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - before) * 1e3)
    return sorted(times)[10]


def mappings(n: int) -> None:
    """Print what put_many of mappings costs an item over put_many of the same values in arrays."""
    texts = [f"some short text of number {i} with a few more words in it" for i in range(n)]
    rows = [{"key": f"key{i}", "body": text} for i, text in enumerate(texts)]
    extra = [{**row, "lang": "en", "n": i} for i, row in enumerate(rows)]
    costs = {}
    for name, given in (("arrays", None), ("mappings", rows), ("mappings with two attributes", extra)):
        best = 1e9
        for _ in range(3):
            with simindex.open(":memory:") as db:
                items = db.create_collection("c", {"body": simindex.text()})
                before = time.process_time()
                items.put_many(given or {"key": [row["key"] for row in rows], "body": texts}, threads=0)
                best = min(best, time.process_time() - before)
        costs[name] = best / n * 1e6
    print(", ".join(f"{name}: {cost:.2f} us" for name, cost in costs.items()) + " of processor time an item")


def main() -> None:
    parser = argparse.ArgumentParser(description="ingest speed")
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        arrays(Path(folder), args.items, args.batch, args.threads)
    mappings(min(args.items, 100_000))


if __name__ == "__main__":
    main()
