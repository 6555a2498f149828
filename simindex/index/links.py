"""The self-join of a field: verified links between its items, and their connected components.

Two live rows are linked if they share a bucket, enough slots of their signatures are equal, and (with
verify="exact") their true Jaccard reaches the threshold. The components are those of all such links as long
as `cut` is 0: leaving out pairs that are connected already, or that a bound on their distance rules out,
changes no component. In a bucket of many rows that are not alike the work is bounded (csrc/links.h) and `cut`
counts the pairs left out; links found in other buckets may still join them.

The result depends on the stored rows, the threshold and where runs of postings end, not on threads.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from simindex import kernels
from simindex.errors import QueryError
from simindex.index.field import Field, check_fraction
from simindex.types import F64, U8, U32, U64

RUN = 1 << 17  # postings between two looks at the components: part of the result where pairs are cut
_WORTH_A_THREAD = 1 << 13  # postings
_PAIRS = 1 << 16  # pairs scored at a time
_NO_BUCKET = 1 << 40
_BUCKET = np.uint64(32)
Progress = Callable[[int, int], None]  # postings read, postings in all


@dataclass(frozen=True, slots=True)
class Components:
    """Connected components of verified links.

    labels: uint32, shape (next_row,): the first row of each row's component; a row without links, or dead, is
    its own. compared: signatures compared; candidates: pairs with enough equal slots; verified: pairs whose
    sets were intersected; cut: pairs left out to keep the work linear; copies: rows whose set equals an
    earlier row's.
    """

    labels: U32
    compared: int
    candidates: int
    verified: int
    cut: int
    copies: int


def links(
    table: Any,
    number: int,
    field: Field,
    threshold: float | None = None,
    *,
    accept: str = "likely",
    threads: int = 1,
    progress: Progress | None = None,
) -> Components:
    """Return the components of the verified links between all live items of one field.

    number: the field's number in the table. threshold: the field's own if None; lower ones are refused, as
    the buckets were not made for them. progress: called with (postings read, postings in all) now and then.

    accept: with verify="estimate", whether the estimate must reach the threshold ("likely") or the upper end
    of its 95 % interval ("possible").

    Memory: 4 bytes and one bit a row, plus a constant of at most 60 MB a thread (a few MB unless a bucket
    holds a million rows that are not alike). Raises QueryError for a bad threshold or number of threads,
    CorruptStore for rows without signature or original.
    """
    at = field.threshold if threshold is None else check_fraction("threshold", threshold, QueryError)
    if at < field.threshold:
        raise QueryError(
            f"threshold {at:g} is below the field's {field.threshold:g}: its buckets would miss pairs"
        )
    if threads < 1:
        raise QueryError(f"threads is {threads}: give 1 or more")
    return _Join(table, number, field, at, accept, threads).run(progress)


class _Join:
    """One self-join; lives no longer than the table's transaction."""

    def __init__(
        self, table: Any, number: int, field: Field, threshold: float, accept: str, threads: int
    ) -> None:
        self.table = table
        self.number = number
        self.bands = field.bands
        self.signatures = table.signatures(number)
        self.originals = table.originals(number) if field.is_exact else None
        least = field.least_for(threshold, False) if field.is_exact else field.least_equal(threshold, accept)
        self.possible = least <= field.family.k
        rows = table.state.next_row
        self.parent: U32 = np.arange(rows, dtype=np.uint32)
        self.copies: U8 = np.zeros((rows + 7) // 8, np.uint8)
        self.copied = 0
        self.linkers = [
            kernels.BucketLinker(
                self.signatures.width,
                field.family.slot_bits // 8,
                min(least, field.family.k),
                threshold if field.is_exact else None,
            )
            for _ in range(threads)
        ]

    def run(self, progress: Progress | None) -> Components:
        total = self.bands * self.table.state.live
        done = 0
        parallel = len(self.linkers) > 1
        with ThreadPoolExecutor(len(self.linkers)) if parallel else nullcontext() as pool:
            for band in range(self.bands if self.possible and len(self.parent) else 0):
                for linker in self.linkers:
                    linker.begin()
                before = _NO_BUCKET
                for postings in self._runs(band):
                    self._need(kernels.shared_rows(postings, before))
                    before = int(postings[-1] >> _BUCKET)
                    self._link(postings, pool)
                    done += len(postings)
                    if progress is not None:
                        progress(min(done, total), total)
                kernels.flatten_components(self.parent)
        return Components(
            self.parent,
            sum(linker.compared for linker in self.linkers),
            sum(linker.candidates for linker in self.linkers),
            sum(linker.verified for linker in self.linkers),
            sum(linker.cut for linker in self.linkers),
            self.copied,
        )

    def _runs(self, band: int) -> Iterator[U64]:
        for postings in self.table.bucket_postings(self.number, band):
            for start in range(0, len(postings), RUN):
                yield np.ascontiguousarray(postings[start : start + RUN])

    def _need(self, rows: U32) -> None:
        self.signatures.need(rows)
        if self.originals is not None:
            self.originals.need(rows)

    def _link(self, postings: U64, pool: ThreadPoolExecutor | None) -> None:
        parts = split(postings, min(len(self.linkers), 1 + len(postings) // _WORTH_A_THREAD))
        work = zip(self.linkers, parts, strict=False)
        if pool is None or len(parts) == 1:
            results = [self._part(linker, part) for linker, part in work]
        else:
            results = list(pool.map(lambda one: self._part(*one), work))
        # The last part's linker holds the bucket that the next run may go on with.
        self.linkers.insert(0, self.linkers.pop(len(parts) - 1))
        for found, copies in results:
            kernels.join_links(self.parent, found)
            kernels.mark_rows(self.copies, copies)
            self.copied += len(copies)

    def _part(self, linker: Any, part: U64) -> tuple[U64, U32]:
        signatures, originals = self.signatures, self.originals
        found: tuple[U64, U32] = linker.run(
            part,
            self.parent,
            self.copies,
            signatures.addresses,
            signatures.rows_per_block,
            signatures.header,
            None if originals is None else originals.first_rows,
            None if originals is None else originals.addresses,
        )
        return found


def split(postings: U64, parts: int) -> list[U64]:
    """Return ascending postings cut into at most `parts` pieces, none empty, no bucket in two of them."""
    n = len(postings)
    cuts = {0, n}
    for i in range(1, parts):
        first = postings[n * i // parts] >> _BUCKET << _BUCKET
        cuts.add(int(np.searchsorted(postings, first)))
    ends = sorted(cuts)
    return [postings[a:b] for a, b in pairwise(ends)]


def scores_to(table: Any, number: int, field: Field, rows: U32, representatives: U32) -> F64:
    """Return float64 (m,): the similarity of each row to its representative, as the field verifies it.

    rows, representatives: uint32 (m,), any order. True Jaccard with verify="exact", else the estimate. A
    representative that is named often is decoded once for each 65,536 of its rows.
    """
    rows = np.ascontiguousarray(rows, np.uint32)
    representatives = np.ascontiguousarray(representatives, np.uint32)
    if rows.shape != representatives.shape:
        raise ValueError(f"{len(rows)} rows but {len(representatives)} representatives")
    scores = np.zeros(len(rows), np.float64)
    order = np.argsort(representatives, kind="stable")
    for start in range(0, len(order), _PAIRS):
        part = order[start : start + _PAIRS]
        scores[part] = _similarity(table, number, field, rows[part], representatives[part])
    return scores


def _similarity(table: Any, number: int, field: Field, rows: U32, others: U32) -> F64:
    both = np.concatenate([rows, others])
    if field.is_exact:
        heap = table.originals(number)
        heap.need(both)
        inter, size_a, size_b = kernels.intersect_pairs(heap.first_rows, heap.addresses, others, rows)
        union = size_a.astype(np.int64) + size_b - inter
        exact: F64 = inter / np.maximum(union, 1)
        return exact
    signatures = table.signatures(number)
    signatures.need(both)
    equal = kernels.pair_equal(
        signatures.addresses,
        signatures.rows_per_block,
        signatures.header,
        signatures.width,
        field.family.slot_bits // 8,
        others,
        rows,
    )
    estimated: F64 = field.estimates[equal]
    return estimated
