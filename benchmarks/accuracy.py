"""Bias and error of the estimates of each family and of the peers, and the simulated banding curve.

usage: accuracy.py [--peers SITE_PACKAGES] [--k 128] [--pairs 2000] [--plot FILE]

First table: pairs of random sets of n with a planted Jaccard similarity J; bias, its standard error, and the
RMSE divided by sqrt(J (1 - J) / k), the theory of k independent slots. Peers are used if importable.
Second table: how often planted pairs share a bucket, beside 1 - (1 - s^r)^b.
"""

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from simindex import lsh, sketch
from simindex.types import PRESENT, Features

SIZES = (5, 10, 20, 40, 80, 160, 320, 1000, 5000)
Estimator = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def planted(
    rng: np.random.Generator, pairs: int, n: int, s: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return hashes of both sides, shape (pairs * n,), their offsets, and the true similarity."""
    common = min(n, round(2 * n * s / (1 + s)))
    shared, a, b = (
        rng.integers(0, 2**64, (pairs, size), dtype=np.uint64) for size in (common, n - common, n - common)
    )
    ptr = np.arange(0, pairs * n + 1, n, dtype=np.int64)
    left = np.concatenate([shared, a], axis=1).ravel()
    return left, np.concatenate([shared, b], axis=1).ravel(), ptr, common / (2 * n - common)


def of_family(name: str, params: dict[str, Any]) -> Estimator:
    """Return an estimator of pairs by one of our families, without the cut at 0."""
    family = sketch.family(name, params)
    accident = 2.0**-family.slot_bits

    def estimate(a: np.ndarray, b: np.ndarray, ptr: np.ndarray) -> np.ndarray:
        state = np.full(len(ptr) - 1, PRESENT, np.uint8)
        x, y = family.sign(Features(a, ptr, state)), family.sign(Features(b, ptr, state))
        same = (x == y).reshape(len(x), family.k, -1).all(axis=2).mean(axis=1)
        return (same - accident) / (1 - accident)

    return estimate


def estimators(peers: str | None, k: int) -> dict[str, Estimator]:
    """Return every estimator by name: ours, then the peers that can be imported."""
    found = {
        "fastsim 8": of_family("fastsim/1", {"k": k, "slots": 8}),
        "fastsim 32": of_family("fastsim/1", {"k": k, "slots": 32}),
        "minhash 8": of_family("minhash/1", {"k": k, "slots": 8}),
    }
    if peers:
        sys.path.append(peers)
    try:
        import rensa

        def by_rensa(a: np.ndarray, b: np.ndarray, ptr: np.ndarray) -> np.ndarray:
            digest = rensa.RMinHash.digest_matrix_from_flat_token_hashes
            x, y = (np.array(digest(h, ptr.astype(np.uint64), k, 42).to_rows()) for h in (a, b))
            return (x == y).mean(axis=1)

        if hasattr(rensa.RMinHashDigestMatrix, "to_rows"):
            found["rensa"] = by_rensa
    except (ImportError, AttributeError):
        pass
    try:
        import FastSketchLSH

        signer = FastSketchLSH.FastSimilaritySketch(k, 42)

        def by_fastsketch(a: np.ndarray, b: np.ndarray, ptr: np.ndarray) -> np.ndarray:
            x, y = (signer.batch_csr(h, ptr.astype(np.uint64), True, 1) for h in (a, b))
            return (x == y).mean(axis=1)

        found["FastSketchLSH"] = by_fastsketch
    except (ImportError, ValueError, RuntimeError):  # it takes powers of two only
        pass
    return found


def error_table(makers: dict[str, Estimator], k: int, pairs: int) -> dict[str, list[float]]:
    """Print the first table; return RMSE / theory at J = 0.5 by estimator, for the plot."""
    curves: dict[str, list[float]] = {name: [] for name in makers}
    print(f"k = {k}, {pairs} pairs a cell: bias (standard error), RMSE / theory")
    print("   n    J  " + "".join(f"{name:>28}" for name in makers))
    for s in (0.5, 0.8):
        for n in SIZES:
            left, right, ptr, truth = planted(np.random.default_rng(n), pairs, n, s)
            if truth == 1.0:
                continue
            line = f"{n:>5} {truth:.3f}"
            for name, estimate in makers.items():
                error = estimate(left, right, ptr) - truth
                ratio = float(np.sqrt((error**2).mean() / (truth * (1 - truth) / k)))
                line += f"{error.mean():+14.5f} ({error.std() / np.sqrt(pairs):.5f}) {ratio:.3f}"
                if s == 0.5:
                    curves[name].append(ratio)
            print(line, flush=True)
    return curves


def curve_table(pairs: int) -> tuple[list[float], list[float]]:
    """Print the second table (k = 128, b = 16, r = 8, sets of 4,000); return s and what was measured."""
    family = sketch.family("fastsim/1", {"k": 128, "slots": 8})
    bands = lsh.Bands(16, 8, family)
    rng = np.random.default_rng(1)
    points, measured = [], []
    print("\nb = 16, r = 8, k = 128, 8-bit slots\n    s   measured   1-(1-s^8)^16")
    for s in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95):
        a, b, ptr, truth = planted(rng, pairs, 4000, s)
        state = np.full(pairs, PRESENT, np.uint8)
        keys = [bands.keys(family.sign(Features(h, ptr, state))) for h in (a, b)]
        met = float((keys[0] == keys[1]).any(axis=1).mean())
        points.append(truth)
        measured.append(met)
        print(f"{truth:.3f}   {met:8.4f}   {lsh.curves.candidate_probability(truth, 16, 8):8.4f}")
    return points, measured


def main() -> None:
    parser = argparse.ArgumentParser(description="bias and error of estimates, and the banding curve")
    parser.add_argument("--peers", help="site-packages of an environment with rensa and FastSketchLSH")
    parser.add_argument("--k", type=int, default=128)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--plot", metavar="FILE", help="draw both tables (needs matplotlib)")
    args = parser.parse_args()
    curves = error_table(estimators(args.peers, args.k), args.k, args.pairs)
    points, measured = curve_table(min(args.pairs, 2000))
    if args.plot:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 5))
        for name, ratios in curves.items():
            left.semilogx(SIZES[-len(ratios) :], ratios, marker="o", label=name)
        left.set(
            xlabel="elements a set", ylabel="RMSE / theory", title=f"k = {args.k}, J = 0.5", ylim=(0.5, 1.2)
        )
        left.legend()
        fine = np.linspace(0, 1, 201)
        right.plot(fine, lsh.curves.candidate_probability(fine, 16, 8), label="1 - (1 - s^8)^16")
        right.plot(points, measured, "o", label="measured")
        right.set(xlabel="similarity", ylabel="shares a bucket", title="b = 16, r = 8")
        right.legend()
        figure.savefig(args.plot, dpi=120)


if __name__ == "__main__":
    main()
