"""Postings as one transaction sees them: which runs there are, where their values lie, and what they hold.

A reader belongs to one transaction id. The next one's takes over what it knows of unchanged runs: LMDB keeps
untouched overflow values where they are. Small values, which move inside leaf pages, and in a write
transaction all that it wrote itself, are copied.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from simindex.errors import CorruptStore
from simindex.kernels import (
    address_of,
    distinct,
    lookup_runs,
    lower_posting,
    merge_blocks,
    place_block,
    posting_at,
    starts,
)
from simindex.store import layout
from simindex.store.finding import Finding
from simindex.store.manifest import DELTA, Manifest, Run
from simindex.store.runvalues import delta_bands, leaf_limit, segment_count
from simindex.store.verify_runs import RunCheck
from simindex.types import I64, U32, U64, Array

_FETCH_ALL = 512  # queries; so many touch most segments anyway
_CHUNK = 1 << 16  # postings per array of `band`
_TABLE_HEAD = 4
_KEY = np.dtype([("prefix", "V6"), ("tag", "u1"), ("band", ">u2"), ("run", ">u4"), ("first", ">u8")])


class _RunTable:
    """Blocks of one run, band by band. band_start: int64 (bands + 1,); first: uint64, first postings."""

    __slots__ = ("band_start", "changed", "first", "kind", "number")

    def __init__(self, run: Run, band_start: I64, first: U64) -> None:
        self.number, self.kind, self.changed = run.number, run.kind, run.changed
        self.band_start = band_start
        self.first = first


class PostingsReader:
    """Immutable but for addresses, which are filled in when they are first needed (by any thread)."""

    def __init__(self, txn: Any, db: Any, prefix: bytes, bands: int, writable: bool) -> None:
        self._db, self._prefix, self._bands = db, prefix, bands
        self._id: int = txn.id()
        self._owner = txn if writable else None
        self._leaf_limit = leaf_limit(txn, db)
        self._stored = b""
        self._manifest = Manifest(bands)
        self._tables: list[_RunTable] = []
        self._base: I64 = np.zeros(1, np.int64)
        self._kept: dict[int, dict[int, bytes]] = {}  # run -> block -> copy
        self._complete = False
        self._flatten()

    @classmethod
    def open(
        cls,
        txn: Any,
        db: Any,
        prefix: bytes,
        bands: int,
        previous: "PostingsReader | None" = None,
        writable: bool = False,
    ) -> "PostingsReader":
        """Return the reader of one keyspace as `txn` sees it.

        previous: a reader of the same keyspace and the same map, of this transaction or an earlier one; what
        it knows is used again. writable: txn is a write transaction, whose own values move.
        """
        if previous is not None and not previous._serves(txn):
            previous = None
        value = txn.get(prefix + layout.MANIFEST_KEY, db=db)
        stored = b"" if value is None else bytes(value)
        if previous is not None and previous._stored == stored:
            return previous
        reader = cls(txn, db, prefix, bands, writable)
        if stored:
            reader._stored = stored
            reader._manifest = Manifest.decode(stored, bands)
            reader._list_runs(txn, previous)
        return reader

    def _serves(self, txn: Any) -> bool:
        return self._owner is txn if self._owner is not None else self._id <= txn.id()

    # Which blocks there are

    def _list_runs(self, txn: Any, previous: "PostingsReader | None") -> None:
        known = {} if previous is None else {table.number: table for table in previous._tables}
        runs = self._manifest.runs.values()
        listed = {run.number for run in runs if run.kind != DELTA}
        everything = self._list_all(txn) if len(listed - known.keys()) > 1 else {}
        bands = self._bands
        for run in runs:
            table = known.get(run.number)
            if table is not None and table.changed == run.changed:
                self._tables.append(table)
            elif run.kind == DELTA:
                start = np.arange(bands + 1, dtype=np.int64)
                self._tables.append(_RunTable(run, start, np.zeros(bands, np.uint64)))
            elif everything:
                self._tables.append(self._run_table(run, everything.get(run.number, np.empty(0, _KEY))))
            else:
                self._tables.append(self._run_table(run, self._list_run(txn, run.number, table)))
        self._flatten()
        if previous is not None:
            self._take_over(previous, known)

    def _list_all(self, txn: Any) -> dict[int, Array]:
        keys = self._list_keys(txn, bytes([layout.TAG_SEGMENT]), 1)
        order = np.argsort(keys["run"], kind="stable")
        keys = keys[order]
        first = starts(keys["run"])
        numbers = keys["run"][first].tolist()
        return dict(zip(numbers, np.split(keys, first[1:]), strict=True)) if len(keys) else {}

    def _list_run(self, txn: Any, number: int, table: _RunTable | None) -> Array:
        """Return the segment keys of one run; those of `table`, an earlier state of it, are not read
        again."""
        band, first, parts = 0, 0, []
        if table is not None and len(table.first):  # segments are only ever added behind the last
            old = np.zeros(len(table.first), _KEY)
            old["band"] = np.repeat(np.arange(self._bands), np.diff(table.band_start))
            old["first"] = table.first
            parts.append(old)
            band, first = int(old["band"][-1]), int(table.first[-1]) + 1
        while band < self._bands:
            parts.append(
                self._list_keys(txn, layout.SEGMENT_KEY.pack(layout.TAG_SEGMENT, band, number, first), 7)
            )
            band, first = band + 1, 0
        return np.concatenate(parts)

    def _list_keys(self, txn: Any, start: bytes, n: int) -> Array:
        """Return all segment keys from `start` on that agree with it in the first n bytes."""
        want, found = self._prefix + start[:n], []
        with txn.cursor(db=self._db) as cursor:
            if cursor.set_range(self._prefix + start):
                for key in cursor.iternext(keys=True, values=False):
                    if key[: len(want)] != want:
                        break
                    found.append(bytes(key))
        return np.frombuffer(b"".join(found), _KEY)

    def _run_table(self, run: Run, keys: Array) -> _RunTable:
        start = np.searchsorted(keys["band"], np.arange(self._bands + 1)).astype(np.int64)
        return _RunTable(run, start, keys["first"].astype(np.uint64))

    def _flatten(self) -> None:
        """Make the table that the lookup kernel reads (csrc/runlookup.h)."""
        tables, bands = self._tables, self._bands
        sizes = [len(table.first) for table in tables]
        self._base = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        n_blocks = int(self._base[-1])
        if tables:
            starts = np.stack([table.band_start for table in tables], axis=1)
            begin, count = starts[:-1] + self._base[:-1], np.diff(starts, axis=0)
        else:
            begin = count = np.zeros((bands, 0), np.int64)
        low = np.zeros(count.shape, np.uint64)
        places = {table.number: i for i, table in enumerate(tables)}
        for job in self._manifest.jobs:
            inputs = [places[number] for number in job.inputs if number in places]
            count[: job.band, inputs] = 0
            low[job.band, inputs] = job.frontier
        shown = count > 0
        n_sources = int(shown.sum())
        head = _TABLE_HEAD + bands + 1
        table = np.zeros(head + 3 * n_sources + 5 * n_blocks, np.uint64)
        table[:3] = bands, n_sources, n_blocks
        table[_TABLE_HEAD + 1 : head] = np.cumsum(shown.sum(axis=1))
        sources = table[head : head + 3 * n_sources].reshape(-1, 3)
        sources[:, 0], sources[:, 1], sources[:, 2] = low[shown], begin[shown], count[shown]
        first_at = head + 3 * n_sources
        if tables:
            np.concatenate([t.first for t in tables], out=table[first_at : first_at + n_blocks])
        self._table = table
        self._sources = sources
        self._blocks: U64 = table[first_at + n_blocks :].reshape(-1, 4)

    def _take_over(self, previous: "PostingsReader", known: dict[int, _RunTable]) -> None:
        places = {table.number: i for i, table in enumerate(previous._tables)}
        for i, table in enumerate(self._tables):
            old = known.get(table.number)
            if old is None:
                continue
            at, start = int(previous._base[places[table.number]]), int(self._base[i])
            n = len(old.first)  # a run only ever grows at its end
            self._blocks[start : start + n] = previous._blocks[at : at + n]
            kept = previous._kept.get(table.number)
            if kept:
                self._kept[table.number] = {block: copy for block, copy in kept.items() if block < n}

    # Where they lie

    def _fetch(self, txn: Any, blocks: Any) -> None:
        done: set[int] = set()
        for block in blocks:
            if self._blocks[block, 0]:
                continue
            place = int(np.searchsorted(self._base, block, side="right")) - 1
            table = self._tables[place]
            base = int(self._base[place])
            if table.kind == DELTA:
                if place not in done:
                    done.add(place)
                    self._fetch_delta(txn, table, base)
            else:
                self._fetch_segment(txn, table, base, int(block) - base)

    def _fetch_delta(self, txn: Any, table: _RunTable, base: int) -> None:
        key = self._prefix + layout.DELTA_KEY.pack(layout.TAG_DELTA, table.number)
        value, address = self._locate(txn, key, table, 0)
        for band, (offset, count) in enumerate(delta_bands(value, table.number, self._bands)):
            place_block(self._blocks, base + band, address + offset, count)

    def _fetch_segment(self, txn: Any, table: _RunTable, base: int, index: int) -> None:
        band = int(np.searchsorted(table.band_start, index, side="right")) - 1
        first = int(table.first[index])
        key = self._prefix + layout.SEGMENT_KEY.pack(layout.TAG_SEGMENT, band, table.number, first)
        value, address = self._locate(txn, key, table, index)
        count = segment_count(value, table.number, band)
        place_block(self._blocks, base + index, address + layout.SEGMENT_HEADER, count)

    def _locate(self, txn: Any, key: bytes, table: _RunTable, index: int) -> tuple[Any, int]:
        value = txn.get(key, db=self._db)
        if value is None:
            raise CorruptStore(f"a value of run {table.number} is not there: run check")
        if len(value) < self._leaf_limit or (self._owner is not None and table.changed == self._id):
            value = bytes(value)
            self._kept.setdefault(table.number, {})[index] = value
        return value, address_of(value)

    def _fetch_all(self, txn: Any) -> None:
        if not self._complete:
            wanted = np.flatnonzero(self._blocks[:, 0] == 0)
            shown = np.zeros(len(self._blocks) + 1, np.int64)
            for low, begin, n in self._sources.tolist():
                if low:  # segments below the frontier's may be gone
                    skip = _last_at_or_below(self._firsts(begin, n), low)
                    begin, n = begin + skip, n - skip
                shown[begin] += 1
                shown[begin + n] -= 1
            self._fetch(txn, wanted[np.cumsum(shown)[wanted] > 0])
            self._complete = True

    def _firsts(self, begin: int, n: int) -> U64:
        at = len(self._table) - 5 * len(self._blocks)
        return self._table[at + begin : at + begin + n]

    @property
    def table(self) -> U64:
        """What the lookup kernel reads (csrc/runlookup.h)."""
        return self._table

    # What they hold

    def lookup(self, txn: Any, keys: U64, live: U64) -> tuple[I64, U32]:
        """Return (ptr int64 (nq + 1,), rows uint32): the live rows that share a bucket with each query.

        keys: uint64 (nq, bands), of which the upper 32 bits count; live: addresses of the live bitmap. Rows
        ascend within a query, each once.
        """
        keys = np.ascontiguousarray(keys, np.uint64)
        if len(keys) >= _FETCH_ALL:
            self._fetch_all(txn)
        while True:
            ptr, rows, missing = lookup_runs(self._table, keys, live)
            if missing is None:
                return ptr, rows
            self._fetch(txn, distinct(missing))

    def band(self, txn: Any, band: int, live: U64 | None) -> Iterator[U64]:
        """Yield the live postings of one band, ascending, in arrays of at most 65,536.

        live: addresses of the live bitmap; None = dead ones too. Memory: one array, and one block per run.
        """
        head = self._table[_TABLE_HEAD + band : _TABLE_HEAD + band + 2]
        sources = self._sources[int(head[0]) : int(head[1])].tolist()
        k = len(sources)
        addresses, counts = np.zeros(k, np.uint64), np.zeros(k, np.uint64)
        more, last = np.zeros(k, np.uint8), np.zeros(k, np.uint64)
        at, end = [0] * k, [0] * k

        def place(i: int, low: int) -> None:
            block = at[i]
            if not self._blocks[block, 0]:
                self._fetch(txn, [block])
            address, count = int(self._blocks[block, 0]), int(self._blocks[block, 1])
            skip = lower_posting(address, count, low) if low else 0
            addresses[i], counts[i] = address + 8 * skip, count - skip
            more[i] = block + 1 < end[i]
            last[i] = posting_at(address, count - 1) if count > skip else 0

        for i, (low, begin, n) in enumerate(sources):
            skip = _last_at_or_below(self._firsts(begin, n), low)
            at[i], end[i] = begin + skip, begin + n
            place(i, low)
            while more[i] and not counts[i]:  # the frontier lies between two segments
                at[i] += 1
                place(i, low)
        start, done = 0, k == 0
        while not done:
            out = np.empty(_CHUNK, np.uint64)
            written, _, start, done = merge_blocks(
                addresses, counts, more, start, live, out.view(np.uint8), 0, _CHUNK
            )
            if written:
                yield out[:written]
            for i in np.flatnonzero(more).tolist():
                while more[i] and last[i] < start:
                    at[i] += 1
                    place(i, 0)

    def stats(self) -> dict[str, int]:
        """Return counts: postings (stored, dead ones too), dead (estimate), runs, jobs, sources (of all
        bands), segments."""
        manifest = self._manifest
        return {
            "postings": sum(run.count for run in manifest.runs.values())
            - sum(job.read for job in manifest.jobs),
            "dead": sum(run.dead for run in manifest.runs.values()),
            "runs": len(manifest.runs),
            "jobs": len(manifest.jobs),
            "sources": len(self._sources),
            "segments": sum(len(table.first) for table in self._tables if table.kind != DELTA),
        }

    def verify(self, txn: Any) -> Iterator[Finding]:
        """Yield what is wrong: checksums, order, counts, the bounds of merges, values that nobody lists."""
        return RunCheck(txn, self._db, self._prefix, self._manifest).findings()


def _last_at_or_below(first: U64, value: int) -> int:
    """Return the index of the last of some ascending values that is not above `value`, or 0."""
    return max(int(np.searchsorted(first, np.uint64(value), side="right")) - 1, 0)
