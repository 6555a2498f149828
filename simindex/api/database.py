"""A database: one file of collections."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, Self

from simindex import admin
from simindex.api.collection import Collection
from simindex.api.transaction import Snapshot, Transaction
from simindex.errors import NoSuchCollection, ReadOnly, SchemaError, WriteError, shown
from simindex.index.field import Field
from simindex.index.layouts import layout_of
from simindex.index.schema import Schema
from simindex.index.spelling import unknown
from simindex.store import Store


class Database:
    """One simindex file. From simindex.open; usable from several threads. A context manager that closes it.

    Readers see committed states only and never wait; writers wait for each other.
    """

    def __init__(self, store: Store, path: str, mode: str = "w") -> None:
        self._store = store
        self.path = path
        self.mode = mode
        self._known: dict[bytes, Schema] = {}
        self._writing_thread: int | None = None

    # Collections --------------------------------------------------------------------------------------------

    def create_collection(
        self,
        name: str,
        fields: Mapping[str, Field],
        key: Literal["str", "bytes", "int"] = "str",
        exist_ok: bool = False,
    ) -> Collection:
        """Make a collection and return it.

        fields: name to simindex.text(...), simindex.tokens(...). key: the type of all its keys (int: 0 to
        2^64 - 1). exist_ok: an existing collection is returned if it has the same settings. describe() of the
        result says what recall to expect. Raises SchemaError if it exists (naming the first
        different setting with exist_ok), or if a setting is wrong; nothing is written then.
        """
        schema = Schema.build(name, fields, key)
        if not isinstance(exist_ok, bool):
            raise SchemaError(f"exist_ok is {shown(exist_ok)}: give True or False")
        with self._begin() as transaction:
            for number, stored in self._schemas(transaction):
                if stored.name == schema.name:
                    if not exist_ok:
                        raise SchemaError(
                            f"collection {name!r} exists already: use db[{name!r}], or exist_ok=True "
                            "(create: --exist-ok)"
                        )
                    stored.check_same(schema)
                    return Collection(self, number, stored)
            number = transaction.create_collection(schema.to_bytes())
            transaction.collection(number, layout_of(schema))
        return Collection(self, number, schema)

    def __getitem__(self, name: str) -> Collection:
        """Return a collection. Raises NoSuchCollection (a KeyError) with the nearest name."""
        with self._store.read() as snapshot:
            number, schema = self._find(snapshot, name)
        return Collection(self, number, schema)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.collections()

    def collections(self) -> list[str]:
        """Return the names of all collections, sorted."""
        with self._store.read() as snapshot:
            return sorted(schema.name for _, schema in self._schemas(snapshot))

    def drop_collection(self, name: str) -> None:
        """Delete a collection with all its items. Raises NoSuchCollection."""
        with self._begin() as transaction:
            number, _ = self._find(transaction, name)
            transaction.drop_collection(number)

    # Transactions -------------------------------------------------------------------------------------------

    def write(self, timeout: float | None = None) -> Transaction:
        """Return a transaction for `with`: several writes, all or nothing, that see each other.

        timeout: seconds to wait for another writer (default: the one given to open); then Locked.
        Transactions do not nest.
        """
        return Transaction(self, timeout)

    def snapshot(self) -> Snapshot:
        """Return the database as of now, frozen, for this thread."""
        return Snapshot(self)

    # Admin --------------------------------------------------------------------------------------------------

    def stats(self) -> admin.Overview:
        """Return what is in the file: .items, .collections, .by_kind (bytes), .usage (file, used and free
        bytes, open readers); str() of it is for people. See simindex.admin.Overview. Cost: microseconds.
        """
        return admin.overview(self._store)

    def check(self) -> list[admin.Finding]:
        """Return everything that is wrong with the file, [] when all is well. Reads and recomputes
        everything, some microseconds an item. A finding has .kind, .where and .detail.
        """
        return list(admin.check(self._store))

    def compact(self) -> admin.Compaction:
        """Write a checked copy without dead rows and free pages and put it in the file's place, atomically.

        Returns its .items, and the file's size in bytes .before and .after. Readers go on; writers wait.
        Needs room for the old file and two new ones. Raises Locked if another process has the file open or a
        snapshot of this one is; CorruptStore if the copy is not sound. The old file stays then.
        """
        if self._writing_thread == threading.get_ident():
            raise WriteError("a transaction is open in this thread: compact after it")
        return admin.compact(self._store)

    def close(self) -> None:
        """Close; waits for calls in flight in other threads. Closing twice is fine."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Database {self.path}>"

    # For the classes of this floor --------------------------------------------------------------------------

    @contextmanager
    def _begin(self, timeout: float | None = None) -> Iterator[Any]:
        me = threading.get_ident()
        if self.mode == "r":
            raise ReadOnly(f'{self.path} was opened with mode="r"')
        if self._writing_thread == me:
            raise WriteError(
                "a transaction is open in this thread, and transactions do not nest: "
                "write through it, tx[name].put(...)"
            )
        with self._store.write(timeout) as transaction:
            self._writing_thread = me
            try:
                yield transaction
            finally:
                self._writing_thread = None

    def _schemas(self, scope: Any) -> Iterator[tuple[int, Schema]]:
        for number, stored in scope.catalog().items():
            raw = bytes(stored)
            schema = self._known.get(raw)
            if schema is None:
                schema = self._known[raw] = Schema.from_bytes(raw)
            yield number, schema

    def _find(self, scope: Any, name: object) -> tuple[int, Schema]:
        names = []
        for number, schema in self._schemas(scope):
            if isinstance(name, str) and schema.name == name:
                return number, schema
            names.append(schema.name)
        raise NoSuchCollection(unknown("collection", name, names))

    def _table(self, scope: Any, number: int, schema: Schema) -> Any:
        try:
            return scope.collection(number, layout_of(schema))
        except SchemaError as error:
            if number not in scope.catalog():
                raise NoSuchCollection(f"collection {schema.name!r} is gone: it was dropped") from error
            raise


def open_database(
    path: str | os.PathLike[str],
    mode: Literal["w", "r", "x"] = "w",
    *,
    durability: Literal["full", "relaxed"] = "full",
    max_bytes: int | None = None,
    timeout: float = 5.0,
    force: bool = False,
) -> Database:
    """Open a database file, making it if it is not there, and return it; ":memory:" gives one that ends with
    its close.

    A file PATH-lock appears beside it; it holds only locks and may be deleted while nobody has the file open.
    mode: "w" to read and write, "x" the same but the file must not exist, "r" to read. durability: "full" (on
    disk when a write returns; that costs milliseconds a transaction, so put_many or db.write() where
    there is much to write) or "relaxed" (consistent after a crash, but the last commits may be gone).
    max_bytes: the file's largest size in bytes; a write beyond it raises QuotaReached. timeout: seconds that
    a write waits for another process's write lock; then Locked. force: open on a network file system too.

    Raises OpenError (NotAStore, FormatTooNew, EngineMismatch, UnsafeFileSystem); nothing is written then.
    """
    return Database(Store.open(path, mode, durability, max_bytes, timeout, force), os.fsdecode(path), mode)
