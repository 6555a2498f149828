"""Coverage of the 95 % interval, J = 0.1 ... 0.9: at least 93 %; at most 97 % for sets much larger than k."""

import numpy as np
import pytest
from scipy import stats

from simindex import sketch
from simindex.sketch.slots import Agreement
from tests.statistics.pairs import equal_slots, overlap, pair_features

GRID = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("k", [64, 128, 256, 1000])
def test_exact_coverage_for_independent_slots(k, bits):
    """No sampling: the binomial probabilities of all counts whose interval holds J are added."""
    a = Agreement(k, bits)
    low, high = a.interval(np.arange(k + 1, dtype=np.uint16))
    fine = np.linspace(0.1, 0.9, 161)
    covered = []
    for s in fine:
        inside = (low <= s) & (s <= high)
        covered.append(stats.binom.pmf(np.arange(k + 1), k, a.probability(float(s)))[inside].sum())
    assert 0.945 < np.mean(covered) < 0.957
    assert min(covered) > 0.92


@pytest.mark.parametrize("k", [64, 128, 256])
@pytest.mark.parametrize(("n", "pairs"), [(10, 1_000), (100, 1_000), (3000, 300)])
def test_measured_coverage_of_fastsim(k, n, pairs):
    """Seed k + n. Small sets vary less than independent slots, so they are covered more often."""
    family = sketch.family("fastsim/1", {"k": k, "slots": 8})
    rng = np.random.default_rng(k + n)
    covered = []
    for similarity in GRID:
        common = overlap(n, similarity)
        truth = common / (2 * n - common)
        a, b = pair_features(rng, pairs, n, common)
        low, high = family.interval(equal_slots(family.sign(a), family.sign(b), 1).astype(np.uint16))
        covered.append(((low <= truth) & (truth <= high)).mean())
    # 2,700 pairs and more: the standard error of the mean is below 0.0045.
    assert np.mean(covered) > 0.93
    if n >= 10 * k:
        assert np.mean(covered) < 0.97
