"""A store: snapshots to read, one write transaction at a time, collections as tables."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from simindex.errors import SchemaError
from simindex.store import catalog, layout
from simindex.store.collection import CollectionLayout
from simindex.store.env import Environment
from simindex.store.finding import Finding
from simindex.store.overview import Info
from simindex.store.rewrite import replace, writers_waiting
from simindex.store.table import Table
from simindex.store.verify import verify
from simindex.store.view import CollectionView, stored_layout
from simindex.store.writing import WriteTable


class Snapshot:
    """What the store held at one moment; keeps its bytes in place until it ends. A context manager."""

    __slots__ = ("_raw", "_tables")

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._tables: dict[int, Table] = {}

    @property
    def id(self) -> int:
        """The number of the transaction that wrote what this snapshot sees."""
        return self._raw.id  # type: ignore[no-any-return]

    def catalog(self) -> dict[int, bytes]:
        """Return the schema of every collection by number."""
        return catalog.read(self._raw)

    def get_meta(self, name: str) -> bytes | None:
        """Return what put_meta stored under a name."""
        return catalog.get_meta(self._raw, name)

    def metas(self) -> Iterator[tuple[str, bytes]]:
        """Yield (name, value) of everything that put_meta stored."""
        return catalog.metas(self._raw)

    def collection(self, number: int, plan: CollectionLayout) -> Table:
        """Return a collection. SchemaError when there is none, or it was written with another layout."""
        table = self._tables.get(number)
        if table is None:
            table = self._tables[number] = Table(self._raw, current_view(self._raw, number, plan))
        elif table.layout is not plan and table.layout != plan:
            raise SchemaError(f"collection {number} is open with {table.layout}, not {plan}")
        return table

    def sizes(self) -> dict[str, int]:
        """Return the bytes of the pages that each database takes, by its name."""
        page, sizes = layout.PAGE, {}
        for kind in layout.DATABASES:
            stat = self._raw.txn.stat(self._raw.db(kind))
            sizes[kind] = page * int(stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"])
        return sizes

    def verify(self) -> Iterator[Finding]:
        """Yield everything in the store that contradicts itself; nothing when it is sound.

        Cost: reads the whole file; one to two bytes of memory per row. Whether postings are those of the
        signatures is not looked at: the store does not know how they are made.
        """
        return verify(self._raw)

    def close(self) -> None:
        """End the snapshot; its tables, views and addresses are void."""
        self._raw.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.end()


class WriteTransaction:
    """The one write transaction: commits on success, aborts on an exception. A context manager."""

    __slots__ = ("_bulk", "_raw", "_tables")

    def __init__(self, raw: Any, bulk: bool = False) -> None:
        self._raw = raw
        self._bulk = bulk
        self._tables: dict[int, WriteTable] = {}

    @property
    def id(self) -> int:
        """The number that this transaction will have."""
        return self._raw.id  # type: ignore[no-any-return]

    def catalog(self) -> dict[int, bytes]:
        """Return the schema of every collection by number."""
        return catalog.read(self._raw)

    def create_collection(self, schema: bytes) -> int:
        """Add a collection and return its number, which no collection had before."""
        return catalog.create(self._raw, schema)

    def drop_collection(self, number: int) -> None:
        """Delete a collection and all its data, in this transaction.

        Cost: one delete per stored block, about 2 microseconds each (some 0.1 s at 10 million items).
        """
        catalog.drop(self._raw, number)
        self._tables.pop(number, None)

    def put_meta(self, name: str, value: bytes) -> None:
        """Store a value under a name of the caller's."""
        catalog.put_meta(self._raw, name, value)

    def get_meta(self, name: str) -> bytes | None:
        """Return what put_meta stored under a name."""
        return catalog.get_meta(self._raw, name)

    def collection(self, number: int, plan: CollectionLayout) -> WriteTable:
        """Return a collection to read and change; SchemaError as for `Snapshot.collection`."""
        table = self._tables.get(number)
        if table is None:
            view = current_view(self._raw, number, plan, writing=True).fork(self._raw)
            table = self._tables[number] = WriteTable(self._raw, view, self._bulk)
        elif table.layout is not plan and table.layout != plan:
            raise SchemaError(f"collection {number} is open with {table.layout}, not {plan}")
        return table

    def merge(self, budget: int | None = None, single: bool = False) -> bool:
        """Finish the merges that commits left for later, in all collections; return whether all is done.

        budget: the most postings to read in each keyspace, about; None = no limit. single: merge each
        keyspace into one run, for the fastest lookups.
        """
        done = True
        for number in self.catalog():
            plan = stored_layout(self._raw, number)
            if plan is not None:
                done = self.collection(number, plan).finish_merges(budget, single) and done
        return done

    def commit(self) -> None:
        """Store everything, or raise and store nothing."""
        try:
            for table in self._tables.values():
                table.flush()
        except BaseException as error:
            self._raw.__exit__(type(error), error, error.__traceback__)
            raise
        self._raw.commit()

    def abort(self) -> None:
        """Forget everything."""
        self._raw.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if kind is not None or not self._raw.is_open:
            self._raw.__exit__(kind, error, _)
            return
        self.commit()


