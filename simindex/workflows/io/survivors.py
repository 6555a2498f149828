"""Writers of survivors: the same format is copied untouched, another one is converted row by row."""

import os
import shutil
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from simindex.errors import FeatureError
from simindex.workflows.io.batch import Bools
from simindex.workflows.io.convert import CsvRows, JsonRows, ParquetRows
from simindex.workflows.io.csvfile import Csv
from simindex.workflows.io.formats import FORMATS, Format, format_of
from simindex.workflows.io.jsondecode import BOM
from simindex.workflows.io.jsonl import JsonLines, line_ranges
from simindex.workflows.io.sources import Source
from simindex.workflows.io.streams import Output, sync_folder


class Survivors(Protocol):
    """Where survivors go. Nothing is at the final path before finish()."""

    def write(self, payload: Any, kept: Bools) -> None:
        """Append the kept lines of one block's content."""

    def seal(self) -> None:
        """Complete the output on disk under its temporary name."""

    def finish(self) -> None:
        """Give the output its name."""

    def close(self) -> None:
        """Let go of the file.

        Without finish() the temporary one stays behind for the next run to overwrite.
        """


def output_format(source: Source, path: str) -> Format:
    """Return the format of the output.

    By its suffix, else the input's. Raises FeatureError if that cannot be written.
    """
    found = format_of(path) if not os.path.isdir(path) else Format("folder")
    if found is None:
        if os.path.splitext(path)[1] and source.format.name != "folder":
            known = ", ".join(suffix for endings in FORMATS.values() for suffix in endings)
            raise FeatureError(
                f"{path}: its suffix is none of {known} (each also .gz or .zst, but not Parquet)"
            )
        found = Format(source.format.name)
    if found.name == "folder" and source.format.name != "folder":
        raise FeatureError(f"{path}: only a folder of text files can be written as a folder; name a file")
    return found


def open_survivors(
    source: Source, path: str, temporary: str, passes: Iterable[Any] | None = None
) -> Survivors:
    """Return the writer of `path`, which works under the name `temporary` until finish().

    passes: for a conversion, an iterable over all kept rows' (payload, mask); it is read first, to
        learn the columns.
    """
    target = output_format(source, path)
    same = target.name == source.format.name
    if target.name == "folder":
        return FolderCopy(path, temporary)
    if target.name == "parquet":
        if same:
            return ParquetCopy(source, path, temporary)
        return ParquetRows(source, path, temporary, passes or ())
    out = Output(path, temporary, target.compression)
    if target.name == "jsonl":
        return LineCopy(out) if isinstance(source, JsonLines) else JsonRows(source, out)
    if same and isinstance(source, Csv):
        return RecordCopy(source, out)
    return CsvRows(source, out, "\t" if target.name == "tsv" else ",", passes or ())


class _Copy:
    def __init__(self, out: Output) -> None:
        self.out = out
        self.is_first = True

    def seal(self) -> None:
        self.out.seal()

    def finish(self) -> None:
        self.out.finish()

    def close(self) -> None:
        self.out.close()


class LineCopy(_Copy):
    """JSON lines byte for byte.

    Only these bytes may differ: a last line gets its newline, a BOM stays at the very start only.
    """

    def write(self, payload: bytes, kept: Bools) -> None:
        if not kept.any():
            return
        if kept.all() and payload.endswith(b"\n") and not payload.startswith(BOM):
            self.out.write(payload)
            self.is_first = False
            return
        starts, stops = line_ranges(payload)
        edges = np.flatnonzero(np.diff(kept, prepend=False, append=False))
        view = memoryview(payload)
        firsts, lasts = starts[edges[0::2]].tolist(), stops[edges[1::2] - 1].tolist()
        if payload.startswith(BOM) and not self.is_first and kept[0]:
            firsts[0] += len(BOM)
        self.out.write(b"".join([view[a:b] for a, b in zip(firsts, lasts, strict=True)]))
        if payload[lasts[-1] - 1] != 10:
            self.out.write(b"\n")
        self.is_first = False


class RecordCopy(_Copy):
    """CSV records byte for byte under the header of the first file; a last record gets its line end."""

    def __init__(self, source: Csv, out: Output) -> None:
        super().__init__(out)
        self.source = source

    def _header(self) -> None:
        if self.is_first:
            self.source.read_header()
            self.out.write(_ended(self.source.header_bytes))
            self.is_first = False

    def write(self, payload: list[Any], kept: Bools) -> None:
        self._header()
        self.out.write(
            b"".join([_ended(row[0]) for row, keep in zip(payload, kept.tolist(), strict=True) if keep])
        )

    def seal(self) -> None:
        self._header()
        super().seal()


def _ended(raw: bytes) -> bytes:
    return raw if not raw or raw.endswith(b"\n") else raw + b"\n"


class ParquetCopy:
    """Rows of the same schema and metadata; statistics and compression are the writer's defaults."""

    def __init__(self, source: Any, path: str, temporary: str) -> None:
        self._pa = source._pa
        self.path, self.temporary = path, temporary
        self._writer: Any = self._pa.parquet.ParquetWriter(temporary, source.schema, compression="zstd")

    def write(self, payload: Any, kept: Bools) -> None:
        if kept.any():
            self._writer.write_table(payload.filter(self._pa.array(kept)))

    def seal(self) -> None:
        self._writer.close()
        with open(self.temporary, "rb+") as file:
            os.fsync(file.fileno())

    def finish(self) -> None:
        os.replace(self.temporary, self.path)
        sync_folder(self.path)

    def close(self) -> None:
        self._writer.close()


class FolderCopy:
    """Surviving files under their relative paths, bytes and times as they were.

    A path met again in a later folder is an error.
    """

    def __init__(self, path: str, temporary: str) -> None:
        self.path, self.temporary = path, temporary
        if os.path.isdir(temporary):
            shutil.rmtree(temporary)
        os.makedirs(temporary)

    def write(self, payload: list[tuple[str, str]], kept: Bools) -> None:
        for (root, path), keep in zip(payload, kept.tolist(), strict=True):
            if not keep:
                continue
            target = os.path.join(self.temporary, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if os.path.exists(target):
                raise FeatureError(
                    f"{path} is in more than one input folder: write JSON lines instead (-o OUT.jsonl)"
                )
            shutil.copy2(os.path.join(root, path), target)

    def seal(self) -> None:
        sync_folder(os.path.join(self.temporary, "."))

    def finish(self) -> None:
        if os.path.isdir(self.path):
            shutil.rmtree(self.path)
        os.replace(self.temporary, self.path)
        sync_folder(self.path)

    def close(self) -> None:
        pass
