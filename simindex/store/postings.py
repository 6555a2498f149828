"""The write side of the postings of one keyspace: deltas in, merges paid for by what was put in.

A writer belongs to one write transaction. All that it knows comes from the manifest stored there, so nothing
outlives an aborted transaction.
"""

from time import thread_time
from typing import Any

import numpy as np

from simindex.errors import WriteError
from simindex.kernels import merge_sorted
from simindex.store import layout
from simindex.store.manifest import DELTA, FAN_OUT, SEGMENTS, TINY, Manifest, Run
from simindex.store.merge import JobRunner, Keyspace, fold, sample_dead, start_job
from simindex.store.runs import PostingsReader
from simindex.store.runvalues import DeltaBuilder, close_segment, delta_postings
from simindex.types import U64

__all__ = ["PostingsReader", "PostingsWriter"]

SLACK = 4  # postings that each open job may read per posting put in
MOST_READ = 400_000  # postings read by merges of one commit, or SLACK times its own if that is more
MOST_SECONDS = 0.010  # of processor time (a busy machine must not starve the merging), after which a commit
# starts no further step, unless merging has fallen behind
FOLD_MOST = 8192  # rows; merges of no more than that are done at once
DELTA_MOST = 32_768  # rows; larger commits are written as segments
_MANY = 128  # inputs of one job when everything is merged
_MAX_RUN = 2**32 - 1


