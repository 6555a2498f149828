"""Settings of fields: validated, stored, compared, described."""

import math

import numpy as np
import pytest

import simindex
from simindex.errors import FormatTooNew, SchemaError
from simindex.index.field import Field
from simindex.index.schema import Schema

THRESHOLDS = [0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1]


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("verify", ["exact", "estimate"])
def test_fields_survive_storing(threshold: float, verify: str) -> None:
    field = simindex.text(threshold=threshold, verify=verify, shingle="chars:5", keep=True, source="x")
    assert Field.from_dict(field.to_dict()) == field
    schema = Schema.build("c", {"f": field, "g": simindex.tokens()}, "int")
    again = Schema.from_bytes(schema.to_bytes())
    assert again == schema
    again.check_same(schema)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, math.nan, math.inf, "0.8", None, True, 0, 0.0, [0.8]])
def test_thresholds_outside_are_refused_by_name(threshold: object) -> None:
    with pytest.raises(SchemaError, match="threshold"):
        simindex.text(threshold=threshold)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"thresold": 0.8}, "did you mean 'threshold'"),
        ({"band": (1, 2)}, "did you mean 'bands'"),
        ({"verify": "exac"}, "did you mean 'exact'"),
        ({"family": "fastsim"}, "did you mean 'fastsim/1'"),
        ({"k": 0}, "k is 0"),
        ({"k": True}, "k is True"),
        ({"k": 1.5}, "k is 1.5"),
        ({"recall": 1.5}, "recall is 1.5"),
        ({"recall": 0.9, "bands": (16, 6)}, "give one of them"),
        ({"bands": (16, 9)}, "144 slots"),
        ({"bands": (0, 5)}, "bands is 0"),
        ({"bands": (5, 0)}, "rows of a band is 0"),
        ({"bands": 16}, "bands is 16"),
        ({"bands": (1.5, 2)}, "1.5"),
        ({"slots": 9}, "slots is 9"),
        ({"keep": 1}, "keep is 1"),
        ({"force": "yes"}, "force is 'yes'"),
        ({"source": ""}, "source is ''"),
        ({"seed": 3}, "minhash/1"),
        ({"scheme": "affine32"}, "minhash/1"),
    ],
)
def test_bad_settings_are_named(settings: dict, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        simindex.tokens(**settings)
    assert words in str(caught.value)


@pytest.mark.parametrize("bands", [(16, 8), (9, 13), (128, 1), (1, 128)])
def test_all_bands_that_fit_work_and_say_what_is_unused(bands: tuple[int, int]) -> None:
    field = simindex.tokens(threshold=0.8, bands=bands, force=True)
    assert (field.bands, field.rows) == bands
    unused = 128 - bands[0] * bands[1]
    assert field.scheme.unused == unused
    assert (f"{unused} slots unused" in field.describe()) == (unused > 0)


def test_300_bands_of_one_row_work() -> None:
    assert simindex.tokens(threshold=0.5, k=300, bands=(300, 1)).bands == 300


def test_narrow_bands_take_16_bit_slots_unless_told_otherwise() -> None:
    assert simindex.tokens(threshold=0.5, bands=(42, 3)).family.slot_bits == 16
    assert simindex.tokens(threshold=0.5, bands=(42, 3), slots=8).family.slot_bits == 8
    assert simindex.tokens(threshold=0.8).family.slot_bits == 8


def test_settings_that_lose_too_much_are_refused_without_force() -> None:
    with pytest.raises(SchemaError, match="force=True"):
        simindex.text(threshold=0.8, bands=(9, 13))
    field = simindex.text(threshold=0.8, bands=(9, 13), force=True)
    assert "forced" in field.describe()
    assert field.candidate_recall(0.8) < 0.8


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.8, 0.9])
@pytest.mark.parametrize("recall", [0.9, 0.99])
def test_tuned_bands_reach_the_recall_asked(threshold: float, recall: float) -> None:
    field = simindex.tokens(threshold=threshold, recall=recall)
    assert field.candidate_recall(threshold) >= recall - 1e-9


def test_description_states_the_recall_near_the_threshold() -> None:
    exact, estimate = simindex.text(threshold=0.8), simindex.text(threshold=0.8, verify="estimate")
    points = [s for s, _ in exact.recall_table()]
    assert points == [0.75, 0.8, 0.85, 0.9]
    assert "at 0.8" in exact.describe("body")
    at = dict(exact.recall_table())[0.8]
    half = dict(estimate.recall_table())[0.8]
    assert at >= 0.99
    assert 0.4 < half < 0.6


def test_least_equal_slots_are_monotonous_and_certain_is_lower() -> None:
    field = simindex.tokens(threshold=0.8)
    for threshold in np.arange(0.05, 1.0, 0.05):
        sure, usual = field.least_for(float(threshold), True), field.least_for(float(threshold), False)
        assert 0 <= sure <= usual
        assert field.family.pass_probability(float(threshold), sure) > 1 - 1e-8
    assert field.least_for(0.0, True) == 0


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "fields"),
        ({"key": simindex.text()}, "reserved"),
        ({"where": simindex.text()}, "reserved"),
        ({"1a": simindex.text()}, "field name"),
        ({"a-b": simindex.text()}, "field name"),
        ({"a": "text"}, "simindex.text"),
        ({"a": simindex.text(source="k")}, "reserved"),
        ({"a": simindex.text(source="b"), "b": simindex.text(source="c")}, "another column"),
    ],
)
def test_bad_field_names_and_values_are_refused(fields: dict, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema.build("c", fields)


@pytest.mark.parametrize("name", ["", 5, None, "a\nb", "x" * 256])
def test_bad_collection_names_are_refused(name: object) -> None:
    with pytest.raises(SchemaError, match="collection name"):
        Schema.build(name, {"a": simindex.text()})


def test_schemas_of_a_newer_format_are_refused() -> None:
    import msgpack

    data = msgpack.unpackb(Schema.build("c", {"a": simindex.text()}).to_bytes())
    data["format"] = 2
    with pytest.raises(FormatTooNew, match="format 2"):
        Schema.from_bytes(msgpack.packb(data))
