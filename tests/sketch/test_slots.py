"""Estimates, intervals and filters from numbers of equal slots, against their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from simindex import sketch
from simindex.errors import QueryError
from simindex.sketch.slots import Agreement

agreements = st.builds(Agreement, st.integers(1, 600), st.sampled_from([8, 16, 32]))


@given(agreements)
def test_estimates_invert_the_expected_number_of_equal_slots(a):
    assert a.estimate(a.k) == 1.0
    assert a.estimate(0) == 0.0
    equal = np.arange(a.k + 1, dtype=np.uint16)
    estimates = a.estimate(equal)
    assert (np.diff(estimates) >= 0).all()
    for e in (a.k // 2, a.k):
        if estimates[e] > 0.0:
            assert a.probability(float(estimates[e])) * a.k == pytest.approx(e)


@given(agreements, st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_intervals_hold_their_estimate_and_widen_with_confidence(a, confidence):
    equal = np.arange(a.k + 1, dtype=np.uint16)
    low, high = a.interval(equal, confidence)
    estimate = a.estimate(equal)
    assert (low <= estimate).all()
    assert (estimate <= high).all()
    assert high[-1] == 1.0
    assert low[0] == 0.0
    wide_low, wide_high = a.interval(equal, 0.9999)
    assert (wide_low <= low).all()
    assert (wide_high >= high).all()
    assert a.interval(a.k // 2, confidence) == (low[a.k // 2], high[a.k // 2])


@given(st.floats(0, 1), st.integers(1, 300), st.integers(-3, 303))
@settings(max_examples=200)
def test_pass_probability_is_the_binomial_tail(s, k, least):
    a = Agreement(k, 8)
    assert a.pass_probability(s, least) == pytest.approx(
        stats.binom.sf(least - 1, k, a.probability(s)), abs=1e-9
    )


@given(st.floats(0, 1), st.sampled_from([64, 128, 256, 1000]), st.sampled_from([0.0, 1.0, 3.0, 4.5]))
def test_the_filter_lies_sigmas_below_the_mean(s, k, sigmas):
    a = Agreement(k, 8)
    p = a.probability(s)
    bound = k * p - sigmas * np.sqrt(k * p * (1 - p))
    least = a.min_equal(s, sigmas)
    assert least >= min(max(bound - 1e-6, 0), k)
    assert least - 1 < bound + 1e-6 or least == 0


def test_threshold_one_means_equal_signatures():
    assert sketch.family("fastsim/1").min_equal(1.0) == 128
    assert sketch.family("fastsim/1").pass_probability(1.0, 128) == 1.0
    assert sketch.family("fastsim/1").min_equal(0.0) == 0


def test_three_sigmas_pass_nearly_all_pairs_at_the_threshold():
    for s in np.arange(0.1, 1.0, 0.05):
        a = Agreement(128, 8)
        assert a.pass_probability(float(s), a.min_equal(float(s))) > 0.995


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 95, float("nan")])
def test_confidences_outside_0_to_1_are_refused(confidence):
    with pytest.raises(QueryError, match="confidence is"):
        Agreement(128, 8).interval(5, confidence)
