"""simindex: SQLite for near-duplicates.

import simindex

db = simindex.open("news.simdb")
news = db.create_collection("news", {"body": simindex.text(threshold=0.8)})
news.put("a1", {"body": "...", "lang": "en"})
hits = news.search(body="...", threshold=0.8)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simindex import errors
    from simindex.api import Collection, Database, Snapshot, Transaction
    from simindex.api import open_database as open
    from simindex.errors import SimindexError
    from simindex.index.field import text, tokens
    from simindex.index.results import BatchHits, Duplicate, Hit, Hits, PutReport, Reject

    __version__: str

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

# Where each public name comes from. It is imported at its first use: `simindex --help` needs none of them.
_HOMES = {
    "BatchHits": ("simindex.index.results", "BatchHits"),
    "Collection": ("simindex.api", "Collection"),
    "Database": ("simindex.api", "Database"),
    "Duplicate": ("simindex.index.results", "Duplicate"),
    "Hit": ("simindex.index.results", "Hit"),
    "Hits": ("simindex.index.results", "Hits"),
    "PutReport": ("simindex.index.results", "PutReport"),
    "Reject": ("simindex.index.results", "Reject"),
    "SimindexError": ("simindex.errors", "SimindexError"),
    "Snapshot": ("simindex.api", "Snapshot"),
    "Transaction": ("simindex.api", "Transaction"),
    "open": ("simindex.api", "open_database"),
    "text": ("simindex.index.field", "text"),
    "tokens": ("simindex.index.field", "tokens"),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _HOMES:
        module, attribute = _HOMES[name]
        value = getattr(import_module(module), attribute)
    elif name == "errors":
        value = import_module("simindex.errors")
    elif name == "__version__":
        value = _version()
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("simindex")
    except PackageNotFoundError:  # a source tree on the path
        return "unknown"
