"""Which format a path has: its suffix says, or the user does."""

import os
from dataclasses import dataclass

from simindex.errors import FeatureError

# The user's word for a format -> the suffixes that mean it. A directory is a folder of text files.
FORMATS: dict[str, tuple[str, ...]] = {
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "csv": (".csv",),
    "tsv": (".tsv",),
    "parquet": (".parquet", ".pq"),
    "folder": (),
}
COMPRESSIONS = {".gz": "gz", ".zst": "zst"}


@dataclass(frozen=True, slots=True)
class Format:
    """A format's name (a key of FORMATS) and its compression: "" (none), "gz" or "zst"."""

    name: str
    compression: str = ""

    def __str__(self) -> str:
        return f"{self.name}.{self.compression}" if self.compression else self.name


def split_suffix(path: str) -> tuple[str, str]:
    """Return (the suffix below any compression suffix, the compression), both lower case."""
    stem, suffix = os.path.splitext(os.path.basename(path).lower())
    if suffix in COMPRESSIONS:
        return os.path.splitext(stem)[1], COMPRESSIONS[suffix]
    return suffix, ""


def format_of(path: str, asked: str | None = None) -> Format | None:
    """Return the format of a path, or None if neither its suffix nor `asked` (a key of FORMATS) tells.

    Raises FeatureError for an unknown `asked`, and for Parquet inside .gz or .zst (Parquet compresses by
    itself).
    """
    suffix, compression = split_suffix(path)
    name = asked
    if asked is not None and asked not in FORMATS:
        raise FeatureError(f"unknown format {asked!r}: one of {', '.join(FORMATS)}")
    if name is None and os.path.isdir(path):
        name = "folder"
    if name is None:
        name = next((key for key, endings in FORMATS.items() if suffix in endings), None)
    if name is None:
        return None
    if name == "parquet" and compression:
        raise FeatureError(
            f"{path}: a Parquet file cannot be read from .{compression}; it compresses by itself"
        )
    return Format(name, "" if name == "folder" else compression)
