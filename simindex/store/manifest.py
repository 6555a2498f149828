"""The list of runs and merge jobs of one postings keyspace, as it is stored.

A run is either a delta (one value with all bands, written by one commit) or segments (per band, a chain of
values of bounded size). A job merges runs into a new one, band by band; postings of its band below the
frontier are in the output, the others still in the inputs, so output and inputs together hold each posting
once at any time.
"""

from dataclasses import dataclass, field
from typing import Any

from simindex.errors import CorruptStore
from simindex.kernels import is_sealed, seal
from simindex.store import layout

DELTA = 0
SEGMENTS = 1
FAN_OUT = 8
TINY = 64  # rows; smaller deltas are rewritten together with the next
_FAN_BITS = FAN_OUT.bit_length() - 1


@dataclass(slots=True)
class Run:
    """count: postings of all bands; dead: about how many of them are dead; changed: transaction id of the
    last value put into the run."""

    number: int
    kind: int
    count: int
    dead: int
    changed: int


@dataclass(slots=True)
class Job:
    """A merge under way. credit: postings that it may still read for the commits so far; read: how many it
    did."""

    level: int
    output: int
    band: int
    frontier: int
    credit: int
    read: int
    inputs: list[int]


@dataclass(slots=True)
class Manifest:
    """bands: per row; segment_bytes: the most bytes of a segment."""

    bands: int
    segment_bytes: int = layout.SEGMENT_BYTES
    next_run: int = 0
    runs: dict[int, Run] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)

    @classmethod
    def load(cls, txn: Any, db: Any, prefix: bytes, bands: int) -> "Manifest":
        """Return the stored manifest, or a new one."""
        value = txn.get(prefix + layout.MANIFEST_KEY, db=db)
        return cls(bands) if value is None else cls.decode(value, bands)

    @classmethod
    def decode(cls, value: bytes | memoryview, bands: int) -> "Manifest":
        """CorruptStore when the bytes contradict their checksum or were written for another number of
        bands."""
        head = layout.MANIFEST_FIELDS
        if len(value) < head.size or bytes(value[:4]) != layout.MANIFEST_MAGIC or not is_sealed(value):
            raise CorruptStore("the list of runs contradicts its checksum")
        _, _, stored, segment_bytes, next_run, n_runs, n_jobs, _ = head.unpack_from(value)
        if stored != bands:
            raise CorruptStore(f"the list of runs is of {stored} bands, not {bands}")
        manifest = cls(bands, segment_bytes, next_run)
        at = head.size
        for _ in range(n_runs):
            run = Run(*layout.RUN_FIELDS.unpack_from(value, at))
            manifest.runs[run.number] = run
            at += layout.RUN_FIELDS.size
        for _ in range(n_jobs):
            level, output, band, n, frontier, credit, read = layout.JOB_FIELDS.unpack_from(value, at)
            at += layout.JOB_FIELDS.size
            inputs = [int.from_bytes(value[i : i + 4], "little") for i in range(at, at + 4 * n, 4)]
            at += 4 * n
            manifest.jobs.append(Job(level, output, band, frontier, credit, read, inputs))
        return manifest

    def encode(self) -> bytes:
        """Return the bytes to store."""
        parts = [
            layout.MANIFEST_FIELDS.pack(
                layout.MANIFEST_MAGIC, 0, self.bands, self.segment_bytes, self.next_run,
                len(self.runs), len(self.jobs), 0,
            )
        ]  # fmt: skip
        for run in self.runs.values():
            parts.append(layout.RUN_FIELDS.pack(run.number, run.kind, run.count, run.dead, run.changed))
        for job in self.jobs:
            parts.append(
                layout.JOB_FIELDS.pack(
                    job.level, job.output, job.band, len(job.inputs), job.frontier, job.credit, job.read
                )
            )
            parts.extend(number.to_bytes(4, "little") for number in job.inputs)
        value = bytearray(b"".join(parts))
        seal(value)
        return bytes(value)

    def new_run(self, kind: int, count: int, changed: int) -> Run:
        """Add a run with a number that was never used."""
        run = Run(self.next_run, kind, count, 0, changed)
        self.next_run += 1
        self.runs[run.number] = run
        return run

    def level(self, run: Run) -> int:
        """Return the level of a run: 0 below 512 rows, then one more for each factor of 8."""
        rows = run.count // max(self.bands, 1) // TINY
        return max(0, rows.bit_length() - 1) // _FAN_BITS

    def busy(self) -> set[int]:
        """Return the numbers of the runs that belong to a job."""
        numbers = {job.output for job in self.jobs}
        for job in self.jobs:
            numbers.update(job.inputs)
        return numbers

    def segment_capacity(self) -> int:
        """Return the most postings of a segment."""
        return segment_capacity(self.segment_bytes)


def segment_capacity(segment_bytes: int) -> int:
    """Return the most postings that fit with their directory into a segment of that many bytes."""
    room = segment_bytes - layout.SEGMENT_HEADER
    count = (room - 4) * 4 // 33
    while 8 * count + 2 * (-(-count // 8) + 1) > room:
        count -= 1
    return count
