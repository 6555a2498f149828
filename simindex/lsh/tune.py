"""Choosing bands and rows: so that a wished recall holds at the threshold, or as datasketch chooses."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log1p
from typing import Any

import numpy as np

from simindex.errors import SchemaError, shown
from simindex.lsh import curves
from simindex.lsh.bands import Bands
from simindex.sketch import SlotFamily
from simindex.sketch import family as make_family

NARROW_ROWS = 3  # bands of this many rows or fewer get 16-bit slots: 24 key bits are too few
_SIGMAS = (3.0, 3.5, 4.0, 4.5, 5.0, 6.0)


@dataclass(frozen=True)
class Tuning:
    """A choice of bands for a family and a threshold, and what to expect of it.

    recall:           P[a pair exactly at the threshold is a candidate that passes the filter]; lower bound.
    recall_at:        the same at threshold - 0.05, threshold, + 0.05, + 0.1 (within 0..1).
    min_equal:        the filter: candidates with fewer equal slots are discarded.
    sigmas:           how many standard deviations below the threshold the filter lies.
    false_candidates: mean candidate probability of pairs spread evenly over similarities 0..threshold.
    background:       candidate probability of two unrelated items (similarity 0).
    unused:           slots in no band.
    """

    family: SlotFamily
    bands: Bands
    threshold: float
    min_equal: int
    sigmas: float
    recall: float
    recall_at: Mapping[float, float]
    false_candidates: float
    background: float
    unused: int


def describe(bands: Bands, threshold: float, sigmas: float = 3.0) -> Tuning:
    """Return what to expect of given bands at a threshold."""
    check_threshold(threshold)
    family = bands.family
    least = family.min_equal(threshold, sigmas)
    points = [round(threshold + d, 10) for d in (-0.05, 0.0, 0.05, 0.1)]
    recall_at = {s: bands.recall(s, least) for s in points if 0.0 <= s <= 1.0}
    below = [bands.candidate_probability(float(s)) for s in curves.midpoints(0.0, threshold)[::10]]
    return Tuning(
        family=family,
        bands=bands,
        threshold=threshold,
        min_equal=least,
        sigmas=sigmas,
        recall=bands.recall(threshold, least),
        recall_at=recall_at,
        false_candidates=float(np.mean(below)),
        background=bands.candidate_probability(0.0),
        unused=bands.unused,
    )


def tune(
    threshold: float,
    recall: float = 0.99,
    family: str = "fastsim/1",
    params: Mapping[str, Any] | None = None,
    mode: str = "recall",
) -> Tuning:
    """Return bands for a family (by name and parameters) and a threshold.

    mode "recall": the most rows a band (fewest candidates), then the fewest bands, with which buckets and
    filter together find a pair at the threshold with probability `recall` or more. Without "slots" among
    the parameters they are 8 bits wide, or 16 where the rows come out as NARROW_ROWS or fewer.
    mode "datasketch": datasketch's choice, which weighs false positives and negatives equally and promises
    no recall.
    Raises SchemaError if no bands reach the recall, naming the best that can be had.
    """
    check_threshold(threshold)
    if mode not in ("recall", "datasketch"):
        raise SchemaError(f"unknown tuning mode {shown(mode)}: 'recall' or 'datasketch'")
    given = dict(params or {})
    made: SlotFamily = make_family(family, given)
    tuning = _tune_one(made, threshold, recall, mode)
    if "slots" not in given and tuning.bands.rows <= NARROW_ROWS and made.slot_bits < 16:
        wide: SlotFamily = make_family(family, {**given, "slots": 16})
        tuning = _tune_one(wide, threshold, recall, mode)
    return tuning


def _tune_one(family: SlotFamily, threshold: float, recall: float, mode: str) -> Tuning:
    if mode == "datasketch":
        b, r = datasketch_optimum(threshold, family.k)
        return describe(Bands(b, r, family), threshold)
    b, r, sigmas = recall_first(family, threshold, recall)
    return describe(Bands(b, r, family), threshold, sigmas)


def recall_first(family: SlotFamily, threshold: float, recall: float) -> tuple[int, int, float]:
    """Return (bands, rows, sigmas): the largest r, then the smallest b, that reach the recall.

    The filter lies 3 standard deviations below the threshold, or further if the recall asks for more than
    that lets through.
    """
    if not 0.0 < recall < 1.0:
        raise SchemaError(f"recall is {shown(recall)}: it lies between 0 and 1, both excluded")
    p = family.slot_probability(threshold)
    for sigmas in _SIGMAS:
        passed = family.pass_probability(threshold, family.min_equal(threshold, sigmas))
        wish = recall / passed
        if wish >= 1.0 - (1.0 - recall) / 10.0:
            continue  # the filter alone would use up nearly all that may be missed
        for r in range(family.k, 0, -1):
            b = _bands_for(p**r, wish)
            if b * r <= family.k:
                return b, r, sigmas
    best = Bands(family.k, 1, family).recall(threshold, family.min_equal(threshold, _SIGMAS[-1]))
    raise SchemaError(
        f"no bands of {family.k} slots reach a recall of {recall} at threshold {threshold}: "
        f"the best is {best:.4f} ({family.k} bands of one row); raise k or lower the recall"
    )


def _bands_for(band_probability: float, wish: float) -> int:
    """The fewest bands with 1 - (1 - q)^b >= wish."""
    if band_probability >= 1.0:
        return 1
    if band_probability <= 0.0:
        return 1 << 30
    return max(1, ceil(min(log1p(-wish) / log1p(-band_probability), 1e9) - 1e-12))


@lru_cache(maxsize=64)
def datasketch_optimum(
    threshold: float, k: int, false_positive_weight: float = 0.5, false_negative_weight: float = 0.5
) -> tuple[int, int]:
    """Return datasketch's (bands, rows): least weighted area of false positives and negatives, ideal slots.

    Its integrals over similarity are taken by midpoints of step 0.001.
    """
    check_threshold(threshold)
    below = curves.midpoints(0.0, threshold) if threshold > 0.0 else np.zeros(0)
    above = curves.midpoints(threshold, 1.0) if threshold < 1.0 else np.zeros(0)
    best, choice = float("inf"), (1, 1)
    for b in range(1, k + 1):
        for r in range(1, k // b + 1):
            positive = (
                threshold * float(np.mean(curves.candidate_probability(below, b, r))) if len(below) else 0.0
            )
            negative = (
                (1.0 - threshold) * float(np.mean(1.0 - curves.candidate_probability(above, b, r)))
                if len(above)
                else 0.0
            )
            error = positive * false_positive_weight + negative * false_negative_weight
            if error < best:
                best, choice = error, (b, r)
    return choice


def check_threshold(threshold: Any) -> float:
    """Return the threshold as a float; raise SchemaError unless it is a number from 0 to 1."""
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float, np.integer, np.floating)):
        raise SchemaError(f"threshold is {shown(threshold)}, not a number")
    if not 0.0 <= threshold <= 1.0:
        raise SchemaError(f"threshold is {shown(threshold)}: it lies between 0 and 1")
    return float(threshold)
