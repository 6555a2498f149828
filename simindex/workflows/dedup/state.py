"""The state of a run on disk: a store with one collection of all items, and how far the input was read.

Everything that one commit adds (rows, blocks, place, counters) is one transaction, so a kill at any moment
leaves a
state from which the run goes on. The store is that of --index, or the scratch file OUT.partial.
"""

import contextlib
import glob
import mmap
import os
import shutil
import sys
from typing import Any, Literal

import msgpack
import numpy as np

from simindex import kernels
from simindex.errors import CorruptStore, Locked, NotAStore
from simindex.index.keys import int_keys
from simindex.index.layouts import layout_of
from simindex.index.prepare import Prepared, PreparedField
from simindex.index.schema import Schema
from simindex.index.writer import Writer
from simindex.store import Store
from simindex.types import Packed
from simindex.workflows.dedup.options import FIELD, UsageError, difference
from simindex.workflows.io import Block, Place

VERSION = 1
META = "dedup"
_LMDB_MAGIC = (0xBEEFC0DE).to_bytes(4, sys.byteorder)
Phase = Literal["reading", "read", "done"]
COUNTS = ("absent", "empty", "shortened", "rejected", "lines", "bytes")


class State:
    """An open state. Not for two threads; two processes that use one state are noticed at the next commit."""

    def __init__(self, path: str, store: Store, schema: Schema, head: dict[str, Any], is_new: bool) -> None:
        self.path = path
        self.store = store
        self.schema = schema
        self.is_new = is_new
        self.head = head
        self.blocks: list[Block] = []
        self.rows = 0
        self.counts: dict[str, int] = dict.fromkeys(COUNTS, 0) | head.get("counts", {})
        self.place = Place(*head.get("place", (0, 0, 0)))
        self.commits = int(head.get("commits", 0))
        self.rejects_bytes = int(head.get("rejects_bytes", 0))
        self.number = int(head.get("collection", -1))
        self._fresh: list[Block] = []
        self._transaction: Any = None
        self._writer: Writer | None = None

    # Opening
    # --------------------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        path: str,
        schema: Schema,
        settings: dict[str, Any],
        inputs: list[dict[str, Any]],
        durability: str | None,
    ) -> "State":
        """Return the state at `path`: a new one, or the one that an earlier run of the same command left.

        durability: "full" or "relaxed"; None is for a scratch file, which is written without syncs: a kill
        does not hurt it, a power failure may, so it is not trusted after a restart of the machine but made
        anew. Raises UsageError if the file belongs to another command (the message names the difference) or
        was not made by dedup.
        """
        asked = {"settings": settings, "inputs": inputs}
        boot = boot_id()
        if durability is None and is_foreign(path):
            raise UsageError(
                f"{path} is in the way, and dedup did not make it: move it, or name another output"
            )
        if durability is None and os.path.exists(path) and scratch_boot(path) not in (None, boot):
            remove_store(path)
        is_new = not os.path.exists(path)
        unsynced = durability is None and is_new and boot is not None
        chosen: Any = durability or "relaxed"
        store = Store.open(path, durability=chosen, bulk_new=unsynced)
        try:
            with store.read() as snapshot:
                raw = snapshot.get_meta(META)
                stray = raw is None and bool(snapshot.catalog())
            if stray:
                raise UsageError(
                    f"{path} is a simindex file, but not one that dedup made: name another --index"
                )
            if raw is not None:
                head = msgpack.unpackb(raw)
                _check_same(path, head, asked)
                state = cls(path, store, schema, head, False)
                state._load()
                return state
            state = cls(
                path,
                store,
                schema,
                {"version": VERSION, **asked, "phase": "reading", "boot": boot if unsynced else None},
                is_new,
            )
            state._create()
            return state
        except BaseException:
            store.close()
            raise

    def _create(self) -> None:
        with self.store.write() as transaction:
            self.number = transaction.create_collection(self.schema.to_bytes())
            transaction.collection(self.number, layout_of(self.schema))
            transaction.put_meta(META, self._packed_head())

    def _load(self) -> None:
        with self.store.read() as snapshot:
            stored = Schema.from_bytes(snapshot.catalog()[self.number])
            stored.check_same(self.schema)
            for commit in range(self.commits):
                raw = snapshot.get_meta(f"{META}/blocks/{commit:08d}")
                if raw is None:
                    raise CorruptStore(f"{self.path}: commit {commit} of {self.commits} has no blocks")
                self.blocks += map(_unpack_block, msgpack.unpackb(raw))
            self.rows = sum(block.records for block in self.blocks)
            table = snapshot.collection(self.number, layout_of(self.schema))
            if self.phase != "done" and table.state.next_row != self.rows:
                raise CorruptStore(
                    f"{self.path}: {table.state.next_row} rows, but blocks of {self.rows} records"
                )

    @property
    def phase(self) -> Phase:
        return self.head["phase"]  # type: ignore[no-any-return]

    def _packed_head(self) -> bytes:
        self.head |= {
            "collection": self.number,
            "place": [self.place.file, self.place.offset, self.place.line],
            "counts": self.counts,
            "commits": self.commits,
            "rejects_bytes": self.rejects_bytes,
        }
        return msgpack.packb(self.head)  # type: ignore[no-any-return]

    # Writing
    # --------------------------------------------------------------------------------------------------

    def append(self, block: Block, field: PreparedField, attributes: Packed | None, place: Place) -> None:
        """Add the records of one block; they are stored at the next commit."""
        if self._transaction is None:
            self._begin()
        n = block.records
        values = np.arange(self.rows + 1, self.rows + n + 1, dtype=np.uint64)
        keys = int_keys(values)
        extra = (None, None) if attributes is None else (attributes.data, attributes.offsets)
        records = Packed(*kernels.pack_records(values, None, False, *extra))
        assert self._writer is not None
        if n:
            self._writer.put(Prepared(keys, records, {FIELD: field}), "new")
        self.rows += n
        self.place = place
        self._fresh.append(block)

    def _begin(self) -> None:
        transaction = self.store.write(bulk=True)
        try:
            table = transaction.collection(self.number, layout_of(self.schema))
            if table.state.next_row != self.rows:
                raise Locked(f"{self.path}: another process is writing the same output: let it finish")
        except BaseException:
            transaction.abort()
            raise
        self._transaction = transaction
        self._writer = Writer(table, self.schema)

    def commit(self, phase: Phase | None = None) -> None:
        """Store what was appended, and the phase that the run is in now."""
        if phase is not None:
            self.head["phase"] = phase
        if self._transaction is None:
            self._begin()
        transaction, self._transaction = self._transaction, None
        try:
            if self._fresh:
                packed = msgpack.packb([_pack_block(block) for block in self._fresh])
                transaction.put_meta(f"{META}/blocks/{self.commits:08d}", packed)
                self.commits += 1
            transaction.put_meta(META, self._packed_head())
        except BaseException:
            transaction.abort()
            raise
        transaction.commit()
        self.blocks += self._fresh
        self._fresh = []
        self._refresh()

    def _refresh(self) -> None:
        """Look at the collection as committed: that lists its new blocks only, and the next transaction
        starts there."""
        number, field = self.schema.numbers[FIELD], self.schema.fields[FIELD]
        with self.store.read() as snapshot:
            table = snapshot.collection(self.number, layout_of(self.schema))
            _ = table.live, table.records, table.signatures(number)
            if field.is_exact:
                table.originals(number)

    def abort(self) -> None:
        """Forget what was appended since the last commit."""
        if self._transaction is not None:
            self._transaction.abort()
            self._transaction = None
        self._fresh = []

    def close(self) -> None:
        self.abort()
        self.store.close()

    def remove(self) -> None:
        """Close and delete the file."""
        self.close()
        remove_store(self.path)


