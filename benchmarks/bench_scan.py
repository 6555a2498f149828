"""Scans of stored signatures beside the machine's read limit, candidate checks and posting sorts; one thread.

usage: bench_scan.py [--rows 10000000] [--width 128] [--slot-bytes 1] [--repeat 5]

The table of blocks lies in memory as the file would be mapped: 32 KiB blocks with headers. The read limit is
the faster of two plain passes over the same bytes (memchr for an absent byte, numpy's maximum), taken anew
beside each scan.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

from simindex import kernels
from simindex.kernels import dispatch

BLOCK = 8 * 4096


def best(run: Callable[[], object], repeat: int) -> float:
    """Return the shortest of `repeat` times, in seconds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description="scan speed beside the read limit")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--slot-bytes", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    width, n = args.width, args.rows
    per_block = (BLOCK - 16 - 64) * 8 // (8 * width + 2)
    header = (48 + (per_block + 3) // 4 + 15) // 16 * 16
    n_blocks = -(-n // per_block)
    memory = bytearray(n_blocks * BLOCK)
    flat = np.frombuffer(memory, np.uint8)
    rng = np.random.default_rng(1)
    part = rng.integers(1, 256, 64 * BLOCK, dtype=np.uint8)  # no zero byte: memchr has to read everything
    for at in range(0, len(flat), len(part)):
        piece = flat[at : at + len(part)]
        piece[:] = np.roll(part, at // len(part))[: len(piece)]
    blocks = flat.reshape(n_blocks, BLOCK)
    blocks[:, 48 : 48 + (per_block + 3) // 4] = 0xAA  # all rows PRESENT
    addresses = np.uint64(flat.ctypes.data) + np.arange(n_blocks, dtype=np.uint64) * np.uint64(BLOCK)
    bits = np.full(16 + 32512 // 8, 0xFF, np.uint8)
    live = np.full(-(-n // 32512), bits.ctypes.data, np.uint64)
    layout = (per_block, header, width, args.slot_bytes)
    queries = np.ascontiguousarray(blocks[:16, header : header + width])
    slots = width // args.slot_bytes
    least = np.full(16, slots * 7 // 10, np.uint16)
    words = flat.view(np.uint64)
    print(f"{n} rows of {width} bytes, {args.slot_bytes}-byte slots, level {dispatch.active()}")
    size = n * width / 1e9
    for count in (1, 4, 16):
        some = queries[:count]
        runs: dict[str, Callable[[], object]] = {
            "threshold": lambda q=some, c=count: kernels.scan_equal(
                addresses, *layout, q, n, live, min_equal=least[:c]
            ),
            "top 10": lambda q=some: kernels.scan_equal(addresses, *layout, q, n, live, k=10),
        }
        for name, run in runs.items():
            times, reads = [], []
            for _ in range(args.repeat):
                reads.append(min(best(lambda: memory.find(0), 1), best(lambda: words.max(), 1)) / len(flat))
                times.append(best(run, 1))
            share = float(np.median(np.array(reads) * n * width / np.array(times)))
            print(
                f"{count:>2} queries, {name:<10} {size / min(times):6.1f} GB/s; "
                f"read limit {1e-9 / min(reads):6.1f}; median share {share:4.0%}; "
                f"{n * count / min(times) / 1e6:6.0f} M compares/s"
            )
    rows = rng.integers(0, n, 60_000).astype(np.uint32)
    of = np.zeros(60_000, np.uint32)
    gather = best(lambda: kernels.gather_equal(addresses, *layout, queries, of, rows), args.repeat)
    pairs = best(lambda: kernels.pair_equal(addresses, *layout, rows, rows[::-1].copy()), args.repeat)
    print(f"60,000 random candidates  {gather * 1e3:8.2f} ms; 60,000 random pairs {pairs * 1e3:.2f} ms")
    signatures = rng.integers(0, 256, (10_000, width), dtype=np.uint8)
    states = np.full(10_000, 2, np.uint8)
    per_band = min(8, slots // 16)
    post = best(lambda: kernels.band_postings(signatures, states, 16, per_band, args.slot_bytes), args.repeat)
    print(f"sorted postings           {post * 1e3:8.2f} ms for 10,000 rows of 16 bands")


if __name__ == "__main__":
    main()
