"""Merging runs, a step at a time.

One step fills one segment of the output, puts it, moves the frontier and deletes the input segments that lie
wholly below it, all in the caller's transaction. A segment goes when its successor begins at or below the
frontier; the last ones of a band go when the job leaves the band: so a reader of the frontier can tell from
the keys alone which segment holds a posting.
"""

from typing import Any

import numpy as np

from simindex.errors import CorruptStore
from simindex.kernels import address_of, are_live, merge_blocks, posting_at
from simindex.store import layout
from simindex.store.manifest import DELTA, SEGMENTS, Job, Manifest, Run
from simindex.store.runvalues import DeltaBuilder, close_segment, delta_bands, leaf_limit, segment_count
from simindex.types import U8, U64

_SAMPLE = 64  # postings looked at a run, up to twice as many


class Keyspace:
    """What merging needs to know: the transaction, where the keyspace lies, its manifest."""

    __slots__ = ("_leaf_limit", "db", "id", "manifest", "prefix", "txn")

    def __init__(self, txn: Any, db: Any, prefix: bytes, manifest: Manifest) -> None:
        self.txn, self.db, self.prefix, self.manifest = txn, db, prefix, manifest
        self.id: int = txn.id()
        self._leaf_limit = 0

    def steady(self, run: Run, value: Any) -> Any:
        """Return a value of a run, copied if it would move: one in a leaf, or that this transaction wrote."""
        self._leaf_limit = self._leaf_limit or leaf_limit(self.txn, self.db)
        return bytes(value) if len(value) < self._leaf_limit or run.changed == self.id else value

    def put(self, key: bytes, value: Any) -> None:
        """Put a value under a key of the keyspace."""
        self.txn.put(self.prefix + key, value, db=self.db)

    def delete(self, key: bytes) -> None:
        """Delete a key of the keyspace. CorruptStore when it is not there."""
        if not self.txn.delete(self.prefix + key, db=self.db):
            raise CorruptStore(f"a value of the runs is not there ({key.hex()}): run check")

    def delta(self, run: Run) -> Any:
        """Return the value of a delta."""
        value = self.txn.get(self.prefix + layout.DELTA_KEY.pack(layout.TAG_DELTA, run.number), db=self.db)
        if value is None:
            raise CorruptStore(f"delta {run.number} is not there: run check")
        return value

    def delete_delta(self, run: Run) -> None:
        """Delete the value of a delta."""
        self.delete(layout.DELTA_KEY.pack(layout.TAG_DELTA, run.number))


class _Input:
    """One input of a job in one band: its current block, and the segments that were left behind."""

    __slots__ = ("_band", "_held", "_run", "_space", "address", "count", "first", "last", "more", "passed")

    def __init__(self, space: Keyspace, run: Run, band: int, frontier: int) -> None:
        self._space, self._run, self._band = space, run, band
        self._held: Any = None
        self.address = self.count = self.first = self.last = 0
        self.more = False
        self.passed: list[tuple[int, int]] = []  # first posting, first posting of the one behind it
        if run.kind == DELTA:
            value = space.delta(run)
            offset, count = delta_bands(value, run.number, space.manifest.bands)[band]
            self._hold(value, offset, count)
        else:
            self._seek(frontier)

    def _key(self, first: int) -> bytes:
        return self._space.prefix + layout.SEGMENT_KEY.pack(
            layout.TAG_SEGMENT, self._band, self._run.number, first
        )

    def _seek(self, frontier: int) -> None:
        """Go to the last segment that begins at or below the frontier, or to the first."""
        space = self._space
        want = self._key(0)[:-8]
        with space.txn.cursor(db=space.db) as cursor:
            found = cursor.set_range(self._key(frontier))
            here = bytes(cursor.key()) if found else b""
            if here != self._key(frontier) and (cursor.prev() if found else cursor.last()):
                before = bytes(cursor.key())
                here = before if before[:-8] == want else here
            if here[:-8] == want:
                cursor.set_key(here)
                self._take(cursor, here)

    def advance(self) -> None:
        """Go to the next segment."""
        space, left = self._space, self.first
        with space.txn.cursor(db=space.db) as cursor:
            if not cursor.set_range(self._key(left + 1)):
                raise CorruptStore(f"run {self._run.number}, band {self._band} ends too early: run check")
            self._take(cursor, bytes(cursor.key()))
        self.passed.append((left, self.first))

    def _take(self, cursor: Any, key: bytes) -> None:
        value = cursor.value()
        count = segment_count(value, self._run.number, self._band)
        self.first = int.from_bytes(key[-8:], "big")
        self._hold(value, layout.SEGMENT_HEADER, count)
        self.more = bool(cursor.next()) and bytes(cursor.key())[:-8] == key[:-8]

    def _hold(self, value: Any, offset: int, count: int) -> None:
        value = self._space.steady(self._run, value)
        self._held = value
        self.address, self.count = address_of(value) + offset, count
        self.last = posting_at(self.address, count - 1) if count else 0

    def release(self, frontier: int) -> None:
        """Delete the segments that no reader of this frontier looks at."""
        kept = []
        for first, behind in self.passed:
            if behind <= frontier:
                self._space.delete(self._key(first)[len(self._space.prefix) :])
            else:
                kept.append((first, behind))
        self.passed = kept

    def release_all(self) -> None:
        """Delete every segment of the band; the input is used up."""
        if self._run.kind == DELTA:
            return
        space, want = self._space, self._key(0)[:-8]
        with space.txn.cursor(db=space.db) as cursor:
            found = cursor.set_range(want)
            while found and bytes(cursor.key())[:-8] == want:
                found = cursor.delete()


