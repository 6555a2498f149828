"""Whether stored runs are what their manifest says."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from simindex.errors import CorruptStore
from simindex.kernels import block_is_sound, is_sealed
from simindex.store import layout
from simindex.store.finding import Finding
from simindex.store.manifest import DELTA, SEGMENTS, Job, Manifest
from simindex.store.runvalues import delta_bands, segment_count

_PREFIX = 6


class RunCheck:
    """Goes through every value of a keyspace and counts what it should hold."""

    def __init__(self, txn: Any, db: Any, prefix: bytes, manifest: Manifest) -> None:
        self._txn, self._db, self._prefix, self._manifest = txn, db, prefix, manifest
        self._counts: dict[int, int] = defaultdict(int)
        self._left: dict[int, int] = defaultdict(int)  # output of a job -> postings still in its inputs
        self._seen: set[int] = set()
        self._job_of = {number: job for job in manifest.jobs for number in job.inputs}
        self._output = {job.output: job for job in manifest.jobs}
        self._before: tuple[int, int, int] = (-1, -1, -1)  # band, run and last posting of the segment before

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong, value by value, then count by count."""
        with self._txn.cursor(db=self._db) as cursor:
            found = cursor.set_range(self._prefix)
            while found:
                key = bytes(cursor.key())
                if key[:_PREFIX] != self._prefix:
                    break
                yield from self._value(key[_PREFIX:], cursor.value())
                found = cursor.next()
        yield from self._totals()

    def _value(self, key: bytes, value: Any) -> Iterator[Finding]:
        tag = key[0] if key else -1
        if tag == layout.TAG_DELTA and len(key) == layout.DELTA_KEY.size:
            yield from self._delta(layout.DELTA_KEY.unpack(key)[1], value)
        elif tag == layout.TAG_SEGMENT and len(key) == layout.SEGMENT_KEY.size:
            _, band, number, first = layout.SEGMENT_KEY.unpack(key)
            yield from self._segment(band, number, first, value)
        elif key != layout.MANIFEST_KEY:
            yield Finding("unknown", f"postings {self._prefix.hex()}", f"a value under {key.hex()}")

    def _delta(self, number: int, value: Any) -> Iterator[Finding]:
        where = f"delta {number}"
        run = self._manifest.runs.get(number)
        if run is None or run.kind != DELTA:
            yield Finding("extra", where, "the list of runs does not have it")
            return
        self._seen.add(number)
        if not is_sealed(value):
            yield Finding("checksum", where, "its bytes contradict their checksum")
            return
        try:
            blocks = delta_bands(value, number, self._manifest.bands)
        except CorruptStore as error:
            yield Finding("shape", where, str(error))
            return
        for band, (offset, count) in enumerate(blocks):
            if not block_is_sound(value, offset, count):
                yield Finding("shape", f"{where} band {band}", "not ascending, or a wrong directory")
            self._count(number, band, np.frombuffer(value, "<u8", count, offset))

    def _segment(self, band: int, number: int, first: int, value: Any) -> Iterator[Finding]:
        where = f"run {number} band {band} segment {first:#x}"
        run = self._manifest.runs.get(number)
        if run is None or run.kind != SEGMENTS or band >= self._manifest.bands:
            yield Finding("extra", where, "the list of runs does not have it")
            return
        self._seen.add(number)
        if not is_sealed(value):
            yield Finding("checksum", where, "its bytes contradict their checksum")
            return
        try:
            count = segment_count(value, number, band)
        except CorruptStore as error:
            yield Finding("shape", where, str(error))
            return
        postings = np.frombuffer(value, "<u8", count, layout.SEGMENT_HEADER)
        ends = layout.SEGMENT_FIELDS.unpack_from(value)[7:]
        if not count or not block_is_sound(value, layout.SEGMENT_HEADER, count):
            yield Finding("shape", where, "not ascending, or a wrong directory")
            return
        if ends != (int(postings[0]), int(postings[-1])) or ends[0] != first:
            yield Finding("shape", where, f"its ends are {postings[0]} and {postings[-1]}, not {ends}")
        if self._before[:2] == (band, number) and self._before[2] >= first:
            yield Finding("shape", where, f"begins at or below the last end {self._before[2]:#x}")
        self._before = (band, number, int(postings[-1]))
        job = self._output.get(number)
        if job is not None and (band, int(postings[-1])) >= (job.band, job.frontier):
            yield Finding("shape", where, f"holds postings above the frontier {job.frontier:#x} of its job")
        job = self._job_of.get(number)
        if job is not None and band < job.band:
            yield Finding("extra", where, f"its job is at band {job.band} already")
        self._count(number, band, postings)

    def _count(self, number: int, band: int, postings: Any) -> None:
        self._counts[number] += len(postings)
        job = self._job_of.get(number)
        if job is not None and band >= job.band:
            gone = int(np.searchsorted(postings, np.uint64(job.frontier))) if band == job.band else 0
            self._left[job.output] += len(postings) - gone

    def _totals(self) -> Iterator[Finding]:
        for number, run in self._manifest.runs.items():
            if run.count and number not in self._seen and number not in self._job_of:
                yield Finding("missing", f"run {number}", f"{run.count} postings")
            elif number not in self._job_of and self._counts[number] != run.count:
                yield Finding("count", f"run {number}", f"{self._counts[number]} postings of {run.count}")
        for job in self._manifest.jobs:
            yield from self._job(job)

    def _job(self, job: Job) -> Iterator[Finding]:
        where = f"merge into run {job.output}"
        runs = self._manifest.runs
        absent = [number for number in (job.output, *job.inputs) if number not in runs]
        if absent or job.band >= self._manifest.bands:
            yield Finding("shape", where, f"runs {absent} are not listed, band {job.band}")
            return
        expected = sum(runs[number].count for number in job.inputs) - job.read
        if self._left[job.output] != expected:
            yield Finding("count", where, f"{self._left[job.output]} postings left of {expected}")
