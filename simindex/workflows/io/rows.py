"""Whole records as dicts, for put: key column renamed, unreadable ones reported or fatal."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simindex.workflows.io.batch import BadRecord, Place
from simindex.workflows.io.csvfile import Csv
from simindex.workflows.io.folder import Folder
from simindex.workflows.io.jsondecode import BOM, load_object
from simindex.workflows.io.jsonl import JsonLines
from simindex.workflows.io.sources import open_source


@dataclass(frozen=True, slots=True)
class BadRow:
    """A record that could not be read: file, line from 1, and why."""

    file: str
    line: int
    error: str


@dataclass
class Rows:
    """An iterable of records, each a dict with "key"; rejects fills up while it is read. To be read once.

    key: the column that becomes "key". is_int: text keys (CSV) are read as integers. skips: bad records are
    left out and reported instead of raising BadRecord.
    """

    source: Any
    key: str
    is_int: bool
    skips: bool
    rejects: list[BadRow] = field(default_factory=list)
    _folder: Any = field(default=None, repr=False)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for file, line, record, error in self._records():
            if error is None and not isinstance(record, dict):
                error = "a JSON object is needed"
            if error is None and record.get(self.key) is None:
                error = f"no key: column {self.key!r} is missing or null"
            if error is not None:
                if not self.skips:
                    raise BadRecord(f"{file}, line {line}: {error} (--on-error skip goes on without it)")
                self.rejects.append(BadRow(file, line, error))
                continue
            value = record.pop(self.key)
            if self.is_int and isinstance(value, str) and value.isdecimal():
                value = int(value)
            yield {"key": value, **record}

    def _records(self) -> Iterator[tuple[str, int, Any, str | None]]:
        source = self.source
        if isinstance(source, JsonLines):
            yield from self._lines(source)
            return
        if isinstance(source, Csv):
            for batch in source.batches(Place()):
                for row in batch.payload:
                    record = (
                        dict(zip(source.header or [], row[1], strict=True)) if row[1] is not None else None
                    )
                    yield source.files[batch.file].name, row[3] + 1, record, row[2] or None
            return
        for number, file in enumerate(source.files):
            at = 1
            if isinstance(source, Folder):
                payload = [(file.path, path) for path, _, _ in source.listing(number)]
                for record in source.rows(payload, np.ones(len(payload), np.bool_)):
                    yield file.name, at, record, None
                    at += 1
            else:
                for batch in source.stretches(number):
                    for record in batch.to_pylist():
                        yield file.name, at, record, None
                        at += 1

    def _lines(self, source: JsonLines) -> Iterator[tuple[str, int, Any, str | None]]:
        current, line = -1, 0
        for batch in source.batches(Place()):
            if batch.file != current:
                current, line = batch.file, 0
            for raw in batch.payload.removesuffix(b"\n").split(b"\n"):
                line += 1
                if not raw.removeprefix(BOM).strip():
                    continue
                try:
                    yield source.files[current].name, line, load_object(raw), None
                except ValueError as error:
                    yield source.files[current].name, line, None, str(error)


def open_rows(paths: Sequence[str], format: str | None, key: str, is_int: bool, skips: bool) -> Rows:
    """Return the records of files as dicts with "key"; see Rows. Raises as open_source does."""
    import tempfile

    # Only Parquet has to be read from any position; the copy goes when the rows do.
    folder = tempfile.TemporaryDirectory(prefix="simindex-") if "-" in paths and format == "parquet" else None
    spool = None if folder is None else os.path.join(folder.name, "stdin")
    field = "text" if all(_is_folder(path, format) for path in paths) else key
    return Rows(open_source(paths, field, None, format, spool), key, is_int, skips, _folder=folder)


def _is_folder(path: str, format: str | None) -> bool:
    return format == "folder" or (format is None and os.path.isdir(path))
