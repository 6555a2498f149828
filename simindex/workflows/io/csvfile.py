"""CSV and TSV with a header.

Quoted newlines, UTF-8; records are kept as raw bytes, so survivors are copied unchanged.
"""

import contextlib
import csv
import io
import itertools
import sys
from collections.abc import Generator, Iterable, Iterator
from typing import IO, Any, cast

import numpy as np

from simindex.workflows.io.batch import (
    BadRecord,
    Batch,
    Block,
    Bools,
    Decoded,
    Place,
    Reject,
    TruncatedInput,
    UnknownColumn,
    pack_texts,
)
from simindex.workflows.io.formats import Format
from simindex.workflows.io.inputs import InputFile

BATCH_BYTES = 2 << 20
Row = tuple[bytes, "list[str] | None", str, int]  # raw bytes, values (None: unreadable), why, line from 0


class Csv:
    """A corpus of CSV (or TSV) files with the same header.

    Bytes that are no UTF-8 are kept (surrogateescape).
    """

    def __init__(self, files: list[InputFile], field: str, key: str | None, format: Format) -> None:
        self.format = format
        self.files = files
        self.field = field
        self.key = key
        self.delimiter = "\t" if format.name == "tsv" else ","
        self.header: list[str] | None = None
        self.header_bytes = b""
        csv.field_size_limit(sys.maxsize)

    def _records(self, number: int) -> Generator[Row, None, None]:
        """Yield the records of a file behind its header, which must be that of the first file."""
        file = self.files[number]
        with file.content() as stream:
            rows = _split(stream, self.delimiter)
            first = next(rows, None)
            if first is None:
                return
            if first[1] is None:
                raise BadRecord(f"{file.name}, line 1: the header cannot be read: {first[2]}")
            header = first[1]
            if self.header is None:
                for name in (self.field, self.key):
                    if name is not None and name not in header:
                        raise UnknownColumn(
                            f"{file.name}: no column {name!r}; the header has: {', '.join(header)}"
                        )
                twice = {name for name in header if header.count(name) > 1} & {self.field, self.key or ""}
                if twice:
                    raise UnknownColumn(f"{file.name}: column {twice.pop()!r} appears more than once")
                self.header, self.header_bytes = header, first[0]
            elif header != self.header:
                raise BadRecord(
                    f"{file.name}: its header ({', '.join(header)}) is not that of "
                    f"{self.files[0].name} ({', '.join(self.header)})"
                )
            for raw, values, why, line in rows:
                found = values
                if found is not None and len(found) != len(header):
                    why = f"{len(found)} values, but the header has {len(header)} columns"
                    found = None
                yield raw, found, why, line

    def batches(self, place: Place) -> Iterator[Batch]:
        for number in range(place.file, len(self.files)):
            start = place.offset if number == place.file else 0
            rows: list[Row] = []
            size, offset = 0, 0
            with contextlib.closing(self._records(number)) as records:
                for row in records:
                    offset += 1
                    if offset <= start:
                        continue
                    rows.append(row)
                    size += len(row[0])
                    if size >= BATCH_BYTES:
                        yield Batch(number, offset - len(rows), offset, rows[0][3], rows, size)
                        rows, size = [], 0
            if rows:
                yield Batch(number, offset - len(rows), offset, rows[0][3], rows, size)

    def read_header(self) -> None:
        """Read the header of the first file, if nothing was read yet."""
        if self.header is None:
            with contextlib.closing(self._records(0)) as records:
                next(records, None)

    def decode(self, batch: Batch) -> Decoded:
        header = cast("list[str]", self.header)
        column = header.index(self.field)
        label = header.index(self.key) if self.key is not None else None
        rows: list[Row] = batch.payload
        good = [row[1] for row in rows if row[1] is not None]
        accepted = np.fromiter((row[1] is not None for row in rows), np.bool_, len(rows))
        rejects = [Reject(row[3] - (batch.first_line or 0), row[2], row[0]) for row in rows if row[1] is None]
        texts: list[str | bytes | None] = [
            values[column].encode("utf-8", "surrogateescape") for values in good
        ]
        packed, present = pack_texts(texts)
        labels = [values[label] for values in good] if label is not None else None
        everything = None if accepted.all() else accepted
        return Decoded(packed, present, labels, len(rows), everything, rejects, tuple(header))

    def again(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, list[Row]]]:
        current, at = -1, 0
        records: Generator[Row, None, None] | None = None
        try:
            for block in blocks:
                if block.file != current or records is None:
                    if records is not None:
                        records.close()
                    records, current, at = self._records(block.file), block.file, 0
                for _ in range(block.offset - at):
                    next(records, None)
                rows = list(itertools.islice(records, block.stop - block.offset))
                if len(rows) < block.stop - block.offset:
                    raise TruncatedInput(f"{self.files[current].name}: it became shorter while it was read")
                at = block.stop
                yield block, rows
        finally:
            if records is not None:
                records.close()

    def rows(self, payload: list[Row], mask: Bools) -> Iterator[dict[str, Any]]:
        header = cast("list[str]", self.header)
        for row, kept in zip(payload, mask.tolist(), strict=True):
            if kept and row[1] is not None:
                yield dict(zip(header, (_clean(value) for value in row[1]), strict=True))


def _clean(value: str) -> str:
    """Bytes that were no UTF-8 cannot be carried into another format: U+FFFD stands for them."""
    return (
        value.encode("utf-8", "surrogateescape").decode("utf-8", "replace") if not value.isascii() else value
    )


class _Lines:
    """Physical lines on their way to the csv reader; remembers the raw text of those that it has taken."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._file = io.TextIOWrapper(
            stream
            if isinstance(stream, io.BufferedIOBase)
            else io.BufferedReader(cast(Any, stream), 1 << 20),
            encoding="utf-8",
            errors="surrogateescape",
            newline="\n",
        )
        self.taken: list[str] = []
        self.line = 0
        self._is_first = True

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = self._file.readline()
        if not line:
            raise StopIteration
        self.taken.append(line)
        self.line += 1
        if self._is_first:
            self._is_first = False
            line = line.removeprefix("\ufeff")
        return line

    def close(self) -> None:
        self._file.close()

    def take(self) -> bytes:
        raw = "".join(self.taken).encode("utf-8", "surrogateescape")
        self.taken.clear()
        return raw


def _split(stream: IO[bytes], delimiter: str) -> Iterator[Row]:
    """Yield every record (the header too) with its raw bytes.

    Blank lines are skipped, an unreadable one has values None.
    """
    lines = _Lines(stream)
    try:
        yield from _rows(lines, csv.reader(lines, delimiter=delimiter, strict=True))
    finally:
        lines.close()


def _rows(lines: _Lines, reader: Iterator[list[str]]) -> Iterator[Row]:
    while True:
        line = lines.line
        try:
            values = next(reader, None)
        except csv.Error as error:
            yield lines.take(), None, f"not CSV: {error}", line
            continue
        if values is None:
            return
        raw = lines.take()
        if values:
            yield raw, values, "", line
