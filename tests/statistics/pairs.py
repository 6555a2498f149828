"""Pairs of random sets with a known Jaccard similarity, as hashed features."""

import numpy as np

from simindex.types import PRESENT, Features


def overlap(n: int, similarity: float) -> int:
    """Common elements of two sets of n whose similarity comes closest to the wish."""
    return min(n, max(0, round(2 * n * similarity / (1 + similarity))))


def pair_features(rng: np.random.Generator, pairs: int, n: int, common: int) -> tuple[Features, Features]:
    """Return Features of pairs of sets of n that share `common` elements; J = common / (2n - common)."""
    shared, own_a, own_b = (
        rng.integers(0, 2**64, (pairs, size), dtype=np.uint64) for size in (common, n - common, n - common)
    )
    ptr = np.arange(0, pairs * n + 1, n, dtype=np.int64)
    state = np.full(pairs, PRESENT, np.uint8)
    return (
        Features(np.concatenate([shared, own_a], axis=1).ravel(), ptr, state),
        Features(np.concatenate([shared, own_b], axis=1).ravel(), ptr, state),
    )


def equal_slots(a: np.ndarray, b: np.ndarray, slot_bytes: int) -> np.ndarray:
    """Return the number of equal slots of each pair of signatures."""
    return (a == b).reshape(len(a), -1, slot_bytes).all(axis=2).sum(axis=1)