def remove_store(path: str) -> None:
    """Delete a store file and its lock file."""
    for name in (path, path + "-lock"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    remove_unmade(path)


def remove_unmade(path: str) -> None:
    """Delete the folders in which a store is made before it gets its name, left by a kill in that moment."""
    folder, name = os.path.split(os.path.abspath(path))
    for left in glob.glob(os.path.join(glob.escape(folder), f".{glob.escape(name)}.????????")):
        shutil.rmtree(left, ignore_errors=True)


def boot_id() -> str | None:
    """Return what names the time since the machine was started; None where the system does not tell."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None


def scratch_boot(path: str) -> str | None:
    """Return the boot id that a scratch state was written under; None if it was written with syncs."""
    try:
        with Store.open(path, mode="r") as store, store.read() as snapshot:
            raw = snapshot.get_meta(META)
    except (NotAStore, CorruptStore):  # what a power failure left of it
        return ""
    return None if raw is None else msgpack.unpackb(raw).get("boot")


def is_ours(path: str) -> bool:
    """Return whether the file is the state of a dedup run (or an empty store)."""
    try:
        with Store.open(path, mode="r") as store, store.read() as snapshot:
            return snapshot.get_meta(META) is not None or not snapshot.catalog()
    except NotAStore:
        return False


def is_foreign(path: str) -> bool:
    """Return whether something is there that is no state of a dedup run, whole or torn by a power cut."""
    if not os.path.lexists(path):
        return False
    if not os.path.isfile(path):
        return True
    try:
        if is_ours(path):
            return False
    except CorruptStore:
        return False
    with open(path, "rb") as file:
        head = file.read(2 * mmap.PAGESIZE)
    if _LMDB_MAGIC in head:
        try:
            Store.open(path, mode="r").close()
        except NotAStore:
            return False
        return True  # a sound store, but of another kind
    return bool(head.strip(b"\0"))  # unsynced pages are zeros


def _check_same(path: str, head: dict[str, Any], asked: dict[str, Any]) -> None:
    if head.get("version") != VERSION:
        raise UsageError(
            f"{path} is of dedup state {head.get('version')}, this version goes on from {VERSION}"
        )
    what = difference(head["settings"], asked["settings"])
    if what is None and len(head["inputs"]) != len(asked["inputs"]):
        what = f"there were {len(head['inputs'])} inputs and are {len(asked['inputs'])} now"
    if what is None:
        for old, new in zip(head["inputs"], asked["inputs"], strict=True):
            found = difference(old, new)
            if found is not None:
                what = f"input {old['path']}: {found}"
                break
    if what is not None:
        raise UsageError(
            f"{path} is left from another command: {what}. Give the old command to go on, or delete the file"
        )


def _pack_block(block: Block) -> list[Any]:
    bits = None if block.accepted is None else np.packbits(block.accepted).tobytes()
    return [block.file, block.offset, block.stop, block.lines, block.records, bits]


def _unpack_block(data: list[Any]) -> Block:
    file, offset, stop, lines, records, bits = data
    accepted = None
    if bits is not None:
        accepted = np.unpackbits(np.frombuffer(bits, np.uint8), count=lines).astype(np.bool_)
    return Block(file, offset, stop, lines, records, accepted)
