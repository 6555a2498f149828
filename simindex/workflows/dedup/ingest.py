"""The first pass.

Read, decode, sign, store. Workers compute, the caller's thread reads and writes in order.
"""

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgpack
import numpy as np

from simindex import kernels
from simindex.features import text_features_packed
from simindex.index.prepare import PreparedField, prepare_field
from simindex.index.records import pack_attributes
from simindex.index.schema import Schema
from simindex.store import trim
from simindex.types import ABSENT, EMPTY, SHORTENED, Features, Packed
from simindex.workflows.dedup.options import FIELD, Options, UsageError
from simindex.workflows.dedup.state import State
from simindex.workflows.io import BadRecord, Batch, Block, Decoded, Labels, Place, Source, label_list

COMMIT_BYTES = 64 << 20  # of the state; until the commit they are this process's memory
MAPPED_BYTES = 256 << 20  # of files, resident in a pass over the state
COMMIT_SECONDS = 5.0
Progress = Callable[[str, int, int | None], None]  # stage, done, of how much (None: not known)


class Work:
    """What a worker makes of one batch."""

    __slots__ = ("attributes", "batch", "decoded", "field")

    def __init__(
        self, batch: Batch, decoded: Decoded, field: PreparedField, attributes: Packed | None
    ) -> None:
        self.batch = batch
        self.decoded = decoded
        self.field = field
        self.attributes = attributes

    @property
    def stored_bytes(self) -> int:
        """About what this batch adds to the state."""
        field, n = self.field, len(self.decoded)
        sets = 0 if field.originals is None else int(field.originals.offsets[-1])
        labels = 0 if self.attributes is None else int(self.attributes.offsets[-1])
        return int(field.signatures.nbytes + field.postings.nbytes + sets + labels + 32 * n)


def compute(
    source: Source, schema: Schema, keeps_labels: bool, sources: list[str] | None, batch: Batch
) -> Work:
    """Decode a batch and make its signatures, postings and packed sets.

    Thread-safe; the kernels release the GIL.
    """
    decoded = source.decode(batch)
    field = schema.fields[FIELD]
    assert field.text is not None
    features = text_features_packed(decoded.texts, field.text)
    if not decoded.present.all():
        state = features.state.copy()
        state[~decoded.present] = ABSENT
        features = Features(features.hashes, features.ptr, state)
    prepared = prepare_field(field, features)
    attributes = None
    if len(decoded) and (keeps_labels or sources is not None):
        labels = decoded.labels if keeps_labels else None
        attributes = pack_labels(labels, None if sources is None else sources[batch.file], len(decoded))
    return Work(batch, decoded, prepared, attributes)


def pack_labels(labels: "list[Any] | Labels | None", source: str | None, n: int) -> Packed:
    """Return the attributes of n items: {"label": ..., "source": ...}, each only where there is one."""
    fixed = {} if source is None else {"source": source}
    if labels is None:
        one = np.frombuffer(pack_attributes(fixed), np.uint8)
        return Packed(np.tile(one, n), np.arange(n + 1, dtype=np.int64) * len(one))
    if isinstance(labels, Labels):
        rest = pack_attributes({"source": source})[1:] if source is not None else b""
        bare = pack_attributes(fixed)
        head = bytes([0x81 + len(fixed)]) + msgpack.packb("label")
        packed = kernels.pack_labels(labels.data, labels.start, labels.end, labels.kind, head, rest, bare)
        if packed is not None:
            return Packed(*packed)
    values = label_list(labels)
    parts = [pack_attributes(fixed if label is None else {"label": label, **fixed}) for label in values]
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, n), out=offsets[1:])
    return Packed(np.frombuffer(b"".join(parts), np.uint8), offsets)


