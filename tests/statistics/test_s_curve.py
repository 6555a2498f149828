"""Case P4: the rate at which planted pairs become candidates, b = 16, r = 8, k = 128."""

import numpy as np
import pytest

from simindex import lsh, sketch
from tests.statistics.pairs import equal_slots, overlap, pair_features

EXPECTED = {0.5: 0.061, 0.6: 0.237, 0.7: 0.613, 0.8: 0.947, 0.9: 0.9999}


@pytest.mark.parametrize("name", ["fastsim/1", "minhash/1"])
def test_candidate_rates_follow_the_curve(name):
    """Seed 61, 2,000 pairs each, sets of 400 (minhash) and 4,000 (fastsim, so that slots are independent).

    Sets of 400: fastsim's slots are negatively correlated there; the next test bounds them from below.
    """
    family = sketch.family(name, {"k": 128, "slots": 8})
    bands = lsh.Bands(16, 8, family)
    rng = np.random.default_rng(61)
    n = 4000 if name == "fastsim/1" else 400
    for similarity, rounded in EXPECTED.items():
        common = overlap(n, similarity)
        a, b = pair_features(rng, 2_000, n, common)
        met = (bands.keys(family.sign(a)) == bands.keys(family.sign(b))).any(axis=1).mean()
        p = bands.candidate_probability(common / (2 * n - common))
        assert p == pytest.approx(rounded, abs=0.012)  # 8-bit slots and whole elements move it a little
        assert abs(met - p) < 4 * np.sqrt(p * (1 - p) / 2_000) + 1e-3


def test_small_sets_miss_no_more_than_stated():
    """Seed 62, 4,000 pairs a cell, sets of 30 to 400: recall of buckets and filter, 4 standard errors."""
    for threshold in (0.6, 0.8, 0.9):
        tuning = lsh.tune(threshold, recall=0.95)
        family, bands = tuning.family, tuning.bands
        rng = np.random.default_rng(62)
        for n in (30, 100, 400):
            common = int(
                np.ceil(2 * n * threshold / (1 + threshold) - 1e-9)
            )  # at or just above the threshold
            a, b = (family.sign(x) for x in pair_features(rng, 4_000, n, common))
            met = (bands.keys(a) == bands.keys(b)).any(axis=1)
            found = (met & (equal_slots(a, b, family.slot_bytes) >= tuning.min_equal)).mean()
            assert found > tuning.recall - 4 * np.sqrt(tuning.recall * (1 - tuning.recall) / 4_000)


def test_estimates_have_the_stated_spread_and_no_bias():
    """J = 0.5, k = 128, seed 63, 2,000 pairs of 2,000: sd 0.0442 within 4 standard errors, bias < 0.005."""
    family = sketch.family("fastsim/1", {"k": 128, "slots": 32})
    common = overlap(2_000, 0.5)
    a, b = pair_features(np.random.default_rng(63), 2_000, 2_000, common)
    estimates = family.estimate(equal_slots(family.sign(a), family.sign(b), 4).astype(np.uint16))
    assert abs(estimates.mean() - common / (4_000 - common)) < 0.005
    assert estimates.std() == pytest.approx(0.0442, rel=4 / np.sqrt(4_000))
