"""Packed sets: format, width, robustness, and exact intersection, at every instruction-set level."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels_heap import heap_of

from simindex import kernels
from simindex.errors import CorruptStore
from simindex.kernels.reference import sets as twin

LEVELS = kernels.dispatch.available()
U64_MAX = 2**64 - 1

hash_values = st.one_of(
    st.integers(0, U64_MAX), st.integers(0, 40), st.integers(0, 40).map(lambda x: x << 58)
)
hash_lists = st.lists(hash_values, max_size=80)


def pack(values) -> bytes:
    hashes = np.array(values, np.uint64)
    packed, _ = kernels.pack_sets(hashes, np.array([0, len(hashes)], np.int64))
    return packed.data.tobytes()


def random_sets(rng, sizes) -> tuple[np.ndarray, np.ndarray]:
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return rng.integers(0, U64_MAX, int(ptr[-1]), dtype=np.uint64, endpoint=True), ptr


# The format -------------------------------------------------------------------------------------------------


@given(st.lists(hash_lists, max_size=6))
def test_packed_bytes_equal_the_twin(lists) -> None:
    hashes = np.array([h for one in lists for h in one], np.uint64)
    ptr = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    packed, counts = kernels.pack_sets(hashes, ptr)
    assert twin.packed_bytes(packed.data.tobytes(), packed.offsets) == twin.pack_sets(hashes, ptr)
    assert counts.tolist() == [len(twin.unpack_set(twin.pack_set(one))[0]) for one in lists]


@given(hash_lists, st.randoms())
def test_order_and_repetition_do_not_change_the_bytes(values, random) -> None:
    again = values + values[: len(values) // 2]
    random.shuffle(again)
    assert pack(again) == pack(values)


@given(hash_lists)
def test_unpack_gives_the_top_bits_of_each_distinct_hash(values) -> None:
    got, width = kernels.unpack_set(pack(values))
    assert width == kernels.set_width(len(set(values)))
    assert got.tolist() == sorted({v >> (64 - width) for v in values})


@pytest.mark.parametrize("n", [1, 2, 11, 12, 13, 100, 2047, 2048, 4096, 4097, 5000, 70_000, 300_000])
@pytest.mark.parametrize("shape", ["uniform", "few high bits", "one bucket", "repeats", "descending"])
def test_large_sets_of_any_shape_round_trip(n, shape) -> None:
    rng = np.random.default_rng(n)
    hashes = rng.integers(0, U64_MAX, n, dtype=np.uint64, endpoint=True)
    if shape == "few high bits":
        hashes &= np.uint64(0xFF00_0000_0000_FFFF)
    elif shape == "one bucket":
        hashes >>= np.uint64(30)
    elif shape == "repeats":
        hashes = hashes[rng.integers(0, max(1, n // 50), n)]
    elif shape == "descending":
        hashes = np.sort(hashes)[::-1].copy()
    packed, counts = kernels.pack_sets(hashes, np.array([0, n], np.int64))
    distinct = np.unique(hashes)
    width = kernels.set_width(len(distinct))
    expected = np.unique(distinct >> np.uint64(64 - width))
    got, got_width = kernels.unpack_set(packed.data)
    assert got_width == width
    assert np.array_equal(got, expected)
    assert counts[0] == len(expected)


def golden_sets() -> tuple[np.ndarray, np.ndarray]:
    """The sets of tools/golden/sets.py: hashes from whole-number arithmetic alone."""
    sizes = [0, 1, 2, 3, 7, 20, 63, 64, 65, 200, 1000]
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    i = np.arange(1, ptr[-1] + 1).astype(object)
    mixed = i * 0x9E3779B97F4A7C15 ^ (i * i * 0xD1342543DE82EF95 >> 7)
    return (mixed * 0xBF58476D1CE4E5B9 & U64_MAX).astype(np.uint64), ptr


def test_golden_bytes_of_packed_sets(golden) -> None:
    packed, _ = kernels.pack_sets(*golden_sets())
    assert packed.data.tobytes() == golden("packed_sets_1.bin")


@pytest.mark.parametrize(
    "n", [1, 5, 20, 60, 100, 500, 5_000, 100_000, 158_000, 262_144, 400_000, 741_456, 1_000_000]
)
def test_a_hash_takes_at_most_4_3_bytes(n) -> None:
    hashes = np.random.default_rng(n).integers(0, U64_MAX, n, dtype=np.uint64, endpoint=True)
    packed, counts = kernels.pack_sets(hashes, np.array([0, n], np.int64))
    assert len(packed.data) <= 4.3 * int(counts[0]) + 3


def test_size_formula_stays_within_4_3_bytes_for_every_size() -> None:
    for n in range(1, 1_000_001, 97):
        width = twin.set_width(n)
        low = twin.low_bits(width, n)
        assert (n * low + 7) // 8 + (n + 2 ** (width - low)) // 8 + 1 <= 4.3 * n + 4, n


# The width --------------------------------------------------------------------------------------------------


def test_width_formula_equals_the_twin_and_never_falls() -> None:
    sizes = sorted({n for e in range(33) for n in (2**e - 1, 2**e, 2**e + 1)} | {158_000, 262_143, 262_144})
    widths = [kernels.set_width(n) for n in sizes]
    assert widths == [twin.set_width(n) for n in sizes]
    assert widths == sorted(widths)


def test_chance_of_altering_a_jaccard_is_below_one_in_a_million_then_in_a_thousand() -> None:
    # Birthday bound over the union of u hashes: u^2 / 2^(w + 1), w the width of the smaller set (a hashes).
    for n in sorted({int(1.2**e) for e in range(100)}):
        width = kernels.set_width(n)
        union = 4.7 if n <= 158_000 else 2.36
        if n <= 80_000_000:
            most = 1e-6 if n <= 180 else 1e-5 if n <= 1800 else 1e-3
            assert (union * n) ** 2 / 2 ** (width + 1) < most, n


@pytest.mark.parametrize(
    ("a", "b", "shared"), [(2, 2, 0), (5, 5, 3), (20, 22, 19), (20, 70, 0), (60, 60, 30)]
)
def test_hashing_rarely_alters_the_jaccard_of_small_sets(a, b, shared) -> None:
    # seed 7; 100,000 pairs; expected at most 1e-6 * 100,000 = 0.1 altered; more than 3 has chance < 1e-5.
    rng = np.random.default_rng(7)
    pairs = 100_000
    union = rng.integers(0, U64_MAX, (pairs, a + b - shared), dtype=np.uint64, endpoint=True)
    altered = 0
    width = kernels.set_width(a)
    cut = union >> np.uint64(64 - width)
    cut.sort(axis=1)
    suspects = np.flatnonzero((cut[:, 1:] == cut[:, :-1]).any(axis=1))  # elsewhere no two hashes meet
    for i in suspects:
        one, other = union[i, :a], union[i, a - shared :]
        inter, size_a, size_b = kernels.intersect_packed(pack(one), pack(other))
        altered += inter * (a + b - shared) != shared * (size_a + size_b - inter)
    assert len(other) == b if len(suspects) else True
    assert altered <= 3
    sample = [i for i in range(0, pairs, 997) if i not in set(suspects.tolist())]
    for i in sample:
        assert kernels.intersect_packed(pack(union[i, :a]), pack(union[i, a - shared :])) == (shared, a, b)


# Broken bytes -----------------------------------------------------------------------------------------------


def survives(data: bytes, other: bytes) -> None:
    """Every reader must answer or raise CorruptStore; the answer of a reader is within the counts."""
    try:
        values, _ = kernels.unpack_set(data)
        assert len(values) == kernels.packed_count(data)
    except CorruptStore:
        pass
    for a, b in ((data, other), (other, data)):
        try:
            inter, size_a, size_b = kernels.intersect_packed(a, b)
            assert inter <= max(size_a, size_b)
        except CorruptStore:
            pass


@given(st.binary(max_size=80), hash_lists)
def test_any_bytes_are_a_set_or_corrupt(data, values) -> None:
    survives(data, pack(values))


@given(st.lists(hash_values, min_size=1, max_size=60), st.data())
def test_damaged_sets_are_sets_or_corrupt(values, data) -> None:
    whole = bytearray(pack(values))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    survives(bytes(whole), pack(values))
    survives(bytes(whole[: data.draw(st.integers(0, len(whole)))]), pack(values))


def test_cut_sets_are_corrupt() -> None:
    whole = pack(range(0, 2**63, 2**57))
    for length in range(1, len(whole)):
        with pytest.raises(CorruptStore, match="not a packed set"):
            kernels.unpack_set(whole[:length])


# Intersection -----------------------------------------------------------------------------------------------


def near_pair(rng, n, shared, m) -> tuple[np.ndarray, np.ndarray]:
    common = rng.integers(0, U64_MAX, shared, dtype=np.uint64, endpoint=True)
    return tuple(
        np.concatenate([common, rng.integers(0, U64_MAX, k - shared, dtype=np.uint64, endpoint=True)])
        for k in (n, m)
    )


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.8, 1.0])
def test_intersections_equal_the_twin(level, threshold) -> None:
    rng = np.random.default_rng(11)
    query = rng.integers(0, U64_MAX, 90, dtype=np.uint64, endpoint=True)
    lists = [query, query[:0], query[:72], query[:73], query[:45], query[40:]]
    for n, shared in [(90, 80), (112, 90), (5, 5), (500, 90), (4000, 88), (90, 0), (1, 0), (1, 1), (200, 60)]:
        lists.append(np.concatenate([query[:shared], rng.integers(0, U64_MAX, n - shared, dtype=np.uint64)]))
    # Hashes that agree in their top bits: repeats after the cut, and crowded buckets.
    lists.append(
        np.concatenate([query[:80], query[:80] ^ np.uint64(1 << 12), query[:80] ^ np.uint64(1 << 40)])
    )
    lists.append(query[0] ^ np.arange(200, dtype=np.uint64) << np.uint64(38))
    ptr = np.concatenate([[0], np.cumsum([len(x) for x in lists])]).astype(np.int64)
    packed, counts = kernels.pack_sets(np.concatenate(lists), ptr)
    strings = twin.packed_bytes(packed.data.tobytes(), packed.offsets)
    heap = heap_of(strings, rows_per_block=4, first_row=1000)
    rows = np.arange(1000, 1000 + len(strings), dtype=np.uint32)
    with kernels.dispatch.forced(level):
        for q in strings:
            expected = [twin.intersect(q, s, threshold) for s in strings]
            inter, size_q, sizes = kernels.intersect_sets(q, heap.first_rows, heap.addresses, rows, threshold)
            assert inter.tolist() == [e[0] for e in expected]
            assert (size_q, sizes.tolist()) == (expected[0][1], [e[2] for e in expected])
            assert sizes.tolist() == counts.tolist()
        a, b = np.repeat(rows, len(rows)), np.tile(rows, len(rows))
        scores = kernels.jaccard_queries(
            packed.data,
            packed.offsets,
            (a - 1000).astype(np.int64),
            heap.first_rows,
            heap.addresses,
            b,
            threshold,
        )
        inter, size_a, size_b = kernels.intersect_pairs(heap.first_rows, heap.addresses, a, b, threshold)
        expected = [
            twin.intersect(strings[i - 1000], strings[j - 1000], threshold) for i, j in zip(a, b, strict=True)
        ]
        assert list(zip(inter.tolist(), size_a.tolist(), size_b.tolist(), strict=True)) == expected
        assert scores.tolist() == [i / (x + y - i) if i else 0.0 for i, x, y in expected]


@given(hash_lists, hash_lists, st.sampled_from(LEVELS), st.floats(0, 1))
@settings(max_examples=200)
def test_any_pair_equals_the_twin(a, b, level, threshold) -> None:
    heap = heap_of([pack(a), pack(b)])
    rows = np.array([0, 1], np.uint32)
    with kernels.dispatch.forced(level):
        got = kernels.intersect_pairs(heap.first_rows, heap.addresses, rows, rows[::-1].copy(), threshold)
        assert kernels.intersect_packed(pack(a), pack(b)) == twin.intersect(pack(a), pack(b))
    assert tuple(x[0] for x in got) == twin.intersect(pack(a), pack(b), threshold)
    assert tuple(x[1] for x in got) == twin.intersect(pack(b), pack(a), threshold)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n", [60, 500, 5000, 60_000])
def test_large_intersections_are_exact(level, n) -> None:
    rng = np.random.default_rng(n)
    for shared in (0, n // 2, n - n // 10, n - 1):
        a, b = near_pair(rng, n, shared, n + n // 20)
        pa, pb = pack(a), pack(b)
        va, vb = kernels.unpack_set(pa), kernels.unpack_set(pb)
        width = min(va[1], vb[1])
        expected = len(np.intersect1d(va[0] >> np.uint64(va[1] - width), vb[0] >> np.uint64(vb[1] - width)))
        with kernels.dispatch.forced(level):
            assert kernels.intersect_packed(pa, pb) == (expected, len(va[0]), len(vb[0]))
        assert expected >= shared


def test_sets_too_large_for_an_index_are_merged_exactly() -> None:
    n = 1_050_000  # above SI_MATCH_LARGE
    a = np.random.default_rng(1).integers(0, U64_MAX, n, dtype=np.uint64, endpoint=True)
    packed, counts = kernels.pack_sets(np.concatenate([a, a[: n - 1_000]]), np.array([0, n, 2 * n - 1_000]))
    first, second = packed.data[: packed.offsets[1]], packed.data[packed.offsets[1] :]
    assert kernels.intersect_packed(first, second) == (counts[1], counts[0], counts[1])
    assert kernels.intersect_packed(second, first) == (counts[1], counts[1], counts[0])


def test_equality_counts_for_every_fraction_as_python_divides() -> None:
    # Every denominator up to 2,000: all fractions up to 60, then twelve numerators each. With |A| = union and
    # B part of A, inter / union is p / q at inter = p and less at p - 1.
    rng = np.random.default_rng(5)
    for q in range(1, 2001):
        numerators = range(1, q + 1) if q <= 60 else rng.integers(1, q + 1, 12).tolist()
        for p in [*numerators, max(1, q * 4 // 5), q]:
            for inter in (p, p - 1):
                reaches = inter / q >= p / q
                assert (inter >= kernels.least_inter(q, inter, p / q)) == reaches, (p, q, inter)


def test_least_inter_is_the_first_that_reaches_for_every_small_pair() -> None:
    thresholds = [0.1, 0.2, 0.3, 1 / 3, 0.5, 0.6, 2 / 3, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0]
    for total in range(2, 400):
        for t in thresholds:
            first = next(i for i in range(total + 1) if i == total or i / (total - i) >= t)
            assert kernels.least_inter(total // 2, total - total // 2, t) == first, (total, t)


@pytest.mark.parametrize("level", LEVELS)
def test_a_stored_pair_exactly_at_the_threshold_passes(level) -> None:
    rng = np.random.default_rng(2)
    for n in (4, 8, 40, 400, 2000):
        common = rng.integers(0, U64_MAX, n, dtype=np.uint64)
        more = rng.integers(0, U64_MAX, n // 4, dtype=np.uint64)
        heap = heap_of([pack(common), pack(np.concatenate([common, more]))])
        rows = np.array([0, 1], np.uint32)
        with kernels.dispatch.forced(level):
            inter, _, _ = kernels.intersect_pairs(heap.first_rows, heap.addresses, rows[:1], rows[1:], 0.8)
            assert inter.tolist() == [n]
            inter, _, _ = kernels.intersect_pairs(
                heap.first_rows, heap.addresses, rows[:1], rows[1:], 0.8000001
            )
            assert inter.tolist() == [0]


# Bad input --------------------------------------------------------------------------------------------------


def test_bad_arguments_are_named() -> None:
    hashes = np.arange(4, dtype=np.uint64)
    with pytest.raises(ValueError, match="outside the 4 hashes"):
        kernels.pack_sets(hashes, np.array([0, 5], np.int64))
    with pytest.raises(ValueError, match="descends after item 0"):
        kernels.pack_sets(hashes, np.array([3, 1, 4], np.int64))
    with pytest.raises(ValueError, match="no entries"):
        kernels.pack_sets(hashes, np.array([], np.int64))
    heap = heap_of([pack([1])])
    row = np.array([0], np.uint32)
    with pytest.raises(ValueError, match=r"min_jaccard is 1\.5"):
        kernels.intersect_sets(pack([1]), heap.first_rows, heap.addresses, row, 1.5)
    with pytest.raises(ValueError, match="min_jaccard is nan"):
        kernels.intersect_sets(pack([1]), heap.first_rows, heap.addresses, row, float("nan"))
    with pytest.raises(ValueError, match="1 rows on one side, 2 on the other"):
        kernels.intersect_pairs(heap.first_rows, heap.addresses, row, np.array([0, 0], np.uint32), 0.5)


def test_a_row_without_original_and_a_broken_one_are_named() -> None:
    heap = heap_of([pack([1, 2]), b"\x00\x02\x03", pack([3])], first_row=7)
    query = pack([1, 2])
    with pytest.raises(CorruptStore, match="row 10 has no original"):
        kernels.intersect_sets(query, heap.first_rows, heap.addresses, np.array([7, 10], np.uint32))
    with pytest.raises(CorruptStore, match="row 6 has no original"):
        kernels.intersect_pairs(
            heap.first_rows, heap.addresses, np.array([6], np.uint32), np.array([7], np.uint32)
        )
    with pytest.raises(CorruptStore, match="original of row 8"):
        kernels.intersect_sets(query, heap.first_rows, heap.addresses, np.array([7, 9, 8], np.uint32))


def test_broken_offsets_of_a_block_are_corrupt() -> None:
    for broken in (0, 31, 2**31, 2**32 - 1):
        heap = heap_of([pack([1, 2, 3])] * 4)
        heap.blocks[0][32 + 8 : 32 + 12] = np.frombuffer(np.uint32(broken).tobytes(), np.uint8)
        with pytest.raises(CorruptStore, match="original of row 1"):
            kernels.intersect_sets(pack([1]), heap.first_rows, heap.addresses, np.array([0, 1], np.uint32))


def test_bad_queries_are_named() -> None:
    heap = heap_of([pack([1, 2])])
    data, row = np.frombuffer(b"\x00\x02\x03", np.uint8), np.array([0], np.uint32)

    def ask(offsets, query) -> None:
        of = np.array(query, np.int64)
        kernels.jaccard_queries(
            data, np.array(offsets, np.int64), of, heap.first_rows, heap.addresses, row, 0.5
        )

    with pytest.raises(CorruptStore, match="query 0 is not a packed set"):
        ask([0, 3], [0])
    with pytest.raises(IndexError, match="query 1"):
        ask([0, 3], [1])
    with pytest.raises(ValueError, match="outside the 3 bytes"):
        ask([0, 4], [0])
    with pytest.raises(ValueError, match="2 queries for 1 rows"):
        ask([0, 3], [0, 0])
    ask([0, 0], [0])


def test_empty_sets_match_nothing() -> None:
    packed, counts = kernels.pack_sets(np.empty(0, np.uint64), np.zeros(3, np.int64))
    assert (len(packed.data), counts.tolist()) == (0, [0, 0])
    assert kernels.unpack_set(b"")[0].tolist() == []
    assert kernels.intersect_packed(b"", pack([1])) == (0, 0, 1)
    assert kernels.jaccard_packed(b"", b"") == 0.0
    assert kernels.jaccard_packed(pack([1, 2, 3]), pack([2, 3, 4, 5])) in (0.4, 1.0)


def test_read_only_and_unaligned_input_is_read() -> None:
    hashes = np.random.default_rng(1).integers(0, U64_MAX, 50, dtype=np.uint64)
    hashes.flags.writeable = False
    packed, _ = kernels.pack_sets(hashes, np.array([0, 50], np.int64))
    for shift in range(8):
        moved = np.zeros(len(packed.data) + 8, np.uint8)
        moved[shift : shift + len(packed.data)] = packed.data
        view = moved[shift : shift + len(packed.data)]
        view.flags.writeable = False
        assert kernels.jaccard_packed(view, packed.data) == 1.0
