"""Readers and writers of corpora: JSON lines, CSV, Parquet, a folder of text files; plain, .gz or .zst."""

from simindex.workflows.io.batch import Batch, BadRecord, Block, Decoded, Place, Reject, TruncatedInput, UnknownColumn
from simindex.workflows.io.formats import FORMATS, Format, format_of
from simindex.workflows.io.sources import Source, open_source
from simindex.workflows.io.survivors import Survivors, open_survivors

__all__ = [
    "FORMATS",
    "BadRecord",
    "Batch",
    "Block",
    "Decoded",
    "Format",
    "Place",
    "Reject",
    "Source",
    "Survivors",
    "TruncatedInput",
    "UnknownColumn",
    "format_of",
    "open_source",
    "open_survivors",
]
