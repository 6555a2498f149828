"""The self-join of a field in a real store, against all pairs and against exact truth."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from simindex import kernels
from simindex.errors import CorruptStore, QueryError
from simindex.index import links as module
from simindex.index.field import Field, tokens
from simindex.index.links import Components, links, scores_to
from simindex.kernels.reference import links as twin
from simindex.store import CollectionLayout, FieldLayout, FieldRows, Store, Table
from simindex.types import EMPTY, PRESENT, Features, Packed

FIELD = 3


def features_of(lists: list[np.ndarray]) -> Features:
    ptr = np.concatenate([[0], np.cumsum([len(v) for v in lists])]).astype(np.int64)
    state = np.where(np.diff(ptr) > 0, PRESENT, EMPTY).astype(np.uint8)
    return Features(np.concatenate([*lists, np.empty(0, np.uint64)]).astype(np.uint64), ptr, state)


@contextmanager
def stored(path: Path, field: Field, lists: list[np.ndarray], removed=(), step=700) -> Iterator[Table]:
    """A snapshot's table with the sets as rows 0, 1, ... of one field, appended in commits of `step`."""
    layout = CollectionLayout((FieldLayout(FIELD, field.family.width, field.bands, field.is_exact),))
    store = Store.open(path)
    try:
        with store.write() as transaction:
            number = transaction.create_collection(b"test")
        for start in range(0, len(lists), step):
            part = features_of(lists[start : start + step])
            signatures = field.family.sign(part)
            originals, _ = kernels.pack_sets(part.hashes, part.ptr)
            rows = FieldRows(
                signatures,
                part.state,
                field.scheme.postings(signatures, part.state),
                originals if field.is_exact else None,
            )
            n = len(part)
            with store.write() as transaction:
                records = Packed(np.zeros(n, np.uint8), np.arange(n + 1, dtype=np.int64))
                hashes = np.arange(start, start + n, dtype=np.uint64) << np.uint64(32)
                transaction.collection(number, layout).append(n, hashes, records, {FIELD: rows})
        if len(removed):
            with store.write() as transaction:
                transaction.collection(number, layout).remove(np.array(removed, np.uint32))
        with store.read() as snapshot:
            yield snapshot.collection(number, layout)
    finally:
        store.close()


def families(rng: np.random.Generator, sizes: list[int], length: int = 40) -> list[np.ndarray]:
    """Near-copies of near-copies, in random order, and two empty sets."""
    lists = [np.empty(0, np.uint64)] * 2
    for size in sizes:
        family = [rng.integers(0, 2**64 - 1, length, dtype=np.uint64)]
        while len(family) < size:
            row = family[int(rng.integers(len(family)))].copy()
            changed = rng.random(len(row)) < rng.random() * 0.15
            row[changed] = rng.integers(0, 2**64 - 1, int(changed.sum()), dtype=np.uint64)
            family.append(row)
        lists += family
    return [lists[i] for i in rng.permutation(len(lists))]


def jaccard(a: np.ndarray, b: np.ndarray) -> float:
    inter = len(np.intersect1d(a, b))
    return inter / (len(np.unique(a)) + len(np.unique(b)) - inter) if inter else 0.0


def every_pair(field: Field, lists: list[np.ndarray], removed: set[int], threshold: float) -> list[int]:
    """The components of all pairs that share a bucket and are links, found by trying all."""
    part = features_of(lists)
    signatures = field.family.sign(part)
    bands = [
        np.array([p for p in band.tolist() if p & 0xFFFFFFFF not in removed], np.uint64)
        for band in field.scheme.postings(signatures, part.state)
    ]
    least = field.least_for(threshold, False) if field.is_exact else field.least_equal(threshold)

    def is_link(a: int, b: int) -> bool:
        return not field.is_exact or jaccard(lists[a], lists[b]) >= threshold

    return twin.linked_components(bands, signatures, field.family.slot_bytes, least, is_link)


@pytest.mark.parametrize("verify", ["exact", "estimate"])
@pytest.mark.parametrize("threshold", [0.6, 0.8])
def test_components_are_those_of_all_verified_pairs(tmp_path, verify, threshold) -> None:
    rng = np.random.default_rng(8)
    lists = families(rng, [1] * 60 + [2, 2, 3, 5, 9, 30, 80])
    removed = set(rng.choice(len(lists), 25, replace=False).tolist())
    field = tokens(threshold=threshold, verify=verify)
    with stored(tmp_path / "x.simdb", field, lists, sorted(removed), step=50) as table:
        found = links(table, FIELD, field)
        stricter = links(table, FIELD, field, 0.9)
    assert found.cut == 0
    assert found.labels.tolist() == every_pair(field, lists, removed, threshold)
    assert stricter.labels.tolist() == every_pair(field, lists, removed, 0.9)
    assert all(found.labels[row] == row for row in removed)


