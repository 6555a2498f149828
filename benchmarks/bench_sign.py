"""Signing speed from uint64 token hashes: fastsim/1 beside rensa's and FastSketchLSH's full-set sketches.

usage: bench_sign.py [--peers SITE_PACKAGES] [--k 128] [--bits 8] [--n 10,20,50,...] [--repeat 5] [--minhash]

One thread. In every row the rivals take turns and the best time of each counts. Peers are used if importable.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable

os.environ.setdefault("RAYON_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from simindex import kernels
from simindex.kernels import dispatch


def rivals(peers: str | None, k: int) -> dict[str, Callable[[np.ndarray, np.ndarray], object]]:
    """Return the peers' batch sketches that can be imported, by name."""
    if peers:
        sys.path.append(peers)
    found: dict[str, Callable[[np.ndarray, np.ndarray], object]] = {}
    try:
        import rensa

        found["rensa"] = lambda h, ptr: rensa.RMinHash.digest_matrix_from_flat_token_hashes(h, ptr, k, 42)
    except ImportError:
        pass
    try:
        import FastSketchLSH

        sketch = FastSketchLSH.FastSimilaritySketch(k, 42)
        found["FastSketchLSH"] = lambda h, ptr: sketch.batch_csr(h, ptr, True, 1)
    except (ImportError, ValueError, RuntimeError):  # it takes powers of two only
        pass
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="signing speed beside the peers'")
    parser.add_argument("--peers", help="site-packages of an environment with rensa and FastSketchLSH")
    parser.add_argument("--k", type=int, default=128)
    parser.add_argument("--bits", type=int, default=8, choices=(8, 16, 32))
    parser.add_argument("--n", default="5,10,20,50,100,200,500,1000,5000,100000")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=2_000_000, help="tokens a run")
    parser.add_argument("--minhash", action="store_true", help="also minhash/1 in its four schemes")
    args = parser.parse_args()
    others = rivals(args.peers, args.k)
    print(f"k = {args.k}, {args.bits}-bit slots, level {dispatch.active()}; millions of tokens a second")
    rng = np.random.default_rng(1)
    first, second = kernels.minhash_constants(args.k)
    for n in map(int, args.n.split(",")):
        documents = max(args.tokens // n, 3)
        hashes = rng.integers(0, 2**64, documents * n, dtype=np.uint64)
        ptr = np.arange(0, documents * n + 1, n, dtype=np.int64)
        unsigned = ptr.astype(np.uint64)
        runs: dict[str, Callable[[], object]] = {
            "fastsim": lambda h=hashes, p=ptr: kernels.fastsim_packed(h, p, args.k, args.bits)
        }
        for name, call in others.items():
            runs[name] = lambda call=call, h=hashes, p=unsigned: call(h, p)
        if args.minhash:
            small = hashes & np.uint64(0xFFFFFFFF)
            for scheme in kernels.MINHASH_SCHEMES:
                few = max(1, min(documents, 100_000_000 // (n * args.k)))
                part = (small if scheme in ("affine32", "legacy") else hashes)[: few * n]
                runs[scheme] = lambda h=part, p=ptr[: few + 1], s=scheme: kernels.minhash_packed(
                    h, p, first, second, s, 32
                )
        best = dict.fromkeys(runs, float("inf"))
        for _ in range(args.repeat):
            for name, run in runs.items():
                start = time.perf_counter()
                run()
                best[name] = min(best[name], time.perf_counter() - start)
        line = f"n = {n:>6}"
        for name, seconds in best.items():
            tokens = len(hashes)
            if name in kernels.MINHASH_SCHEMES:
                tokens = n * max(1, min(documents, 100_000_000 // (n * args.k)))
            line += f"   {name} {tokens / seconds / 1e6:8.1f}"
            if name in others:
                line += f" ({seconds / best['fastsim']:.2f}x)"
        print(line)


if __name__ == "__main__":
    main()
