"""Single searches and batches of them on a stored collection; one thread, data in memory.

usage: bench_search.py [--items 1000000] [--folder DIR] [--queries 2000] [--repeat 5]

Items are short texts (12 words), the queries are 1 KB texts, all of which are stored too, so that every query
has its hit verified by true Jaccard. "as written" is the collection as 100 commits of 10,000 left it,
"compacted" after compact().
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import simindex
from simindex.types import Packed


def words(rng: np.random.Generator, n: int, size: int) -> Packed:
    """Return n texts of `size` random words of 7 letters."""
    letters = rng.integers(97, 123, (n, size, 8), dtype=np.uint8)
    letters[:, :, 7] = 32
    return Packed(letters.reshape(-1), np.arange(n + 1, dtype=np.int64) * (size * 8))


def single(items: Any, texts: list[str], repeat: int) -> tuple[float, float]:
    """Return (best mean of a round, median of all calls) in microseconds."""
    rounds, calls = [], []
    for text in texts:
        items.search(body=text)  # fetches what is needed
    for _ in range(repeat):
        start = time.perf_counter()
        for text in texts:
            before = time.perf_counter_ns()
            hits = items.search(body=text)
            calls.append(time.perf_counter_ns() - before)
            if len(hits) != 1:
                raise SystemExit(f"{len(hits)} hits of a stored text")
        rounds.append((time.perf_counter() - start) / len(texts))
    return min(rounds) * 1e6, median(calls) / 1e3


def batch(items: Any, field: str, values: Any, n: int, repeat: int) -> float:
    """Return queries per second of the best of `repeat` runs."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        found = items.search_many(**{field: values})
        times.append(time.perf_counter() - start)
        if len(found) != n or int(found.offsets[-1]) < n:
            raise SystemExit(f"{int(found.offsets[-1])} hits of {n} stored items")
    return n / min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description="search speed")
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    n, q = args.items, args.queries
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        db = simindex.open(Path(folder) / "bench.simdb", durability="relaxed")
        items = db.create_collection("texts", {"body": simindex.text(threshold=0.8)}, key="int")
        start = time.perf_counter()
        items.put_many({"key": np.arange(n), "body": words(rng, n, 12)})
        print(f"{n / (time.perf_counter() - start):,.0f} texts/s stored, verify=exact")
        long = words(rng, q, 128)
        items.put_many({"key": np.arange(n, n + q), "body": long})
        raw = long.data.tobytes().decode()
        texts = [raw[i * 1024 : (i + 1) * 1024] for i in range(q)]
        for state in ("as written", "compacted"):
            if state == "compacted":
                db.compact()
            best, middle = single(items, texts, args.repeat)
            print(f"search, 1 KB text, {state}: {best:.1f} us (median of calls {middle:.1f} us)")
            rate = batch(items, "body", texts, q, args.repeat)
            print(f"search_many, 1 KB texts, {state}: {rate:,.0f} queries/s")
        db.drop_collection("texts")
        field = simindex.tokens(threshold=0.8, bands=(16, 8), verify="estimate", force=True)
        signed = db.create_collection("signed", {"tags": field}, key="int")
        signatures = rng.integers(0, 256, (n, field.family.width), dtype=np.uint8)
        signed.put_many({"key": np.arange(n), "tags": signatures})
        some = np.ascontiguousarray(signatures[rng.permutation(n)[:100_000]])
        for state in ("as written", "compacted"):
            if state == "compacted":
                db.compact()
            rate = batch(signed, "tags", some, len(some), args.repeat)
            print(f"search_many, ready signatures, 16 bands, {state}: {rate:,.0f} queries/s, with scores")
        db.close()


if __name__ == "__main__":
    main()