def same(a: Components, b: Components) -> bool:
    return a.labels.tolist() == b.labels.tolist() and (a.cut, a.copies) == (b.cut, b.copies)


class OneBucket:
    """A table whose live rows all share the bucket of each band."""

    def __init__(self, table: Table, bands: int) -> None:
        self.state, self.signatures, self.originals = table.state, table.signatures, table.originals
        self._rows = [
            (np.concatenate(list(table.bucket_postings(FIELD, band))) & np.uint64(0xFFFFFFFF))
            | np.uint64(5 << 32)
            for band in range(bands)
        ]

    def bucket_postings(self, number: int, band: int) -> Iterator[np.ndarray]:
        yield np.sort(self._rows[band])


@pytest.mark.parametrize("crowded", [False, True])
def test_threads_change_nothing_even_where_pairs_are_cut(tmp_path, monkeypatch, crowded) -> None:
    rng = np.random.default_rng(9)
    lists = families(rng, [1] * 1_200 + [40, 200], length=15)
    monkeypatch.setattr(module, "RUN", 300)
    monkeypatch.setattr(module, "_WORTH_A_THREAD", 10)
    field = tokens(threshold=0.5, bands=(8, 2), k=64, force=True)
    with stored(tmp_path / "x.simdb", field, lists) as table:
        view = OneBucket(table, 8) if crowded else table
        one, two, three = (links(view, FIELD, field, threads=n) for n in (1, 2, 3))
    assert (one.cut > 0) == crowded
    assert same(one, two)
    assert same(one, three)


def test_copies_are_found_at_once(tmp_path) -> None:
    rng = np.random.default_rng(10)
    a, b = (rng.integers(0, 2**64 - 1, 50, dtype=np.uint64) for _ in range(2))
    lists = [a, b] * 2_000
    for verify in ("exact", "estimate"):
        field = tokens(threshold=0.8, verify=verify)
        with stored(tmp_path / f"{verify}.simdb", field, lists, step=2_000) as table:
            found = links(table, FIELD, field)
        assert found.labels.tolist() == [0, 1] * 2_000
        assert found.copies == 3_998
        assert found.compared == 0


def test_progress_reaches_all_postings(tmp_path) -> None:
    rng = np.random.default_rng(11)
    field = tokens(threshold=0.8)
    seen: list[tuple[int, int]] = []
    lists = families(rng, [5, 5, 1])
    with stored(tmp_path / "x.simdb", field, lists) as table:
        links(table, FIELD, field, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1][0] == 11 * field.bands


def test_an_empty_collection_has_no_components(tmp_path) -> None:
    field = tokens(threshold=0.8)
    with stored(tmp_path / "x.simdb", field, []) as table:
        assert len(links(table, FIELD, field).labels) == 0
    with stored(tmp_path / "y.simdb", field, [np.empty(0, np.uint64)] * 3) as table:
        assert links(table, FIELD, field).labels.tolist() == [0, 1, 2]


def test_scores_are_those_to_the_named_row(tmp_path) -> None:
    rng = np.random.default_rng(12)
    lists = families(rng, [20, 10])
    rows = rng.integers(0, len(lists), 200).astype(np.uint32)
    others = rng.integers(0, len(lists), 200).astype(np.uint32)
    exact, estimate = tokens(threshold=0.8), tokens(threshold=0.8, verify="estimate")
    with stored(tmp_path / "x.simdb", exact, lists) as table:
        got = scores_to(table, FIELD, exact, rows, others)
    assert got.tolist() == [jaccard(lists[a], lists[b]) for a, b in zip(rows, others, strict=True)]
    with stored(tmp_path / "y.simdb", estimate, lists) as table:
        guessed = scores_to(table, FIELD, estimate, rows, others)
    present = np.array([len(lists[a]) > 0 and len(lists[b]) > 0 for a, b in zip(rows, others, strict=True)])
    assert np.abs(got - guessed)[present].max() < 0.2  # 4.5 standard errors of k = 128


def test_bad_settings_are_named(tmp_path) -> None:
    field = tokens(threshold=0.8)
    with stored(tmp_path / "x.simdb", field, families(np.random.default_rng(1), [3])) as table:
        with pytest.raises(QueryError, match=r"threshold 0\.7 is below the field's 0\.8"):
            links(table, FIELD, field, 0.7)
        with pytest.raises(QueryError, match=r"threshold is 1\.5"):
            links(table, FIELD, field, 1.5)
        with pytest.raises(QueryError, match="threads is 0"):
            links(table, FIELD, field, threads=0)
        with pytest.raises(ValueError, match="2 rows but 1 representatives"):
            scores_to(table, FIELD, field, np.array([0, 1], np.uint32), np.array([0], np.uint32))


