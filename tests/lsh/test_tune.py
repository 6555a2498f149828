"""Curves and the choice of bands, against published tables, simulation and their own promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex import lsh, sketch
from simindex.errors import SchemaError
from simindex.lsh import curves

# Mining of massive datasets, section 3.4.2: b = 20, r = 5.
MMDS = {0.2: 0.006, 0.3: 0.047, 0.4: 0.186, 0.5: 0.470, 0.6: 0.802, 0.7: 0.975, 0.8: 0.9996}


def test_curve_equals_the_textbook_table():
    for s, value in MMDS.items():
        assert lsh.curves.candidate_probability(s, 20, 5) == pytest.approx(value, abs=6e-4)
    assert curves.curve_threshold(16, 4) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("b", "r", "values"),
    [
        (14, 8, (0.0533, 0.2111, 0.5645, 0.9235, 0.9996)),
        (16, 8, (0.0607, 0.2374, 0.6133, 0.9470, 0.9999)),
        (8, 16, (0.0001, 0.0023, 0.0263, 0.2042, 0.8059)),
        (26, 11, (0.0126, 0.0902, 0.4050, 0.9032, 0.9999)),
    ],
)
def test_curve_equals_published_settings(b, r, values):
    for s, value in zip((0.5, 0.6, 0.7, 0.8, 0.9), values, strict=True):
        assert curves.candidate_probability(s, b, r) == pytest.approx(value, abs=6e-5)


def test_curve_keeps_its_precision_where_it_is_tiny():
    assert curves.candidate_probability(1e-3, 16, 8) == pytest.approx(16e-24, rel=1e-6)
    assert curves.candidate_probability(1.0, 16, 8) == 1.0


@pytest.mark.parametrize(
    ("k", "choices"),
    [
        (64, [(14, 4), (10, 6), (8, 8), (5, 11), (3, 21)]),
        (128, [(25, 5), (18, 7), (14, 9), (9, 13), (5, 25)]),
        (256, [(42, 6), (32, 8), (25, 10), (17, 15), (9, 28)]),
    ],
)
def test_datasketch_mode_equals_datasketchs_table(k, choices):
    for threshold, (b, r) in zip((0.5, 0.6, 0.7, 0.8, 0.9), choices, strict=True):
        tuning = lsh.tune(threshold, params={"k": k}, mode="datasketch")
        assert (tuning.bands.bands, tuning.bands.rows) == (b, r)


@pytest.mark.parametrize("threshold", [0.3, 0.55, 0.8, 0.95])
def test_datasketch_mode_equals_the_real_package(threshold):
    lsh_module = pytest.importorskip("datasketch.lsh")
    assert lsh.datasketch_optimum(threshold, 64) == lsh_module._optimal_param(threshold, 64, 0.5, 0.5)


@given(
    st.sampled_from([32, 64, 100, 128, 256]),
    st.floats(0.2, 1.0),
    st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 0.999]),
    st.sampled_from([8, 16, None]),
)
@settings(max_examples=150, deadline=None)
def test_the_choice_keeps_its_promise_and_no_larger_rows_would(k, threshold, recall, slots):
    params = {"k": k} if slots is None else {"k": k, "slots": slots}
    try:
        tuning = lsh.tune(threshold, recall, params=params)
    except SchemaError as error:
        assert "the best is" in str(error)  # noqa: PT017
        return
    b, r, family = tuning.bands.bands, tuning.bands.rows, tuning.family
    assert b * r + tuning.unused == k
    assert tuning.recall >= recall
    assert tuning.recall == tuning.bands.recall(threshold, tuning.min_equal)
    assert slots is not None or family.slot_bits == (16 if r <= 3 else 8)
    if r < k:
        other = lsh.Bands(k // (r + 1), r + 1, family)
        assert other.recall(threshold, tuning.min_equal) < recall
    if b > 1:
        assert lsh.Bands(b - 1, r, family).recall(threshold, tuning.min_equal) < recall
    values = list(tuning.recall_at.values())
    assert values == sorted(values)
    assert tuning.background <= tuning.false_candidates <= 1.0 or threshold == 0


def test_default_choice_is_stable():
    """Stored schemas keep their bands, but users compare: changing this table is a change to report."""
    found = {
        t: (lsh.tune(t).bands.bands, lsh.tune(t).bands.rows, lsh.tune(t).family.slot_bits)
        for t in (0.5, 0.7, 0.8, 0.9)
    }
    assert found == {0.5: (36, 3, 16), 0.7: (18, 4, 8), 0.8: (16, 6, 8), 0.9: (12, 10, 8)}


def test_recall_beyond_the_filter_widens_it():
    tuning = lsh.tune(0.8, recall=0.9995, params={"k": 256})
    assert tuning.sigmas > 3.0
    assert tuning.recall >= 0.9995


def test_threshold_one_finds_equal_signatures_with_one_band():
    tuning = lsh.tune(1.0)
    assert (tuning.bands.bands, tuning.bands.rows, tuning.min_equal, tuning.recall) == (1, 128, 128, 1.0)


def test_the_product_of_buckets_and_filter_bounds_what_a_simulation_finds():
    """Independent slots; seed 7, 200,000 pairs a cell, alpha: 4 standard errors."""
    rng = np.random.default_rng(7)
    family = sketch.family("fastsim/1", {"k": 64})
    bands = lsh.Bands(8, 8, family)
    for s in (0.7, 0.8, 0.85):
        equal = rng.random((200_000, 64)) < family.slot_probability(s)
        for least in (40, 48, 56):
            met = equal.reshape(-1, 8, 8).all(axis=2).any(axis=1) & (equal.sum(axis=1) >= least)
            bound = bands.recall(s, least)
            assert met.mean() > bound - 4 * np.sqrt(bound * (1 - bound) / len(met) + 1e-12)
        bucket = equal.reshape(-1, 8, 8).all(axis=2).any(axis=1).mean()
        p = bands.candidate_probability(s)
        assert abs(bucket - p) < 4 * np.sqrt(p * (1 - p) / len(equal))


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan"), "0.8", True, None])
def test_thresholds_outside_0_to_1_are_named(threshold):
    """Case P1."""
    with pytest.raises(SchemaError, match="threshold is"):
        lsh.tune(threshold)


def test_impossible_and_misspelt_wishes_are_named():
    with pytest.raises(
        SchemaError, match=r"reach a recall of 0.99999 at threshold 0.8: the best is 0.99\d\d"
    ):
        lsh.tune(0.8, recall=0.99999, params={"k": 4})
    with pytest.raises(SchemaError, match=r"recall is 1\.0"):
        lsh.tune(0.8, recall=1.0)
    with pytest.raises(SchemaError, match="unknown tuning mode 'fast'"):
        lsh.tune(0.8, mode="fast")
