"""Databases and collections: thin public classes that hand each verb to the floor that does it."""

from simindex.api.collection import Collection
from simindex.api.database import Database, open_database
from simindex.api.transaction import Snapshot, SnapshotCollection, Transaction, TransactionCollection

__all__ = [
    "Collection",
    "Database",
    "Snapshot",
    "SnapshotCollection",
    "Transaction",
    "TransactionCollection",
    "open_database",
]