def test_split_keeps_buckets_whole() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        n = int(rng.integers(1, 60))
        postings = np.sort(
            rng.integers(0, 6, n).astype(np.uint64) << np.uint64(32) | np.arange(n, dtype=np.uint64)
        )
        parts = module.split(postings, int(rng.integers(1, 6)))
        assert np.concatenate(parts).tolist() == postings.tolist()
        assert all(len(p) for p in parts)
        buckets = [set((p >> np.uint64(32)).tolist()) for p in parts]
        assert sum(map(len, buckets)) == len(set().union(*buckets))


# Real corpora -----------------------------------------------------------------------------------------------


def word_triples(path: Path) -> tuple[list[str], list[np.ndarray]]:
    """The ids and the sets of three consecutive lower-cased words, hashed: those of the truth files."""
    words: dict[str, int] = {}
    ids, lists = [], []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            item = json.loads(line)
            ids.append(item["id"])
            found = re.findall(r"\w+", item["text"].lower())
            numbers = np.array([words.setdefault(w, len(words) + 1) for w in found], np.uint64)
            if 0 < len(numbers) < 3:  # one shingle of the whole
                numbers = np.concatenate([np.zeros(3 - len(numbers), np.uint64), numbers])
            shifted = numbers[:-2] << np.uint64(42) | numbers[1:-1] << np.uint64(21) | numbers[2:]
            lists.append(mixed(shifted))
    assert len(words) < 1 << 21
    return ids, lists


def mixed(x: np.ndarray) -> np.ndarray:
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ x >> np.uint64(shift)) * np.uint64(factor)
    return x ^ x >> np.uint64(31)


def truth_links(path: Path, ids: list[str], threshold: float) -> np.ndarray:
    row = {name: i for i, name in enumerate(ids)}
    pairs = []
    with path.open(encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            a, b, inter, union, _ = line.split("\t")
            if int(inter) / int(union) >= threshold:
                pairs.append(row[a] << 32 | row[b])
    return np.array(pairs, np.uint64)


@pytest.mark.data
@pytest.mark.parametrize(("corpus", "threshold"), [("licenses", 0.8), ("licenses", 0.9), ("debdesc", 0.8)])
def test_components_of_real_corpora_are_those_of_the_truth(tmp_path, corpora, corpus, threshold) -> None:
    ids, lists = word_triples(corpora / f"{corpus}.jsonl")
    pairs = truth_links(corpora / f"{corpus}.truth_w3.tsv", ids, threshold)
    truth = np.arange(len(ids), dtype=np.uint32)
    kernels.join_links(truth, pairs)
    kernels.flatten_components(truth)
    field = tokens(threshold=threshold)
    with stored(tmp_path / "x.simdb", field, lists, step=20_000) as table:
        found = links(table, FIELD, field)
        members = np.flatnonzero(found.labels != np.arange(len(ids))).astype(np.uint32)
        scores = scores_to(table, FIELD, field, members, found.labels[members])
    assert found.cut == 0
    # No false link: joining what was found to the truth joins nothing.
    joined = truth.copy()
    pairs_found = found.labels.astype(np.uint64) << np.uint64(32) | np.arange(len(ids), dtype=np.uint64)
    assert kernels.join_links(joined, pairs_found) == 0
    # Recall: a pair at the threshold is found with the field's recall, and most components have many pairs.
    dropped, wanted = len(members), int((truth != np.arange(len(ids))).sum())
    assert dropped >= 0.99 * wanted
    assert (scores > 0).all()


def test_a_row_without_its_original_is_named(tmp_path) -> None:
    rng = np.random.default_rng(3)
    field = tokens(threshold=0.8)
    with stored(tmp_path / "x.simdb", field, families(rng, [6])) as table:
        heap = table.originals(FIELD)

        class Gone:
            first_rows = heap.first_rows
            addresses = np.zeros_like(heap.addresses)

            def need(self, rows: np.ndarray) -> None:
                """The store found no block."""

        class Broken:
            state = table.state
            signatures = table.signatures
            bucket_postings = table.bucket_postings

            def originals(self, number: int) -> Gone:
                return Gone()

        with pytest.raises(CorruptStore, match="no signature or no original"):
            links(Broken(), FIELD, field)
