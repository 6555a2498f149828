"""Readers and writers of corpora: JSON lines, CSV, Parquet, a folder of text files; plain, .gz or .zst."""

from simindex.workflows.io.batch import (
    BadRecord,
    Batch,
    Block,
    Decoded,
    Labels,
    Place,
    Reject,
    TruncatedInput,
    UnknownColumn,
    line_mask,
)
from simindex.workflows.io.formats import FORMATS, Format, format_of
from simindex.workflows.io.jsondecode import label_list
from simindex.workflows.io.rows import BadRow, Rows, open_rows
from simindex.workflows.io.sources import Source, identity, open_source, total_bytes
from simindex.workflows.io.survivors import Survivors, open_survivors, output_format

__all__ = [
    "FORMATS",
    "BadRecord",
    "BadRow",
    "Batch",
    "Block",
    "Decoded",
    "Format",
    "Labels",
    "Place",
    "Reject",
    "Rows",
    "Source",
    "Survivors",
    "TruncatedInput",
    "UnknownColumn",
    "format_of",
    "identity",
    "label_list",
    "line_mask",
    "open_rows",
    "open_source",
    "open_survivors",
    "output_format",
    "total_bytes",
]
