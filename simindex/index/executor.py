"""Carrying out a plan: candidates from buckets or a scan, compared by signature, verified by their sets,
ranked.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from simindex import kernels
from simindex.index.field import Field
from simindex.index.planner import Plan, choose_plan
from simindex.index.query import Queries
from simindex.index.request import Search
from simindex.types import F64, I64, U16, U32

_TOP_QUERIES = 64  # queries of a top-k scan run together: bounds the memory for ties


@dataclass(frozen=True, slots=True)
class Found:
    """Verified rows of n queries, in no order. query: int64 (m,), ascending. rows: uint32 (m,). equal: uint16
    (m,): equal slots.

    score: float64 (m,). truncated: bool (n,).
    """

    query: I64
    rows: U32
    equal: U16
    score: F64
    truncated: Any
    plan: Plan


def find(table: Any, number: int, search: Search, queries: Queries) -> Found:
    """Return the rows that answer each query: all that reach the threshold, or the k best and everything tied
    with them.
    """
    plan = choose_plan(search, table.state.live)
    n = len(queries)
    asking = queries.answerable
    truncated = np.zeros(n, bool)
    if table.state.live == 0 or len(asking) == 0:
        return _nothing(n, plan)
    source = Source(table, number, search.field, queries)
    if search.threshold is None and plan.kind == "scan":
        query, rows, equal, score = source.best(asking, search.k or 1, search.exact or plan.complete)
        return Found(query, rows, equal, score, truncated, plan)
    if plan.kind == "scan":
        query, rows, equal = source.scan(asking, plan.least)
    else:
        query, rows, equal = source.buckets(asking, plan.least)
    if search.budget is not None:
        query, rows, equal, truncated = within_budget(query, rows, equal, search.budget, n)
    query, rows, equal, score = source.verify(query, rows, equal, search.threshold or 0.0)
    return Found(query, rows, equal, score, truncated, plan)


def _nothing(n: int, plan: Plan) -> Found:
    none = np.zeros(0, np.int64)
    return Found(
        none, none.astype(np.uint32), none.astype(np.uint16), none.astype(np.float64), np.zeros(n, bool), plan
    )


class Source:
    """One field of a table, with the queries put to it. Lives no longer than the table's transaction."""

    def __init__(self, table: Any, number: int, field: Field, queries: Queries) -> None:
        self.table = table
        self.number = number
        self.field = field
        self.queries = queries
        self.signatures = table.signatures(number)
        self.slot_bytes = field.family.slot_bits // 8

    def buckets(self, asking: I64, least: int) -> tuple[I64, U32, U16]:
        """Return (query, rows, equal) of the rows that share a bucket and at least `least` slots."""
        signed = self.queries.signatures
        some = signed if len(asking) == len(signed) else np.ascontiguousarray(signed[asking])
        ptr, rows = self.table.lookup(self.number, self.field.scheme.keys(some))
        return self.filtered(np.repeat(asking, np.diff(ptr)), rows, least)

    def filtered(self, query: I64, rows: U32, least: int) -> tuple[I64, U32, U16]:
        """Return the candidates that share at least `least` slots with their query."""
        equal = self.equal(query, rows)
        passing = equal >= least
        return query[passing], rows[passing], equal[passing]

    def equal(self, query: I64, rows: U32) -> U16:
        """Return the equal slots of each pair."""
        s = self.signatures
        s.need(rows)
        return kernels.gather_equal(
            s.addresses,
            s.rows_per_block,
            s.header,
            s.width,
            self.slot_bytes,
            self.queries.signatures,
            query.astype(np.uint32),
            rows,
        )

    def scan(self, asking: I64, least: int) -> tuple[I64, U32, U16]:
        """Return (query, rows, equal) of all rows that share at least `least` slots."""
        return self._scan(asking, min_equal=np.full(len(asking), min(least, 65_535), np.uint16))

    def _scan(self, asking: I64, min_equal: Any = None, k: int | None = None) -> tuple[I64, U32, U16]:
        s, table = self.signatures, self.table
        s.need_all()
        signed = np.ascontiguousarray(self.queries.signatures[asking])
        ptr, rows, equal = kernels.scan_equal(
            s.addresses,
            s.rows_per_block,
            s.header,
            s.width,
            self.slot_bytes,
            signed,
            table.state.next_row,
            table.live,
            min_equal=min_equal,
            k=k,
        )
        return np.repeat(asking, np.diff(ptr)), rows, equal

    def verify(self, query: I64, rows: U32, equal: U16, threshold: float) -> tuple[I64, U32, U16, F64]:
        """Return the candidates with their scores, without those truly below the threshold."""
        if not self.field.is_exact:
            return query, rows, equal, self.field.estimates[equal]
        score = self.jaccard(query, rows, threshold)
        passing = score >= threshold
        return query[passing], rows[passing], equal[passing], score[passing]

    def jaccard(self, query: I64, rows: U32, threshold: float = 0.0) -> F64:
        """Return the true Jaccard similarity of each pair; where it is below the threshold, something below
        it.
        """
        heap = self.table.originals(self.number)
        heap.need(rows)
        packed = self.queries.originals
        assert packed is not None
        return kernels.jaccard_queries(
            packed.data, packed.offsets, query, heap.first_rows, heap.addresses, rows, threshold
        )

    def best(self, asking: I64, k: int, complete: bool) -> tuple[I64, U32, U16, F64]:
        """Return the k best rows of each query and all tied with the k-th."""
        parts = [
            self._best(asking[a : a + _TOP_QUERIES], k, complete) for a in range(0, len(asking), _TOP_QUERIES)
        ]
        query, rows, equal, score = (np.concatenate(part) for part in zip(*parts, strict=True))
        return query, rows, equal, score

    def _best(self, asking: I64, k: int, complete: bool) -> tuple[I64, U32, U16, F64]:
        query, rows, equal = self._scan(asking, k=k)
        if not self.field.is_exact:
            return query, rows, equal, self.field.estimates[equal]
        # The k best by estimate bound the k-th best true score from below; then every row that may reach that
        # bound is looked at. A better row is lost only where its estimate errs by more than least_for allows.
        score = self.jaccard(query, rows)
        cuts = np.searchsorted(query, [asking, asking + 1])
        bounds = np.array([kth_best(score[a:b], k) for a, b in zip(*cuts, strict=True)])
        least = np.array([self.field.least_for(float(s), complete) for s in bounds], np.uint16)
        query, rows, equal = self._scan(asking, min_equal=least)
        score = np.zeros(len(rows), np.float64)
        cuts = np.searchsorted(query, [asking, asking + 1])
        for bound, a, b in zip(bounds, *cuts, strict=True):
            score[a:b] = self.jaccard(query[a:b], rows[a:b], float(bound))
        passing = score >= np.repeat(bounds, cuts[1] - cuts[0])
        return query[passing], rows[passing], equal[passing], score[passing]


def kth_best(score: F64, k: int) -> float:
    """Return the k-th largest score, 0 where there are fewer."""
    if len(score) < k:
        return 0.0
    return float(np.partition(score, len(score) - k)[len(score) - k])


def within_budget(query: I64, rows: U32, equal: U16, budget: int, n: int) -> tuple[I64, U32, U16, Any]:
    """Return the candidates cut to `budget` a query, those with the most equal slots first, and which queries
    were cut.
    """
    counts = np.bincount(query, minlength=n)
    truncated = counts > budget
    if not truncated.any():
        return query, rows, equal, truncated
    order = np.lexsort((rows, -equal.astype(np.int64), query))
    starts = np.repeat(np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    kept = np.sort(order[np.arange(len(order)) - starts < budget])
    return query[kept], rows[kept], equal[kept], truncated
