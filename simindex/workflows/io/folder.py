"""A folder of text files.

One item a file, in the order of their relative paths; hidden files and folders are left out.
"""

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from simindex.workflows.io.batch import Batch, Block, Bools, Decoded, Place, Reject, UnknownColumn, pack_texts
from simindex.workflows.io.formats import Format
from simindex.workflows.io.inputs import InputFile

BATCH_BYTES = 4 << 20
BATCH_FILES = 4096
COLUMNS = ("path", "text")


class Folder:
    """One or more folders.

    The columns are `path` (relative, "/" between names) and `text` (the bytes, any encoding).
    """

    def __init__(self, files: list[InputFile], field: str, key: str | None) -> None:
        self.format = Format("folder")
        self.files = files
        self.key = key
        if field != "text":
            raise UnknownColumn(
                f"a folder has the columns path and text; --field {field} names neither: leave it out"
            )
        if key not in (None, "path"):
            raise UnknownColumn(
                f"a folder has the columns path and text; --key {key} names neither: use path"
            )
        self._listed: dict[int, list[tuple[str, int, int]]] = {}

    def listing(self, number: int) -> list[tuple[str, int, int]]:
        """Return (relative path, size, mtime_ns) of every file, sorted by path; taken once."""
        if number not in self._listed:
            self._listed[number] = sorted(_walk(self.files[number].path))
        return self._listed[number]

    def batches(self, place: Place) -> Iterator[Batch]:
        for number in range(place.file, len(self.files)):
            listing = self.listing(number)
            start = place.offset if number == place.file else 0
            size = 0
            for i in range(start, len(listing)):
                size += listing[i][1]
                if size >= BATCH_BYTES or i + 1 - start >= BATCH_FILES or i + 1 == len(listing):
                    yield Batch(
                        number, start, i + 1, start, [path for path, _, _ in listing[start : i + 1]], size
                    )
                    start, size = i + 1, 0

    def decode(self, batch: Batch) -> Decoded:
        root = self.files[batch.file].path
        texts: list[str | bytes | None] = []
        labels: list[Any] = []
        accepted = np.ones(len(batch.payload), np.bool_)
        rejects: list[Reject] = []
        for i, path in enumerate(batch.payload):
            try:
                with open(os.path.join(root, path), "rb") as file:
                    texts.append(file.read())
            except OSError as error:
                accepted[i] = False
                rejects.append(Reject(i, f"{path}: {error.strerror}", os.fsencode(path)))
                continue
            labels.append(_shown(path))
        packed, present = pack_texts(texts)
        everything = None if accepted.all() else accepted
        found = labels if self.key is not None else None
        return Decoded(packed, present, found, len(batch.payload), everything, rejects, COLUMNS)

    def again(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, list[tuple[str, str]]]]:
        """Yield each block with the (root, relative path) of its files."""
        for block in blocks:
            root = self.files[block.file].path
            yield block, [(root, path) for path, _, _ in self.listing(block.file)[block.offset : block.stop]]

    def rows(self, payload: list[tuple[str, str]], mask: Bools) -> Iterator[dict[str, Any]]:
        for (root, path), kept in zip(payload, mask.tolist(), strict=True):
            if kept:
                with open(os.path.join(root, path), "rb") as file:
                    yield {"path": _shown(path), "text": file.read().decode("utf-8", "replace")}


def _walk(root: str) -> Iterator[tuple[str, int, int]]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = os.path.join(folder, name)
            if name.startswith(".") or not os.path.isfile(path):
                continue
            status = os.stat(path)
            relative = os.path.relpath(path, root).replace(os.sep, "/")
            yield relative, status.st_size, status.st_mtime_ns


def _shown(path: str) -> str:
    """A path as text: bytes that are no UTF-8 appear as U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")