class JobRunner:
    """Runs one job for as many steps as it is asked to."""

    def __init__(self, space: Keyspace, job: Job) -> None:
        self._space, self.job = space, job
        self._data: U8 = np.zeros(space.manifest.segment_bytes, np.uint8)
        self._inputs: list[_Input] = []
        self._band = -1
        self._addresses: U64 = np.zeros(len(job.inputs), np.uint64)
        self._counts: U64 = np.zeros(len(job.inputs), np.uint64)
        self._more: U8 = np.zeros(len(job.inputs), np.uint8)

    @property
    def done(self) -> bool:
        """Is the job finished (and no longer in the manifest)."""
        return self.job.band == self._space.manifest.bands

    def _open(self) -> None:
        space, job = self._space, self.job
        runs = space.manifest.runs
        self._inputs = [_Input(space, runs[number], job.band, job.frontier) for number in job.inputs]
        self._band = job.band
        for i, part in enumerate(self._inputs):
            self._advance(i, part)

    def _advance(self, i: int, part: _Input) -> None:
        while part.more and part.last < self.job.frontier:
            part.advance()
        self._addresses[i], self._counts[i], self._more[i] = part.address, part.count, part.more

    def step(self, live: U64 | None) -> int:
        """Write one segment of the output; return how many postings were read."""
        space, job, capacity = self._space, self.job, self._space.manifest.segment_capacity()
        if self._band != job.band:
            self._open()
        written = read = 0
        done = False
        while not done and written < capacity:
            at = layout.SEGMENT_HEADER + 8 * written
            n, seen, job.frontier, done = merge_blocks(
                self._addresses, self._counts, self._more, job.frontier, live, self._data, at,
                capacity - written,
            )  # fmt: skip
            written += n
            read += seen
            for i, part in enumerate(self._inputs):
                if part.more:
                    self._advance(i, part)
        output = space.manifest.runs[job.output]
        if written:
            value = close_segment(self._data, job.output, job.band, written)
            first = posting_at(address_of(value), layout.SEGMENT_HEADER // 8)
            space.put(layout.SEGMENT_KEY.pack(layout.TAG_SEGMENT, job.band, job.output, first), value)
            output.count += written
            output.changed = space.id
        job.read += read
        if done:
            for part in self._inputs:
                part.release_all()
            job.band += 1
            job.frontier = 0
            if self.done:
                self._finish(output)
        else:
            for part in self._inputs:
                part.release(job.frontier)
        return read

    def _finish(self, output: Run) -> None:
        manifest = self._space.manifest
        for number in self.job.inputs:
            run = manifest.runs.pop(number)
            if run.kind == DELTA:
                self._space.delete_delta(run)
        if not output.count:
            del manifest.runs[output.number]
        manifest.jobs.remove(self.job)


def start_job(space: Keyspace, level: int, inputs: list[Run]) -> Job:
    """Add a job to the manifest."""
    output = space.manifest.new_run(SEGMENTS, 0, space.id)
    job = Job(level, output.number, 0, 0, 0, 0, [run.number for run in inputs])
    space.manifest.jobs.append(job)
    return job


def fold(space: Keyspace, deltas: list[Run], live: U64 | None) -> int:
    """Merge some deltas into one at once; return how many postings were read."""
    manifest, bands = space.manifest, space.manifest.bands
    addresses: U64 = np.zeros((bands, len(deltas)), np.uint64)
    counts: U64 = np.zeros((bands, len(deltas)), np.uint64)
    held = []
    for i, run in enumerate(deltas):
        value = space.steady(run, space.delta(run))
        held.append(value)
        blocks = np.array(delta_bands(value, run.number, bands), np.uint64)
        addresses[:, i] = blocks[:, 0] + np.uint64(address_of(value))
        counts[:, i] = blocks[:, 1]
    most = counts.sum(axis=1).tolist()
    output = manifest.new_run(DELTA, 0, space.id)
    builder = DeltaBuilder(output.number, most)
    more: U8 = np.zeros(len(deltas), np.uint8)
    for band in range(bands):
        written = 0
        if most[band]:
            written, _, _, _ = merge_blocks(
                addresses[band], counts[band], more, 0, live, builder.data, builder.at, most[band]
            )
        builder.close(written)
        output.count += written
    for run in deltas:
        space.delete_delta(run)
        del manifest.runs[run.number]
    if output.count:
        space.put(layout.DELTA_KEY.pack(layout.TAG_DELTA, output.number), builder.value())
    else:
        del manifest.runs[output.number]
    return sum(most)


def sample_dead(space: Keyspace, live: U64, runs: int = 1) -> bool:
    """Estimate anew how much of some runs is dead, each time of the next ones; return whether that changed.

    Cost: one value read a run, and up to 128 bits of the live bitmap.
    """
    manifest = space.manifest
    busy = manifest.busy()
    idle = [run for run in manifest.runs.values() if run.number not in busy and run.count]
    changed = False
    for i in range(min(runs, len(idle))):
        run = idle[(space.id * runs + i) % len(idle)]
        part = _Input(space, run, space.id % manifest.bands, (space.id * 0x9E3779B97F4A7C15) % 2**64)
        if not part.count:
            continue
        step = max(part.count // _SAMPLE, 1)
        rows = [posting_at(part.address, i) & 0xFFFFFFFF for i in range(0, part.count, step)]
        known = np.array([row for row in rows if row < len(live) * layout.LIVE_ROWS], np.uint32)
        dead = len(rows) - int(are_live(live, known).sum())
        before, run.dead = run.dead, run.count * dead // len(rows)
        changed = changed or before != run.dead
    return changed
