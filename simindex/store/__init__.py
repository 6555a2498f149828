"""Bytes on disk: one LMDB file, collections of rows in blocks and postings in runs. Knows no similarity."""

from simindex.store.collection import CollectionLayout, CollectionState, FieldLayout, Geometry
from simindex.store.finding import Finding
from simindex.store.overview import Info, Reader
from simindex.store.residency import trim
from simindex.store.store import Snapshot, Store, WriteTransaction
from simindex.store.table import HeapTable, SignatureTable, Table
from simindex.store.writing import FieldRows, WriteTable

__all__ = [
    "CollectionLayout",
    "CollectionState",
    "FieldLayout",
    "FieldRows",
    "Finding",
    "Geometry",
    "HeapTable",
    "Info",
    "Reader",
    "SignatureTable",
    "Snapshot",
    "Store",
    "Table",
    "WriteTable",
    "WriteTransaction",
    "trim",
]
