"""Postings alone: durable ingest, commit times beside the disk's own, bytes per item, lookups.

    python benchmarks/bench_postings.py [--items 1000000] [--commit 1000 10000] [--dir FOLDER]

Each item has 16 uniform bucket keys and one of a key map. Everything is durable (sync and metasync). Lookups:
half of the queries are stored items. The fsync line is what the disk needs for one page, measured between
commits.
"""

import argparse
import os
import tempfile
from pathlib import Path
from time import perf_counter

import lmdb
import numpy as np

from simindex.kernels import address_of, sort_postings
from simindex.store import layout
from simindex.store.postings import PostingsReader, PostingsWriter

BANDS = 16
SPACES = ((b"\x00\x00\x00\x01\x00\x00", BANDS), (b"\x00\x00\x00\x01\xff\xff", 1))


class Bench:
    """One file of postings."""

    def __init__(self, path: Path, items: int, commit: int) -> None:
        self.path, self.items, self.commit = path, items, commit
        self.env = lmdb.open(
            str(path), subdir=False, max_dbs=1, map_size=1 << 38, lib_version=0, readahead=False
        )
        self.db = self.env.open_db(b"postings")
        self.bits: list[np.ndarray] = []

    def live(self) -> np.ndarray:
        """Addresses of a bitmap in which every row lives."""
        while len(self.bits) * layout.LIVE_ROWS < self.items:
            self.bits.append(np.full(layout.LIVE_BYTES, 255, np.uint8))
        return np.array([address_of(block) for block in self.bits], np.uint64)

    @staticmethod
    def keys(start: int, n: int) -> np.ndarray:
        """The bucket keys of items start .. start + n - 1, uint64 (n, 17)."""
        with np.errstate(over="ignore"):
            i = np.arange(start, start + n, dtype=np.uint64)[:, None] * np.uint64(BANDS + 1)
            x = (i + np.arange(BANDS + 1, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
            x ^= x >> np.uint64(30)
            x *= np.uint64(0xBF58476D1CE4E5B9)
            return x ^ (x >> np.uint64(27))

    def ingest(self, bulk: bool) -> None:
        """Append everything, print rates and times."""
        probe = os.open(self.path.with_suffix(".probe"), os.O_CREAT | os.O_RDWR)
        times, disk = [], []
        for start in range(0, self.items, self.commit):
            keys = self.keys(start, self.commit)
            blocks = [np.stack([sort_postings(np.ascontiguousarray(keys[:, b])) for b in range(BANDS)])]
            blocks.append(sort_postings(np.ascontiguousarray(keys[:, BANDS])).reshape(1, -1))
            begin = perf_counter()
            txn = self.env.begin(write=True, buffers=True)
            for (prefix, bands), block in zip(SPACES, blocks, strict=True):
                writer = PostingsWriter(txn, self.db, prefix, bands)
                writer.append(block, start)
                writer.flush()
                if not bulk:
                    writer.merge(None)
            txn.commit()
            times.append(perf_counter() - begin)
            if len(times) % 50 == 0:
                begin = perf_counter()
                os.pwrite(probe, bytes(4096), 0)
                os.fdatasync(probe)
                disk.append(perf_counter() - begin)
        os.close(probe)
        t = np.array(times) * 1e3
        per = max(1, 1_000_000 // self.commit)
        rates = [
            self.commit * len(c) / c.sum() * 1e3
            for c in np.split(t, range(per, len(t), per))
            if len(c) == per
        ]
        size = self.path.stat().st_size / self.items
        print(
            f"ingest commits of {self.commit:,}{' bulk' if bulk else ''}: "
            f"{self.items / t.sum() * 1e3:,.0f} items/s, {size:.0f} B/item; "
            f"commit p50 {np.median(t):.2f} p99 {np.quantile(t, 0.99):.2f} max {t.max():.2f} ms"
        )
        print(f"  items/s by million: {' '.join(f'{r:,.0f}' for r in rates)}")
        if disk:
            d = np.array(disk) * 1e3
            print(
                f"  disk, 4 KiB + fdatasync: p50 {np.median(d):.2f} "
                f"p99 {np.quantile(d, 0.99):.2f} max {d.max():.2f} ms"
            )

    def lookups(self, what: str) -> None:
        """Print times of single lookups and of batches."""
        live, rng = self.live(), np.random.default_rng(1)
        with self.env.begin(buffers=True) as txn:
            prefix = SPACES[0][0]
            begin = perf_counter()
            reader = PostingsReader.open(txn, self.db, prefix, BANDS)
            opened = perf_counter() - begin
            begin = perf_counter()
            again = PostingsReader.open(txn, self.db, prefix, BANDS, reader)
            same = perf_counter() - begin
            assert again is reader
            picked = rng.integers(0, 2 * self.items, 20_000)
            keys = np.ascontiguousarray(np.concatenate([self.keys(int(i), 1) for i in picked])[:, :BANDS])
            ptr, _ = reader.lookup(txn, keys, live)
            hits = np.diff(ptr) > 0
            assert (hits[picked < self.items]).all(), "planted hits are found"
            single = []
            for i in range(5_000):
                query = keys[i : i + 1]
                begin = perf_counter()
                reader.lookup(txn, query, live)
                single.append(perf_counter() - begin)
            line = []
            for n in (100, 10_000):
                best = min(self._batch(reader, txn, keys[:n], live) for _ in range(5))
                line.append(f"{n:,}: {n / best:,.0f}/s")
            many = min(250_000, self.items)
            big = np.ascontiguousarray(
                np.concatenate([self.keys(0, many), self.keys(self.items, many)])[:, :BANDS]
            )
            best = min(self._batch(reader, txn, big, live) for _ in range(2))
            line.append(f"{2 * many:,}: {2 * many / best:,.0f}/s")
            total, begin = 0, perf_counter()
            for part in reader.band(txn, 3, live):
                total += len(part)
            band = total / (perf_counter() - begin)
            s = np.array(single) * 1e6
            stats = reader.stats()
            print(
                f"{what}: {stats['sources'] / BANDS:.1f} sources per band, {stats['segments']} segments; "
                f"open {opened * 1e3:.1f} ms, same {same * 1e6:.1f} us"
            )
            print(
                f"  one query p50 {np.median(s):.1f} p99 {np.quantile(s, 0.99):.1f} us; "
                f"batches of {'; '.join(line)}; band {band / 1e6:.0f} M postings/s"
            )

    @staticmethod
    def _batch(reader: PostingsReader, txn: object, keys: np.ndarray, live: np.ndarray) -> float:
        begin = perf_counter()
        reader.lookup(txn, keys, live)
        return perf_counter() - begin

    def compact(self) -> None:
        """Merge everything into one run, in commits of 20 M postings."""
        begin = perf_counter()
        for prefix, bands in SPACES:
            done = False
            while not done:
                with self.env.begin(write=True, buffers=True) as txn:
                    done = PostingsWriter(txn, self.db, prefix, bands).finish(None, 20_000_000)
        print(f"compact: {perf_counter() - begin:.2f} s")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--commit", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--bulk", action="store_true", help="no merges during the load")
    parser.add_argument("--dir", default=None)
    options = parser.parse_args()
    for commit in options.commit:
        with tempfile.TemporaryDirectory(dir=options.dir) as folder:
            bench = Bench(Path(folder) / "postings.db", options.items, commit)
            bench.ingest(options.bulk)
            bench.lookups("as loaded")
            bench.compact()
            bench.lookups("compacted")
            bench.env.close()


if __name__ == "__main__":
    main()
