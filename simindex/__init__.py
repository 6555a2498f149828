"""simindex: SQLite for near-duplicates.

import simindex

db = simindex.open("news.simdb")
news = db.create_collection("news", {"body": simindex.text(threshold=0.8)})
news.put("a1", {"body": "...", "lang": "en"})
hits = news.search(body="...", threshold=0.8)
"""

from importlib.metadata import PackageNotFoundError as _NotInstalled
from importlib.metadata import version as _version

from simindex import errors
from simindex.api import (
    Collection,
    Database,
    Snapshot,
    Transaction,
)
from simindex.api import open_database as open
from simindex.errors import SimindexError
from simindex.index.field import text, tokens
from simindex.index.results import BatchHits, Duplicate, Hit, Hits, PutReport, Reject

try:
    __version__ = _version("simindex")
except _NotInstalled:  # a source tree on the path
    __version__ = "unknown"

__all__ = [
    "BatchHits",
    "Collection",
    "Database",
    "Duplicate",
    "Hit",
    "Hits",
    "PutReport",
    "Reject",
    "SimindexError",
    "Snapshot",
    "Transaction",
    "__version__",
    "errors",
    "open",
    "text",
    "tokens",
]
