"""Where blocks lie in the map: address tables, filled as blocks are first needed.

LMDB keeps an untouched overflow value at its address from commit to commit, so a table made for one
transaction serves the next ones too, less what changed (the tail, and what the change log names). Values
small enough to lie in a leaf do move; they are copied and the copy's address is given. py-lmdb reads every
page of a value that it hands out, so nothing is fetched before it is needed.

A write transaction's own values lie in memory that its next write may free: a table made for one copies every
block from `volatile` on.

Tables are shared by all snapshots of one transaction id. Filling in an address is idempotent, so threads need
no lock.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from simindex.errors import CorruptStore
from simindex.kernels import address_of, heap_is_sound
from simindex.store.layout import BLOCK_SUFFIX, META, SIGNATURES
from simindex.types import U32, U64

NEVER = 2**33  # no block number is that high
_PADDING = bytes(64)  # kernels may load a whole vector at a row's end
_MANY = 256  # blocks to fetch at once, from where reading the whole file ahead pays


def leaf_limit(raw: Any) -> int:
    """Return a size in bytes from which every value lies on overflow pages of its own: half a page."""
    limit: int | None = raw.cache.get("leaf limit")
    if limit is None:
        limit = raw.cache["leaf limit"] = raw.txn.stat(raw.db(META))["psize"] // 2
    return limit


def private_copy(value: memoryview) -> tuple[bytes, int]:
    """Return a copy of a value and its address."""
    kept = b"".join((value, _PADDING))
    return kept, address_of(kept)


class BlockTable:
    """Addresses of blocks numbered from 0: live blocks of a collection, signature blocks of a field.

    addresses: uint64, shape (n,) for n blocks, at least 1; 0 = not fetched, or not there.
    """

    __slots__ = ("absent", "addresses", "complete", "db", "kept", "limit", "prefix", "volatile")

    def __init__(self, db: str, prefix: bytes, blocks: int, limit: int) -> None:
        self.db = db
        self.prefix = prefix
        self.addresses: U64 = np.zeros(max(blocks, 1), np.uint64)
        self.kept: dict[int, Any] = {}
        self.absent: set[int] = set()
        self.complete = False
        self.volatile = NEVER
        self.limit = limit

    def successor(self, blocks: int, tail: int, changed: Iterable[int]) -> "BlockTable":
        """Return a table of `blocks` blocks: what is known of those below `tail` stays, but for `changed`."""
        table = BlockTable(self.db, self.prefix, blocks, self.limit)
        tail = min(tail, len(self.addresses), len(table.addresses))
        table.addresses[:tail] = self.addresses[:tail]
        table.kept = {block: copy for block, copy in list(self.kept.items()) if block < tail}
        table.absent = {block for block in list(self.absent) if block < tail}
        for block in changed:
            if block < tail:
                table.forget(block)
        return table

    def forget(self, block: int) -> None:
        """Fetch this block anew when it is next needed."""
        self.addresses[block] = 0
        self.kept.pop(block, None)
        self.absent.discard(block)
        self.complete = False

    def drop(self, block: int) -> None:
        """The block is there no longer."""
        self.addresses[block] = 0
        self.kept.pop(block, None)
        self.absent.add(block)

    def place(self, block: int, kept: Any, address: int) -> None:
        """The block is in private memory."""
        self.addresses[block] = address
        self.kept[block] = kept
        self.absent.discard(block)

    def resize(self, blocks: int) -> None:
        """Make room for blocks that are to come."""
        if blocks > len(self.addresses):
            grown = np.zeros(blocks + blocks // 8, np.uint64)
            grown[: len(self.addresses)] = self.addresses
            self.addresses = grown

    def fetch(self, raw: Any, blocks: Iterable[int]) -> None:
        """Fill in the addresses of `blocks`."""
        txn, db = raw.txn, raw.db(self.db)
        for block in blocks:
            if block not in self.absent:
                value = txn.get(self.prefix + BLOCK_SUFFIX.pack(block), db=db)
                if value is None:
                    self.absent.add(block)
                else:
                    self._take(block, value)

    def fetch_all(self, raw: Any) -> None:
        """Fill in every address."""
        if self.complete:
            return
        addresses, prefix, n = self.addresses, self.prefix, len(self.prefix)
        if self.db == SIGNATURES and np.count_nonzero(addresses == 0) > _MANY:
            raw.read_ahead()
        with raw.txn.cursor(db=raw.db(self.db)) as cursor:
            found = cursor.set_range(prefix)
            while found:
                key = cursor.key()
                if key[:n] != prefix:
                    break
                (block,) = BLOCK_SUFFIX.unpack(key[n:])
                if block < len(addresses) and not addresses[block]:
                    self._take(block, cursor.value())
                found = cursor.next()
        self.complete = True

    def _take(self, block: int, value: memoryview) -> None:
        if len(value) < self.limit or block >= self.volatile:
            kept, address = private_copy(value)
            self.kept[block] = kept
            self.addresses[block] = address
        else:
            self.addresses[block] = address_of(value)


class HeapBlocks:
    """Addresses of heap blocks, which are found by their first row.

    first_rows: uint32, ascending; addresses: uint64, same shape; 0 = not fetched.
    """

    __slots__ = ("addresses", "complete", "db", "first_rows", "kept", "limit", "prefix", "volatile")

    def __init__(self, db: str, prefix: bytes, limit: int) -> None:
        self.db = db
        self.prefix = prefix
        self.first_rows: U32 = np.empty(0, np.uint32)
        self.addresses: U64 = np.empty(0, np.uint64)
        self.kept: dict[int, Any] = {}  # first row -> copy
        self.complete = False
        self.volatile = NEVER
        self.limit = limit

    @classmethod
    def listed(cls, raw: Any, db: str, prefix: bytes, limit: int) -> "HeapBlocks":
        """Return the table of the blocks that are stored, none fetched. Cost: one key read per block."""
        table = cls(db, prefix, limit)
        table._list(raw, 0)
        return table

    def successor(self, raw: Any, gone: Iterable[int]) -> "HeapBlocks":
        """Return the table as of a later transaction: all but the last entry stays, less the rows `gone`."""
        table = HeapBlocks(self.db, self.prefix, self.limit)
        keep = max(len(self.first_rows) - 1, 0)
        table.first_rows, table.addresses = self.first_rows[:keep], self.addresses[:keep]
        table.kept = dict(self.kept)
        if keep < len(self.first_rows):
            table.kept.pop(int(self.first_rows[keep]), None)
        gone = list(gone)
        if gone:
            stays = ~np.isin(table.first_rows, np.array(gone, np.uint32))
            table.first_rows, table.addresses = table.first_rows[stays], table.addresses[stays]
            for first_row in gone:
                table.kept.pop(first_row, None)
        else:
            table.addresses = table.addresses.copy()
        table._list(raw, int(self.first_rows[keep]) if keep < len(self.first_rows) else 0)
        return table

    def _list(self, raw: Any, start: int) -> None:
        found, prefix, n = [], self.prefix, len(self.prefix)
        with raw.txn.cursor(db=raw.db(self.db)) as cursor:
            more = cursor.set_range(prefix + BLOCK_SUFFIX.pack(start))
            while more:
                key = cursor.key()
                if key[:n] != prefix:
                    break
                found.append(BLOCK_SUFFIX.unpack(key[n:])[0])
                more = cursor.next()
        self.extend(found)

    def extend(self, first_rows: list[int]) -> None:
        """Add blocks after the last, not fetched."""
        self.first_rows = np.concatenate([self.first_rows, np.array(first_rows, np.uint32)])
        self.addresses = np.concatenate([self.addresses, np.zeros(len(first_rows), np.uint64)])
        self.complete = False

    def fetch(self, raw: Any, indexes: Iterable[int]) -> None:
        """Fill in the addresses of the blocks at `indexes`."""
        txn, db = raw.txn, raw.db(self.db)
        for index in indexes:
            first_row = int(self.first_rows[index])
            value = txn.get(self.prefix + BLOCK_SUFFIX.pack(first_row), db=db)
            if value is None:
                continue
            if not heap_is_sound(value):  # kernels follow its offsets
                raise CorruptStore(
                    f"the {self.db} block of row {first_row} is not a block of values: run check"
                )
            if len(value) < self.limit or first_row >= self.volatile:
                kept, self.addresses[index] = private_copy(value)
                self.kept[first_row] = kept
            else:
                self.addresses[index] = address_of(value)

    def fetch_all(self, raw: Any) -> None:
        """Fill in every address."""
        if not self.complete:
            missing = np.flatnonzero(self.addresses == 0)
            if len(missing) > _MANY // 8:  # heap blocks are eight times as large
                raw.read_ahead()
            self.fetch(raw, missing.tolist())
            self.complete = True
