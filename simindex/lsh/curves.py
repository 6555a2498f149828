"""Banding curves: with which probability pairs of a similarity become candidates.

s similarity, b bands, r rows a band, p = P[a slot is equal]; for slots of `bits` bits p = s + (1 - s) /
2^bits.
Source: Leskovec, Rajaraman, Ullman, "Mining of massive datasets", chapter 3.
"""

from typing import overload

import numpy as np

from simindex.types import F64

STEP = 0.001  # of the integrals over s


@overload
def slot_probability(s: float, bits: int | None) -> float: ...
@overload
def slot_probability(s: F64, bits: int | None) -> F64: ...
def slot_probability(s: float | F64, bits: int | None) -> float | F64:
    """Return s + (1 - s) / 2^bits; bits=None is the ideal slot that never agrees by accident."""
    return s if bits is None else s + (1.0 - s) * 2.0**-bits


@overload
def candidate_probability(s: float, bands: int, rows: int, bits: int | None = None) -> float: ...
@overload
def candidate_probability(s: F64, bands: int, rows: int, bits: int | None = None) -> F64: ...
def candidate_probability(s: float | F64, bands: int, rows: int, bits: int | None = None) -> float | F64:
    """Return 1 - (1 - p^r)^b, without cancellation where it is small."""
    p = np.asarray(slot_probability(s, bits), np.float64)
    with np.errstate(divide="ignore"):
        value = -np.expm1(bands * np.log1p(-(p**rows)))
    return float(value) if np.ndim(s) == 0 else value


def midpoints(low: float, high: float) -> F64:
    """Return the midpoints of steps of about STEP that divide low..high evenly."""
    steps = max(1, round((high - low) / STEP))
    middle: F64 = low + (np.arange(steps, dtype=np.float64) + 0.5) * ((high - low) / steps)
    return middle


def mean_below(threshold: float, bands: int, rows: int, bits: int | None = None) -> float:
    """Return the mean candidate probability of pairs whose similarity is spread evenly over 0..threshold."""
    if threshold <= 0.0:
        return float(candidate_probability(0.0, bands, rows, bits))
    return float(np.mean(candidate_probability(midpoints(0.0, threshold), bands, rows, bits)))


def curve_threshold(bands: int, rows: int) -> float:
    """Return (1/b)^(1/r), near which the curve is steepest."""
    return float((1.0 / bands) ** (1.0 / rows))
