"""Links inside buckets against trying every pair, and union-find."""

import time
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels_heap import heap_of, signatures_of

from simindex import kernels
from simindex.errors import CorruptStore
from simindex.kernels.reference import links as twin
from simindex.kernels.reference import sets as sets_twin

LEVELS = kernels.dispatch.available()
NO_BUCKET = 2**40


@dataclass
class Corpus:
    sets: list[bytes]  # packed
    signatures: np.ndarray
    bands: list[np.ndarray]  # postings


def signatures_for(lists, slots: int, rng) -> np.ndarray:
    """Classic minima over random functions, cut to a byte: enough for tests, and plainly right."""
    keys = rng.integers(0, 2**64 - 1, slots, dtype=np.uint64)
    out = np.empty((len(lists), slots), np.uint8)
    for i, values in enumerate(lists):
        x = np.array(sorted(values), np.uint64)[:, None] ^ keys[None, :]
        x *= np.uint64(0x9E3779B97F4A7C15)
        x ^= x >> np.uint64(29)
        x *= np.uint64(0xBF58476D1CE4E5B9)
        x ^= x >> np.uint64(32)
        out[i] = x.min(axis=0) >> np.uint64(13) & np.uint64(255)
    return out


def corpus_of(lists, rng, slots=64, bands=8, band_rows=3) -> Corpus:
    signatures = signatures_for(lists, slots, rng)
    postings = []
    for band in range(bands):
        part = signatures[:, band * band_rows : (band + 1) * band_rows].astype(np.uint64)
        key = part[:, 0] << np.uint64(16) | part[:, 1] << np.uint64(8) | part[:, 2]
        postings.append(np.sort(key << np.uint64(32) | np.arange(len(lists), dtype=np.uint64)))
    hashes = np.concatenate([np.array(sorted(v), np.uint64) for v in lists])
    ptr = np.concatenate([[0], np.cumsum([len(v) for v in lists])]).astype(np.int64)
    packed, _ = kernels.pack_sets(hashes, ptr)
    return Corpus(sets_twin.packed_bytes(packed.data.tobytes(), packed.offsets), signatures, postings)


def families(rng, sizes, length=60, change=0.15) -> list[set[int]]:
    """Near-copies: each member of a family replaces up to `change` of an earlier member's hashes."""
    lists: list[set[int]] = []
    for size in sizes:
        family = [set(rng.integers(0, 2**64 - 1, length, dtype=np.uint64).tolist())]
        while len(family) < size:
            parent = sorted(family[int(rng.integers(len(family)))])
            share = rng.random() * change
            kept = [v for v in parent if rng.random() >= share]
            new = rng.integers(0, 2**64 - 1, len(parent) - len(kept), dtype=np.uint64).tolist()
            family.append(set(kept) | set(new) or {1})
        lists += family
    order = rng.permutation(len(lists))
    return [lists[i] for i in order]


