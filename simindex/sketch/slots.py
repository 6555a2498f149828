"""What a number of equal slots says: estimate, interval, filter and the chance to pass it.

A slot of b bits is equal if the underlying minima are equal (probability s, the similarity) or, with
probability c = 2^-b, by accident: p = s + (1 - s) c. Source of the correction: Li and Koenig, "b-bit
minwise hashing", 2010, in the limit of sets that are small beside the universe of hashes.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, isfinite, lgamma, log, sqrt
from statistics import NormalDist
from typing import overload

import numpy as np

from simindex.errors import QueryError, shown
from simindex.types import F64, U16


@dataclass(frozen=True, slots=True)
class Agreement:
    """The statistics of k slots of `bits` bits."""

    k: int
    bits: int

    @property
    def accident(self) -> float:
        """P[two unequal slots agree]."""
        return 2.0**-self.bits

    def probability(self, s: float) -> float:
        """Return P[a slot is equal] at similarity s (0 to 1)."""
        s = _unit("similarity", s)
        return s + (1.0 - s) * self.accident

    @overload
    def estimate(self, equal: int) -> float: ...
    @overload
    def estimate(self, equal: U16) -> F64: ...
    def estimate(self, equal: int | U16) -> float | F64:
        """Return the estimated similarity: (equal / k - c) / (1 - c), and 0 where that is negative.

        Unbiased but for the cut at 0 (felt only below a similarity of about 1/k).
        Standard deviation sqrt(p (1 - p) / k) / (1 - c) for independent slots; less for fastsim on small
        sets.
        """
        raw = (np.asarray(equal, np.float64) / self.k - self.accident) / (1.0 - self.accident)
        return _like(equal, np.clip(raw, 0.0, 1.0))

    @overload
    def interval(self, equal: int, confidence: float = 0.95) -> tuple[float, float]: ...
    @overload
    def interval(self, equal: U16, confidence: float = 0.95) -> tuple[F64, F64]: ...
    def interval(self, equal: int | U16, confidence: float = 0.95) -> tuple[float | F64, float | F64]:
        """Return (low, high): Wilson's score interval for p, carried over to the similarity.

        Its coverage, averaged over s, is the confidence; slots of small fastsim sets vary less than
        independent ones, so there it covers more (tests/statistics/test_intervals.py measures both).
        """
        if not (isfinite(confidence) and 0.0 < confidence < 1.0):
            raise QueryError(f"confidence is {shown(confidence)}: it lies between 0 and 1")
        z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
        p = np.asarray(equal, np.float64) / self.k
        shrunk = 1.0 + z * z / self.k
        middle = (p + z * z / (2.0 * self.k)) / shrunk
        half = z * np.sqrt(p * (1.0 - p) / self.k + z * z / (4.0 * self.k * self.k)) / shrunk
        c = self.accident
        low = np.clip((middle - half - c) / (1.0 - c), 0.0, 1.0)
        high = np.clip((middle + half - c) / (1.0 - c), 0.0, 1.0)
        # Rounding must not push an end beyond the estimate at the two extremes.
        low, high = np.where(p == 0.0, 0.0, low), np.where(p == 1.0, 1.0, high)
        return _like(equal, low), _like(equal, high)

    def min_equal(self, threshold: float, sigmas: float = 3.0) -> int:
        """Return the least number of equal slots within `sigmas` standard deviations below the threshold's.

        k for a threshold of 1: all slots must be equal.
        """
        p = self.probability(_unit("threshold", threshold))
        if not (isfinite(sigmas) and sigmas >= 0.0):
            raise QueryError(f"sigmas is {shown(sigmas)}: a number that is not negative")
        expected = self.k * p - sigmas * sqrt(self.k * p * (1.0 - p))
        return min(self.k, max(0, ceil(expected - 1e-9)))

    def pass_probability(self, s: float, min_equal: int) -> float:
        """Return P[at least min_equal of k independent slots are equal] at similarity s.

        fastsim's slots vary less than independent ones, so for min_equal below the mean (every filter) this
        is a lower bound there.
        """
        if min_equal <= 0:
            return 1.0
        if min_equal > self.k:
            return 0.0
        return float(_upper_tail(self.k, self.probability(s))[min_equal])


def _like(equal: int | U16, values: F64) -> float | F64:
    return float(values) if np.ndim(equal) == 0 else values


def _unit(what: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise QueryError(f"{what} is {shown(value)}, not a number")
    if not 0.0 <= value <= 1.0:
        raise QueryError(f"{what} is {shown(value)}: it lies between 0 and 1")
    return float(value)


@lru_cache(maxsize=8)
def _log_choose(k: int) -> F64:
    return np.array([lgamma(k + 1) - lgamma(i + 1) - lgamma(k - i + 1) for i in range(k + 1)])


@lru_cache(maxsize=256)
def _upper_tail(k: int, p: float) -> F64:
    """P[X >= i] for i = 0..k, X binomial(k, p)."""
    if p >= 1.0:
        return np.ones(k + 1)
    if p <= 0.0:
        return np.concatenate([[1.0], np.zeros(k)])
    i = np.arange(k + 1)
    mass = np.exp(_log_choose(k) + i * log(p) + (k - i) * np.log1p(-p))
    tail: F64 = np.minimum(1.0, np.cumsum(mass[::-1])[::-1])
    return tail