class PostingsWriter:
    """Adds postings to one keyspace inside a write transaction."""

    def __init__(
        self, txn: Any, db: Any, prefix: bytes, bands: int, segment_bytes: int = layout.SEGMENT_BYTES
    ) -> None:
        """segment_bytes: of a new keyspace; an old one keeps its own."""
        value = txn.get(prefix + layout.MANIFEST_KEY, db=db)
        manifest = Manifest(bands, segment_bytes) if value is None else Manifest.decode(value, bands)
        self._space = Keyspace(txn, db, prefix, manifest)
        self._pending: list[U64] = []
        self._rows = 0
        self._own = 0
        self._changed = False

    @property
    def pending(self) -> int:
        """Rows appended and not flushed."""
        return self._rows

    def append(self, postings: U64, first_row: int = 0) -> None:
        """Add postings, uint64 (bands, m), sorted within each band; first_row is added to their rows.

        Nothing is written before `flush`. ValueError when the shape is wrong.
        """
        bands = self._space.manifest.bands
        if postings.ndim != 2 or postings.shape[0] != bands:
            raise ValueError(f"postings of shape {postings.shape} for {bands} bands")
        if postings.shape[1]:
            self._pending.append(postings + np.uint64(first_row))
            self._rows += postings.shape[1]

    def flush(self) -> None:
        """Write what is pending as one run, and the manifest."""
        if not self._rows:
            return
        space, manifest = self._space, self._space.manifest
        if manifest.next_run >= _MAX_RUN - 2 * FAN_OUT:
            raise WriteError("the run numbers are used up: compact gives them back")
        bands: list[U64]
        if len(self._pending) == 1:
            bands = list(self._pending[0])
        else:
            bands = [merge_sorted([part[band] for part in self._pending]) for band in range(manifest.bands)]
        before = self._tiny(self._rows)
        if before is not None:
            old = delta_postings(bytes(space.delta(before)), before.number, manifest.bands)
            bands = [
                merge_sorted([np.ascontiguousarray(a, np.uint64), b]) for a, b in zip(old, bands, strict=True)
            ]
            space.delete_delta(before)
            del manifest.runs[before.number]
        if max(len(band) for band in bands) <= self._delta_most():
            run = manifest.new_run(DELTA, sum(len(band) for band in bands), space.id)
            builder = DeltaBuilder(run.number, [len(band) for band in bands])
            for band in bands:
                builder.add(band)
            space.put(layout.DELTA_KEY.pack(layout.TAG_DELTA, run.number), builder.value())
        else:
            self._put_segments(bands)
        self._own += self._rows * manifest.bands
        self._pending.clear()
        self._rows = 0
        self._changed = True
        self.save()

    def _tiny(self, rows: int) -> Run | None:
        """Return the last run when it is so small that it is written again with `rows` more."""
        if rows >= TINY or not self._space.manifest.runs:
            return None
        manifest = self._space.manifest
        busy = manifest.busy()
        for run in reversed(manifest.runs.values()):
            if run.kind == DELTA and run.number not in busy:
                return run if run.count < TINY * manifest.bands else None
        return None

    def _delta_most(self) -> int:
        # A delta is one value: beyond a segment's size it would need a longer run of free pages than most
        # that merges leave behind, and the file would grow by it.
        manifest = self._space.manifest
        return min(DELTA_MOST, max(manifest.segment_capacity() // manifest.bands, TINY))

    def _put_segments(self, bands: list[U64]) -> None:
        space, manifest = self._space, self._space.manifest
        capacity = manifest.segment_capacity()
        run = manifest.new_run(SEGMENTS, sum(len(band) for band in bands), space.id)
        data = np.zeros(manifest.segment_bytes, np.uint8)
        for number, band in enumerate(bands):
            for start in range(0, len(band), capacity):
                part = band[start : start + capacity]
                end = layout.SEGMENT_HEADER + 8 * len(part)
                data[layout.SEGMENT_HEADER : end].view("<u8")[:] = part
                key = layout.SEGMENT_KEY.pack(layout.TAG_SEGMENT, number, run.number, int(part[0]))
                space.put(key, close_segment(data, run.number, number, len(part)))

    def merge(self, live: U64 | None, budget: int | None = None) -> None:
        """Do the share of merging that the postings of this transaction pay for.

        live: addresses of the live bitmap (dead rows' postings are dropped), None when every row lives.
        budget: the most postings to read; None = as DESIGN says: each open job gets four times the postings
        put in, at most 400,000 (or four times the own ones) in all, lowest level first, and no step starts
        after 10 ms.
        """
        own = self._own
        self._own = 0
        earned = SLACK * own
        most = max(MOST_READ, earned) if budget is None else budget
        spent, start = 0, thread_time()
        manifest = self._space.manifest
        if live is not None and manifest.runs:
            looked_at = 1 + min(own // (1000 * manifest.bands), 7)  # a large commit can afford a wider look
            self._changed = sample_dead(self._space, live, looked_at) or self._changed
        spent += self._start_jobs(live)
        for job in sorted(manifest.jobs, key=lambda job: job.level):
            job.credit += earned if budget is None else budget
            self._changed = self._changed or bool(earned or budget)
            runner = None
            late = len(self._idle(job.level)) >= FAN_OUT
            while job.credit > 0 and spent < most and job in manifest.jobs:
                if budget is None and not late and thread_time() - start > MOST_SECONDS:
                    break
                runner = runner or JobRunner(self._space, job)
                read = runner.step(live)
                job.credit -= read
                spent += read
                self._changed = True
        self.save()

    def _idle(self, level: int) -> list[Run]:
        manifest = self._space.manifest
        busy = manifest.busy()
        return [r for r in manifest.runs.values() if r.number not in busy and manifest.level(r) == level]

    def _start_jobs(self, live: U64 | None) -> int:
        """Fold small runs, and start a job on every level that has a full group and none under way."""
        manifest, space, spent, level = self._space.manifest, self._space, 0, 0
        levels = {manifest.level(run) for run in manifest.runs.values()}
        while levels and level <= max(levels):
            idle = self._idle(level)
            group = idle[:FAN_OUT]
            if live is not None and len(group) < FAN_OUT:  # mostly dead runs do not wait for a full group
                group = [run for run in idle if 4 * run.dead > run.count]
            if len(group) == FAN_OUT or (group and live is not None):
                if self._foldable(group):
                    spent += fold(space, group, live)
                    self._changed = True
                    levels = {manifest.level(run) for run in manifest.runs.values()}
                    continue
                if all(job.level != level for job in manifest.jobs):
                    start_job(space, level, group)
                    self._changed = True
            level += 1
        return spent

    def _foldable(self, runs: list[Run]) -> bool:
        manifest = self._space.manifest
        rows = sum(run.count for run in runs) // manifest.bands
        return rows <= min(FOLD_MOST, self._delta_most()) and all(run.kind == DELTA for run in runs)

    def finish(self, live: U64 | None, budget: int | None = None, single: bool = True) -> bool:
        """Finish the open jobs and, if `single`, merge all runs into one; return whether all is done.

        budget: the most postings to read, about; None = no limit (then all is done).
        """
        self.flush()
        manifest, spent = self._space.manifest, 0
        while budget is None or spent < budget:
            if not manifest.jobs:
                group = list(manifest.runs.values())
                group.sort(key=lambda run: run.count)
                if not single or len(group) < 2:
                    break
                start_job(self._space, 99, group[:_MANY])
            runner = JobRunner(self._space, manifest.jobs[0])
            while not runner.done and (budget is None or spent < budget):
                spent += runner.step(live)
            self._changed = True
        self.save()
        return not manifest.jobs and (not single or len(manifest.runs) < 2)

    def save(self) -> None:
        """Store the manifest if it changed."""
        if self._changed:
            self._space.put(layout.MANIFEST_KEY, self._space.manifest.encode())
            self._changed = False
