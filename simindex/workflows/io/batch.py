"""The pieces of a corpus on its way.

Places, batches, decoded batches, blocks of the second pass, and what can go wrong.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from simindex.errors import FeatureError, SimindexError
from simindex.types import I64, U8, Packed

Bools = npt.NDArray[np.bool_]


class BadRecord(FeatureError):
    """A record of the input cannot be read; the message names file, line and reason."""


class TruncatedInput(SimindexError, OSError):
    """An input file is cut short, broken, or shorter than when it was read first."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class UnknownColumn(FeatureError):
    """The input has no such column; the message names those that it has."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where reading stands.

    File number, offset in it (bytes of content for JSON lines, records elsewhere), line from 0.
    """

    file: int = 0
    offset: int = 0
    line: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """A stretch of one input file, not yet decoded.

    Payload is the reader's own (bytes, rows, an Arrow batch, paths).
    """

    file: int
    offset: int  # where it begins (see Place)
    stop: int  # where it ends
    first_line: int | None  # of the file, from 0; None: it follows the batch before
    payload: Any
    size: int  # bytes of input, for the progress


@dataclass(frozen=True, slots=True)
class Reject:
    """One unreadable record: its line in the file from 1, why, and its raw bytes."""

    line: int
    error: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Decoded:
    """The records of one batch.

    texts:    one per record; empty where absent.
    present:  bool per record: it has the text field, and not null.
    labels:   what --key names, one per record (str, int, or None where missing); None without --key.
    lines:    lines (or rows) of the batch, blank and rejected ones too.
    accepted: bool per line: it is a record; None if all are.
    """

    texts: Packed
    present: Bools
    labels: "list[Any] | Labels | None"
    lines: int
    accepted: Bools | None
    rejects: list[Reject] = field(default_factory=list)
    columns: tuple[str, ...] = ()  # the text field if any record has it, else the names in the first record

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels as they stand in the input, without a Python object each.

    Label i is the JSON value data[start[i]:end[i]]: a string without escapes (kind LABEL_STRING, with its
    quotes), a number (LABEL_NUMBER), or missing (LABEL_ABSENT).
    """

    data: U8
    start: I64
    end: I64
    kind: U8


@dataclass(frozen=True, slots=True)
class Block:
    """A batch as the second pass knows it: where it is and which of its lines are records."""

    file: int
    offset: int
    stop: int
    lines: int
    records: int
    accepted: Bools | None


def line_mask(lines: int, accepted: Bools | None, keep: Bools) -> Bools:
    """Return which lines of a block survive: keep is per record, accepted tells which lines are records."""
    if accepted is None:
        return keep
    mask = np.zeros(lines, np.bool_)
    mask[np.flatnonzero(accepted)] = keep
    return mask


def pack_texts(texts: list[str | bytes | None]) -> tuple[Packed, Bools]:
    """Return (Packed UTF-8 bytes, which were not None); lone surrogates are kept (surrogatepass)."""
    parts = [
        b"" if text is None else text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        for text in texts
    ]
    offsets = np.zeros(len(parts) + 1, np.int64)
    if parts:
        np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=offsets[1:])
    data = np.frombuffer(b"".join(parts), np.uint8)
    return Packed(data, offsets), np.fromiter((text is not None for text in texts), np.bool_, len(texts))