def found(corpus: Corpus, min_equal: int, threshold, chunk=10**9, workers=1, rows_per_block=50):
    """Run linkers as the index floor does: bands in order, runs of `chunk` postings split over `workers`."""
    heap = heap_of(corpus.sets, rows_per_block)
    addresses, per_block, header, _blocks = signatures_of(corpus.signatures)
    n = len(corpus.sets)
    parent = np.arange(n, dtype=np.uint32)
    copies = np.zeros((n + 7) // 8, np.uint8)
    linkers = [
        kernels.BucketLinker(corpus.signatures.shape[1], 1, min_equal, threshold) for _ in range(workers)
    ]
    for postings in corpus.bands:
        for linker in linkers:
            linker.begin()
        for start in range(0, len(postings), chunk):
            part = postings[start : start + chunk]
            cuts = [0]
            for w in range(1, workers):
                at = len(part) * w // workers
                key = part[at] >> np.uint64(32) << np.uint64(32)
                cuts.append(max(cuts[-1], int(np.searchsorted(part, key))))
            cuts.append(len(part))
            ends = sorted({*cuts[1:], len(part)} - {0})
            results = []
            for w, (a, b) in enumerate(zip([0, *ends], ends, strict=False)):
                results.append(
                    linkers[w].run(
                        part[a:b],
                        parent,
                        copies,
                        addresses,
                        per_block,
                        header,
                        heap.first_rows,
                        heap.addresses,
                    )
                )
            linkers.insert(0, linkers.pop(len(results) - 1))  # the open bucket goes on there
            for links, rows in results:
                kernels.join_links(parent, links)
                kernels.mark_rows(copies, rows)
        kernels.flatten_components(parent)
    return parent, linkers


def expected(corpus: Corpus, min_equal: int, threshold) -> list[int]:
    def is_link(a: int, b: int) -> bool:
        return sets_twin.intersect(corpus.sets[a], corpus.sets[b], threshold)[0] > 0

    return twin.linked_components(
        corpus.bands, corpus.signatures, 1, min_equal, is_link if threshold is not None else None
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("threshold", [None, 0.6, 0.8])
def test_components_equal_those_of_every_pair(seed, threshold) -> None:
    rng = np.random.default_rng(seed)
    corpus = corpus_of(families(rng, [1] * 30 + [2, 3, 5, 8, 13, 40, 90]), rng)
    min_equal = {None: 45, 0.6: 30, 0.8: 42}[threshold]
    parent, linkers = found(corpus, min_equal, threshold)
    assert linkers[0].cut == 0
    assert parent.tolist() == expected(corpus, min_equal, threshold)


@given(st.integers(0, 10**6), st.integers(1, 50), st.integers(1, 3), st.sampled_from([None, 0.5, 0.75, 1.0]))
@settings(max_examples=60, deadline=None)
def test_components_do_not_depend_on_runs_or_workers(seed, chunk, workers, threshold) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, 6).tolist()
    corpus = corpus_of(
        families(rng, sizes, length=int(rng.integers(1, 30)), change=0.4), rng, slots=24, bands=4
    )
    min_equal = int(rng.integers(1, 20))
    parent, linkers = found(corpus, min_equal, threshold, chunk, workers)
    assert sum(linker.cut for linker in linkers) == 0
    assert parent.tolist() == expected(corpus, min_equal, threshold)


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_finds_the_same(level) -> None:
    rng = np.random.default_rng(3)
    corpus = corpus_of(families(rng, [50, 30, 1, 1]), rng)
    with kernels.dispatch.forced(level):
        assert found(corpus, 40, 0.7)[0].tolist() == expected(corpus, 40, 0.7)


@pytest.mark.parametrize("slot_bytes", [2, 4, 8])
def test_wider_slots_are_compared_whole(slot_bytes) -> None:
    rng = np.random.default_rng(7)
    values = rng.integers(0, 3, (60, 16)).astype(f"u{slot_bytes}") * (1 + (1 << (8 * slot_bytes - 3)))
    rows = np.ascontiguousarray(values).view(np.uint8).reshape(60, -1)
    postings = np.arange(60, dtype=np.uint64)
    addresses, per_block, header, _blocks = signatures_of(rows)
    linker = kernels.BucketLinker(16 * slot_bytes, slot_bytes, 10)
    parent, copies = np.arange(60, dtype=np.uint32), np.zeros(8, np.uint8)
    found_links, _ = linker.run(postings, parent, copies, addresses, per_block, header)
    kernels.join_links(parent, found_links)
    kernels.flatten_components(parent)
    assert 1 < len(set(parent.tolist())) < 60
    assert parent.tolist() == twin.linked_components([postings], rows, slot_bytes, 10)


def one_bucket(lists, rng) -> Corpus:
    corpus = corpus_of(lists, rng, bands=1)
    corpus.bands = [np.arange(len(lists), dtype=np.uint64) | np.uint64(7 << 32)] * 2
    return corpus


def test_sixty_thousand_copies_in_one_bucket_cost_as_many_steps() -> None:
    rng = np.random.default_rng(1)
    first, second = families(rng, [1, 1])
    corpus = one_bucket([first, second], rng)
    n = 60_000
    corpus.sets = corpus.sets[:1] * n + corpus.sets[1:] * 5
    corpus.signatures = np.concatenate(
        [corpus.signatures[:1].repeat(n, 0), corpus.signatures[1:].repeat(5, 0)]
    )
    corpus.bands = [np.arange(n + 5, dtype=np.uint64) | np.uint64(7 << 32)] * 2
    parent, (linker,) = found(corpus, 40, 0.8, chunk=9_999)
    assert (parent[:n] == 0).all()
    assert (parent[n:] == n).all()
    assert linker.cut == 0
    assert linker.compared < 10


def test_a_bucket_of_many_near_copies_is_linear_and_whole() -> None:
    rng = np.random.default_rng(2)
    base = rng.integers(0, 2**64 - 1, 100, dtype=np.uint64)
    lists = []
    for _ in range(20_000):  # any two share at least 94 of 106
        row = base.copy()
        row[rng.integers(0, 100, 3)] = rng.integers(0, 2**64 - 1, 3, dtype=np.uint64)
        lists.append(set(row.tolist()))
    corpus = one_bucket(lists, rng)
    started = time.perf_counter()
    parent, (linker,) = found(corpus, 40, 0.8)
    assert (parent == 0).all()
    assert linker.compared < 3 * len(lists)
    assert time.perf_counter() - started < 20


def test_a_large_bucket_of_strangers_is_cut_and_says_so() -> None:
    rng = np.random.default_rng(4)
    corpus = one_bucket(families(rng, [1] * 3_000, length=5), rng)
    corpus.bands = corpus.bands[:1]
    parent, (linker,) = found(corpus, 50, 0.8)
    assert parent.tolist() == list(range(3_000))
    pairs = 3_000 * 2_999 // 2
    assert linker.compared <= 65_536 + 256 * 3_000
    assert linker.compared + linker.cut == pairs


def test_families_in_a_cut_bucket_are_still_joined() -> None:
    rng = np.random.default_rng(5)
    lists = families(rng, [1] * 1_500 + [400], length=60, change=0.1)
    corpus = one_bucket(lists, rng)
    parent, (linker,) = found(corpus, 30, 0.6)
    assert linker.cut > 0
    largest = np.bincount(parent).max()
    assert largest >= 390


def test_a_missing_row_and_a_broken_original_are_named() -> None:
    rng = np.random.default_rng(6)
    corpus = one_bucket(families(rng, [8], change=0.05), rng)
    good = corpus.sets[3]
    corpus.sets[3] = good[:-1] + b"\x00"
    with pytest.raises(CorruptStore, match="row 3 "):
        found(corpus, 20, 0.5)
    corpus.sets[3] = good
    corpus.bands = [np.array([7 << 32, 7 << 32 | 900], np.uint64)]
    with pytest.raises(CorruptStore, match="row 900 "):
        found(corpus, 20, 0.5)


def test_bad_settings_are_named() -> None:
    with pytest.raises(ValueError, match="slots of 3 bytes"):
        kernels.BucketLinker(128, 3, 10)
    with pytest.raises(ValueError, match="min_equal is 129"):
        kernels.BucketLinker(128, 1, 129)
    with pytest.raises(ValueError, match="threshold is 0"):
        kernels.BucketLinker(128, 1, 10, 0.0)
    linker = kernels.BucketLinker(128, 1, 10, 0.5)
    none = np.empty(0, np.uint64)
    with pytest.raises(ValueError, match="need the originals"):
        linker.run(none, np.zeros(1, np.uint32), np.zeros(1, np.uint8), none, 7, 64)


# Union-find -------------------------------------------------------------------------------------------------


@given(
    st.integers(1, 60).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))))
    )
)
def test_join_and_flatten_label_each_row_with_the_first_of_its_component(case) -> None:
    n, pairs = case
    parent = np.arange(n, dtype=np.uint32)
    joined = kernels.join_links(parent, np.array([a << 32 | b for a, b in pairs], np.uint64))
    assert (parent <= np.arange(n)).all()
    kernels.flatten_components(parent)
    assert parent.tolist() == twin.components(n, pairs)
    assert joined == n - len(set(parent.tolist()))


def test_a_link_beyond_the_rows_changes_nothing() -> None:
    parent = np.arange(4, dtype=np.uint32)
    with pytest.raises(IndexError, match="row 9"):
        kernels.join_links(parent, np.array([1 << 32 | 2, 9], np.uint64))
    assert parent.tolist() == [0, 1, 2, 3]
    with pytest.raises(IndexError, match="row 8"):
        kernels.mark_rows(np.zeros(1, np.uint8), np.array([1, 8], np.uint32))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_shared_rows_are_those_with_a_neighbour_in_their_bucket(buckets) -> None:
    buckets = sorted(buckets)
    postings = np.array([b << 32 | i for i, b in enumerate(buckets)], np.uint64)
    wanted = [i for i, b in enumerate(buckets) if buckets.count(b) > 1 or i + 1 == len(buckets)]
    assert kernels.shared_rows(postings, NO_BUCKET).tolist() == wanted
    assert 0 in kernels.shared_rows(postings, buckets[0]).tolist()
