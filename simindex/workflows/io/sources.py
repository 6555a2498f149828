"""One face for every input format: batches for the first pass, the same stretches again for the second."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from simindex.errors import FeatureError
from simindex.workflows.io.batch import Batch, Block, Bools, Decoded, Place
from simindex.workflows.io.csvfile import Csv
from simindex.workflows.io.folder import Folder
from simindex.workflows.io.formats import FORMATS, format_of
from simindex.workflows.io.inputs import STDIN, InputFile
from simindex.workflows.io.jsonl import JsonLines


class Source(Protocol):
    """A corpus: one or more inputs of one format."""

    format: Any
    files: list[InputFile]

    def batches(self, place: Place) -> Iterator[Batch]:
        """Yield the input from a place on, in stretches of bounded size."""

    def decode(self, batch: Batch) -> Decoded:
        """Return the records of one batch; may run in any thread."""

    def again(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, Any]]:
        """Yield the content of blocks, ascending, for the survivors."""

    def rows(self, payload: Any, mask: Bools) -> Iterator[dict[str, Any]]:
        """Yield the masked lines of a block's content as dicts."""


def open_source(
    paths: Sequence[str],
    field: str = "text",
    key: str | None = None,
    format: str | None = None,
    spool: str | None = None,
) -> Source:
    """Return the corpus at `paths` ("-" is standard input, JSON lines unless `format` says else).

    Raises FeatureError for unknown, mixed or unsuitable formats, UnknownColumn, OSError for what cannot be
    read.
    """
    if not paths:
        raise FeatureError("no input: give at least one file or folder, or '-' for standard input")
    if STDIN in paths and len(paths) > 1:
        raise FeatureError("standard input cannot be mixed with other inputs")
    found = {}
    for path in paths:
        if path != STDIN and not os.path.exists(path):
            raise FileNotFoundError(f"{path}: no such file or folder")
        kind = format_of(path, format or ("jsonl" if path == STDIN else None))
        if kind is None:
            raise FeatureError(f"{path}: its suffix tells no format: give --format {'|'.join(FORMATS)}")
        if (kind.name == "folder") != os.path.isdir(path):
            what = "is a folder" if os.path.isdir(path) else "is no folder"
            raise FeatureError(f"{path} {what}, but its format is said to be {kind.name}")
        found[path] = kind
    names = {kind.name for kind in found.values()}
    if len(names) > 1:
        listed = ", ".join(f"{path} ({kind.name})" for path, kind in found.items())
        raise FeatureError(f"all inputs must be of one format: {listed}")
    files = [InputFile.at(path, found[path].compression, spool) for path in paths]
    name = names.pop()
    if name == "jsonl":
        return JsonLines(files, field, key)
    if name == "folder":
        return Folder(files, field, key)
    if name == "parquet":
        from simindex.workflows.io.parquet import Parquet

        return Parquet(files, field, key)
    kind = found[paths[0]]
    return Csv(files, field, key, type(kind)(kind.name))


def identity(source: Source) -> list[dict[str, Any]]:
    """Return what tells whether the inputs are the same as before.

    Path, size, mtime; of a folder a hash over its files.
    """
    out = []
    for number, file in enumerate(source.files):
        entry = file.identity()
        if isinstance(source, Folder):
            digest = hashlib.sha256()
            listing = source.listing(number)
            for path, size, mtime_ns in listing:
                digest.update(f"{path}\0{size}\0{mtime_ns}\n".encode("utf-8", "surrogateescape"))
            entry |= {"size": sum(size for _, size, _ in listing), "mtime_ns": 0, "files": digest.hexdigest()}
        out.append(entry)
    return out


def total_bytes(source: Source) -> int | None:
    """Return the size of all inputs as they lie on disk, or None if it is not known (standard input)."""
    if any(file.is_stdin for file in source.files):
        return None
    return sum(int(entry["size"]) for entry in identity(source))