class Store:
    """An open store file. Openers of one file in one process share it."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        mode: Literal["w", "r", "x"] = "w",
        durability: Literal["full", "relaxed"] = "full",
        max_bytes: int | None = None,
        timeout: float = 5.0,
        force: bool = False,
        bulk_new: bool = False,
    ) -> "Store":
        """Return the open store; mode "w" makes the file if there is none, "x" insists on making it.

        timeout: seconds to wait for another process's write lock. bulk_new: a new file without any sync. For
        the errors see `Environment.open`.
        """
        return cls(Environment.open(path, mode, durability, max_bytes, timeout, force, bulk_new))

    def read(self) -> Snapshot:
        """Return a snapshot of this moment. Cost: about a microsecond."""
        return Snapshot(self.environment.begin_read())

    def write(self, timeout: float | None = None, bulk: bool = False) -> WriteTransaction:
        """Begin the write transaction; Locked after `timeout` seconds. bulk: leave merging for later."""
        return WriteTransaction(self.environment.begin_write(timeout), bulk)

    def idle_merge(self, budget: int | None = 4_000_000) -> bool:
        """Finish open merges, in one transaction, when nothing else is to do; return whether all is done.

        budget: the most postings to read in each keyspace, about: 4 million are some 50 milliseconds.
        """
        with self.write() as transaction:
            return transaction.merge(budget)

    def info(self) -> Info:
        """Return the file's sizes and its open readers, those of other processes too."""
        return self.environment.info()

    def rewrite(self, write_copy: Callable[[Snapshot, Path], None], timeout: float | None = None) -> None:
        """Put the file that write_copy(snapshot, path) makes in this one's place, atomically.

        write_copy sees the newest commit, writes a complete, synced store at `path` (in the same folder,
        removed on failure), and raises to leave everything as it is. Writers wait meanwhile, and handles of
        this process go on with the new file. Raises Locked if another process has the store open.
        """
        file = self.environment._open_file
        wait = file.timeout if timeout is None else timeout
        prefix = f".{file.path.name}.rewrite-"
        with writers_waiting(file, wait), self._fresh_folder(file.path.parent, prefix) as made:
            new = Path(made) / file.path.name
            with self.read() as snapshot:
                write_copy(snapshot, new)
                newest = snapshot.id
            replace(file, new, newest, wait)

    @staticmethod
    def _fresh_folder(parent: Path, prefix: str) -> "tempfile.TemporaryDirectory[str]":
        """Return a new folder to write in, those of killed rewrites removed. Under the write lock: none is
        in use.
        """
        for left in parent.iterdir():
            if left.name.startswith(prefix):
                shutil.rmtree(left, ignore_errors=True)
        return tempfile.TemporaryDirectory(prefix=prefix, dir=parent)

    def close(self) -> None:
        """Let go of the file."""
        self.environment.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def current_view(raw: Any, number: int, plan: CollectionLayout, writing: bool = False) -> CollectionView:
    """Return the view of a collection that a transaction sees, from the cache where possible.

    writing: the transaction is to change things, so what it sees goes by an id that others will see
    otherwise.
    """
    cache: dict[int, Any] = raw.cache
    view: CollectionView | None = cache.get(number)
    if view is not None and view.epoch != raw.epoch:
        view = None
    if (
        view is not None
        and view.id == raw.id
        and not writing
        and (view.layout is plan or view.layout == plan)
    ):
        return view
    found = CollectionView.load(raw, number, plan, view)
    seen = raw.id - 1 if writing else raw.id  # a write transaction begins with what the last one left
    if (view is None and not writing) or (view is not None and view.id <= seen):  # the cache keeps the newest
        found.id = max(found.id, seen)
        cache[number] = found
    return found
