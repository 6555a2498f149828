"""JSON lines.

Blocks of whole lines, decoded without a Python object per record where the scanner can, copied byte for
byte.
"""

import json
from collections.abc import Iterable, Iterator
from typing import IO, Any

import numpy as np
import orjson

from simindex.types import I64
from simindex.workflows.io.batch import (
    Batch,
    Block,
    Bools,
    Decoded,
    Place,
    Reject,
    TruncatedInput,
    pack_texts,
)
from simindex.workflows.io.formats import Format
from simindex.workflows.io.inputs import InputFile
from simindex.workflows.io.streams import skip

BATCH_BYTES = 4 << 20
BOM = b"\xef\xbb\xbf"


class JsonLines:
    """A corpus of JSON objects, one a line.

    UTF-8, LF or CR LF, blank lines ignored, with or without a last newline.
    """

    def __init__(
        self, files: list[InputFile], field: str, key: str | None, batch_bytes: int = BATCH_BYTES
    ) -> None:
        self.format = Format("jsonl")
        self.files = files
        self.field = field
        self.key = key
        self.batch_bytes = batch_bytes

    def batches(self, place: Place) -> Iterator[Batch]:
        """Yield blocks of whole lines from `place` on; memory is one block, or one line if that is longer."""
        line = place.line
        for number in range(place.file, len(self.files)):
            offset = place.offset if number == place.file else 0
            line = place.line if number == place.file else 0
            with self.files[number].content() as stream:
                skip(stream, offset)
                for data in _whole_lines(stream, self.batch_bytes):
                    lines = data.count(b"\n") + (not data.endswith(b"\n"))
                    yield Batch(number, offset, offset + len(data), line, data, len(data))
                    offset += len(data)
                    line += lines

    def decode(self, batch: Batch) -> Decoded:
        """Return the records of a batch. Thread-safe."""
        return decode_lines(batch.payload, self.field, self.key, batch.offset == 0)

    def again(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, bytes]]:
        """Yield each block with its bytes, in order; they must be those of the first pass."""
        stream: IO[bytes] | None = None
        current, at = -1, 0
        try:
            for block in blocks:
                if block.file != current:
                    if stream is not None:
                        stream.close()
                    stream = self.files[block.file].content()
                    current, at = block.file, 0
                assert stream is not None
                skip(stream, block.offset - at)
                yield block, _exactly(stream, block.stop - block.offset, self.files[current].name)
                at = block.stop
        finally:
            if stream is not None:
                stream.close()

    def rows(self, payload: bytes, mask: Bools) -> Iterator[dict[str, Any]]:
        """Yield the masked lines as dicts (for another output format)."""
        starts, stops = line_ranges(payload)
        for i in np.flatnonzero(mask).tolist():
            yield load_object(payload[starts[i] : stops[i]])


def _whole_lines(stream: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield the stream in pieces of about `size` bytes that end at a line's end.

    Only the last may lack its newline.
    """
    rest = b""
    while True:
        parts = [rest]
        data = b""
        while True:
            data = stream.read(size)
            cut = data.rfind(b"\n")
            if not data or cut >= 0:
                break
            parts.append(data)
        if not data:
            tail = b"".join(parts)
            if tail:
                yield tail
            return
        rest = data[cut + 1 :]
        if len(parts) == 1 and not parts[0] and cut + 1 == len(data):
            yield data
        else:
            parts.append(memoryview(data)[: cut + 1])  # type: ignore[arg-type]
            yield b"".join(parts)


def _exactly(stream: IO[bytes], size: int, name: str) -> bytes:
    parts = []
    while size:
        data = stream.read(size)
        if not data:
            raise TruncatedInput(f"{name}: the file became shorter while it was read")
        parts.append(data)
        size -= len(data)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def line_ranges(payload: bytes) -> tuple[I64, I64]:
    """Return (start, stop) of each line of a block.

    Stop is behind the newline, which the last line may lack.
    """
    stops = np.flatnonzero(np.frombuffer(payload, np.uint8) == 10).astype(np.int64) + 1
    if payload and not payload.endswith(b"\n"):
        stops = np.append(stops, np.int64(len(payload)))
    starts = np.empty_like(stops)
    starts[:1] = 0
    starts[1:] = stops[:-1]
    return starts, stops


def load_object(line: bytes) -> Any:
    """Parse one line. orjson first; the standard parser takes lone surrogates, NaN and invalid UTF-8, which
    orjson refuses.

    Raises ValueError with a short reason.
    """
    if line.startswith(BOM):
        line = line[3:]
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as first:
        try:
            return json.loads(line.decode("utf-8", "surrogateescape"))
        except (ValueError, RecursionError):
            raise ValueError(f"not JSON: {first}") from None


def decode_lines(payload: bytes, field: str, key: str | None, is_start: bool) -> Decoded:
    """Decode every line with a JSON parser: what the scanner's fast path must equal, and its way out."""
    starts, stops = line_ranges(payload)
    texts: list[str | bytes | None] = []
    labels: list[Any] = []
    accepted = np.ones(len(starts), np.bool_)
    rejects: list[Reject] = []
    columns: tuple[str, ...] = ()
    for i, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
        line = payload[start:stop]
        if i == 0 and is_start and line.startswith(BOM):
            line = line[3:]
        if not line.strip(b" \t\r\n"):
            accepted[i] = False
            continue
        try:
            record = checked(load_object(line), field)
        except ValueError as error:
            accepted[i] = False
            rejects.append(Reject(i, str(error), line))
            continue
        texts.append(record.get(field))
        columns = columns or tuple(map(str, record))
        if key is not None:
            labels.append(as_label(record.get(key)))
    packed, present = pack_texts(texts)
    everything = None if accepted.all() else accepted
    return Decoded(
        packed, present, labels if key is not None else None, len(starts), everything, rejects, columns
    )


def checked(record: Any, field: str) -> dict[str, Any]:
    """Return the record if it is an object whose text is a string, null or missing.

    Else ValueError says what it is.
    """
    if not isinstance(record, dict):
        raise ValueError(f"a JSON object is needed, not {_kind(record)}")
    text = record.get(field)
    if text is not None and not isinstance(text, str):
        raise ValueError(f"field {field!r} must be a string, not {_kind(text)}")
    return record


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {
        dict: "an object",
        list: "an array",
        str: "a string",
        bool: "a boolean",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), type(value).__name__)


def as_label(value: Any) -> str | int | None:
    """Return what --key names as a label.

    Strings and integers as they are, other JSON values as their JSON text.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64:
        return value
    return json.dumps(value, ensure_ascii=False)
