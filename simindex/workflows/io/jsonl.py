"""JSON lines.

Blocks of whole lines, decoded without a Python object per record where the scanner can, copied byte for
byte.
"""

from collections.abc import Iterable, Iterator
from typing import IO, Any

import numpy as np

from simindex.types import I64
from simindex.workflows.io.batch import (
    Batch,
    Block,
    Bools,
    Decoded,
    Place,
    TruncatedInput,
)
from simindex.workflows.io.formats import Format
from simindex.workflows.io.inputs import InputFile
from simindex.workflows.io.jsondecode import decode_block, encode, load_object
from simindex.workflows.io.streams import skip

BATCH_BYTES = 4 << 20


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
        for number in range(place.file, len(self.files)):
            offset = place.offset if number == place.file else 0
            with self.files[number].content() as stream:
                skip(stream, offset)
                for data in _whole_lines(stream, self.batch_bytes):
                    yield Batch(number, offset, offset + len(data), None, data, len(data))
                    offset += len(data)

    def decode(self, batch: Batch) -> Decoded:
        """Return the records of a batch. Thread-safe."""
        return decode_block(batch.payload, self.field, self.key, batch.offset == 0)

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
            yield _carried(load_object(payload[starts[i] : stops[i]]))


def _carried(value: Any) -> Any:
    """Return a parsed value for another format, where U+FFFD stands for what is no UTF-8 (lone surrogates,
    bad bytes)."""
    if isinstance(value, str):
        return value if value.isascii() else encode(value).decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_carried(name): _carried(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_carried(inner) for inner in value]
    return value


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