class Ingest:
    """One first pass over a source into a state."""

    def __init__(
        self, source: Source, state: State, options: Options, rejects: str | None, progress: Progress
    ) -> None:
        self.source = source
        self.state = state
        self.options = options
        self.rejects_path = rejects
        self.progress = progress
        self._rejects: Any = None
        self._bytes = 0
        self._columns_seen = state.rows > state.counts["absent"]

    def run(self) -> None:
        """Read from the state's place to the end of the input.

        The state is committed then, in phase "read".
        """
        names = [file.name for file in self.source.files]
        sources = names if self.options.index is not None else None
        batches = self.source.batches(self.state.place)
        last = time.monotonic()
        pending = 0
        try:
            if self.rejects_path is not None:
                self._open_rejects(self.rejects_path)
            for work in self._computed(batches, sources):
                self._take(work)
                pending += work.stored_bytes
                self.progress("reading", self.state.counts["bytes"], None)
                now = time.monotonic()
                if pending >= COMMIT_BYTES or now - last >= COMMIT_SECONDS:
                    self._sync_rejects()
                    self.state.commit()
                    trim(self.state.path, MAPPED_BYTES)
                    pending, last = 0, now
            self._sync_rejects()
            self.state.commit("read")
        finally:
            if self._rejects is not None:
                self._rejects.close()

    def _computed(self, batches: Iterator[Batch], sources: list[str] | None) -> Iterator[Work]:
        """Yield the work of each batch, in order, with at most two batches a thread under way."""
        threads = self.options.workers
        given = (self.source, self.state.schema, self.options.keeps_labels, sources)
        if threads == 1:
            for batch in batches:
                yield compute(*given, batch)
            return
        waiting: deque[Future[Work]] = deque()
        with ThreadPoolExecutor(threads, thread_name_prefix="simindex-dedup") as pool:
            try:
                for batch in batches:
                    waiting.append(pool.submit(compute, *given, batch))
                    if len(waiting) > 2 * threads or (waiting[0].done() and len(waiting) > threads):
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def _take(self, work: Work) -> None:
        batch, decoded, state = work.batch, work.decoded, self.state
        line = batch.first_line
        if line is None:
            line = state.place.line if state.place.file == batch.file else 0
        if decoded.rejects:
            self._report(batch, line, decoded)
        n = len(decoded)
        if n and not self._columns_seen:
            if not decoded.present.any() and state.rows == 0:
                self._complain(decoded)
            self._columns_seen = True
        block = Block(batch.file, batch.offset, batch.stop, decoded.lines, n, decoded.accepted)
        place = Place(batch.file, batch.stop, line + decoded.lines)
        states = work.field.states
        counts = state.counts
        counts["absent"] += int((states == ABSENT).sum())
        counts["empty"] += int((states == EMPTY).sum())
        counts["shortened"] += int((states == SHORTENED).sum())
        counts["rejected"] += len(decoded.rejects)
        counts["lines"] += decoded.lines
        counts["bytes"] += batch.size
        state.append(block, work.field, work.attributes, place)

    def _complain(self, decoded: Decoded) -> None:
        if self.options.field in decoded.columns:
            return
        raise UsageError(
            f"none of the first {len(decoded)} records has a field {self.options.field!r}; "
            f"the first has: {', '.join(decoded.columns)}. Name one of them with --field"
        )

    def _report(self, batch: Batch, first_line: int, decoded: Decoded) -> None:
        name = self.source.files[batch.file].name
        for reject in decoded.rejects:
            line = first_line + reject.line + 1
            if self.options.on_error == "fail":
                raise BadRecord(f"{name}, line {line}: {reject.error} (--on-error skip goes on without it)")
            if self._rejects is not None:
                entry = {
                    "file": name,
                    "line": line,
                    "error": reject.error,
                    "raw": reject.raw.rstrip(b"\r\n").decode("utf-8", "surrogateescape"),
                }
                self._rejects.write(json.dumps(entry).encode() + b"\n")

    def _open_rejects(self, path: str) -> None:
        """Open the file of rejects as the last commit left it."""
        self._rejects = open(path, "ab")  # noqa: SIM115 (closed by run)
        if self._rejects.tell() < self.state.rejects_bytes:
            raise UsageError(
                f"{path} has {self._rejects.tell()} of the {self.state.rejects_bytes} bytes that the stopped "
                f"run wrote: delete {self.state.path} to start anew"
            )
        self._rejects.truncate(self.state.rejects_bytes)
        self._rejects.seek(0, os.SEEK_END)

    def _sync_rejects(self) -> None:
        if self._rejects is not None:
            self._rejects.flush()
            os.fsync(self._rejects.fileno())
            self.state.rejects_bytes = self._rejects.tell()
