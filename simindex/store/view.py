"""What is known of one collection as of one change: its state and the tables of where its blocks lie.

A view is shared by every snapshot that sees the same change of the collection, and made from the one before
it: tables are derived only when they are asked for, so that a refresh costs the reading of one state,
whatever the size.
"""

from typing import Any

from simindex.errors import CorruptStore, SchemaError
from simindex.store import layout
from simindex.store.addresses import BlockTable, HeapBlocks, leaf_limit
from simindex.store.changes import ChangeLog
from simindex.store.collection import CollectionLayout, CollectionState, FieldLayout
from simindex.store.postings import PostingsReader
from simindex.store.transactions import RawWrite

_Space = tuple[str, int]


class CollectionView:
    """State and tables of a collection; `id` is the newest transaction known to see it."""

    __slots__ = (
        "_change_log",
        "_stale",
        "_tables",
        "epoch",
        "id",
        "layout",
        "limit",
        "number",
        "shapes",
        "state",
    )

    def __init__(self, raw: Any, number: int, plan: CollectionLayout, state: CollectionState) -> None:
        self.number = number
        self.layout = plan
        self.state = state
        self.id = 0
        self.epoch: int = raw.epoch
        self.limit = leaf_limit(raw)
        self.shapes: dict[int, tuple[FieldLayout, int, int]] = {}
        for f in plan.fields:
            rows = layout.signature_rows(f.width, plan.geometry.signatures)
            self.shapes[f.number] = (f, rows, layout.signature_header(rows))
        self._tables: dict[_Space, Any] = {}
        self._stale: dict[_Space, tuple[CollectionState, Any]] = {}
        self._change_log: ChangeLog | None = None

    @classmethod
    def load(
        cls, raw: Any, number: int, plan: CollectionLayout, before: "CollectionView | None"
    ) -> "CollectionView":
        """Return the view that `raw` sees; `before` is an earlier one of the same map, if there is one."""
        state = read_state(raw, number, plan)
        if before is not None and (before.epoch != raw.epoch or before.state.change > state.change):
            before = None
        if before is not None and before.layout == plan:
            if before.state.change == state.change:
                return before
            view = cls(raw, number, plan, state)
            view._inherit(before)
            return view
        return cls(raw, number, plan, state)

    def fork(self, raw: Any) -> "CollectionView":
        """Return a view for a write transaction: the same state, tables of its own."""
        view = CollectionView(raw, self.number, self.layout, self.state.copy())
        view._inherit(self)
        return view

    def _inherit(self, before: "CollectionView") -> None:
        self._stale = dict(before._stale)
        for space, table in list(before._tables.items()):
            self._stale[space] = (before.state, table)

    # Tables, made when first asked for
    # -------------------------------------------------------------------------

    def live(self, raw: Any) -> BlockTable:
        """Return the table of live blocks, complete."""
        table: BlockTable | None = self._tables.get((layout.LIVE, 0))
        if table is None:
            blocks = -(-self.state.next_row // layout.LIVE_ROWS)
            table = self._blocks(raw, layout.LIVE, 0, blocks, layout.LIVE_ROWS, layout.SPACE_LIVE)
            if (layout.LIVE, 0) in self._stale:
                table.fetch(raw, [b for b in range(blocks) if not table.addresses[b]])
                table.complete = True
            else:
                table.fetch_all(raw)
            self._publish((layout.LIVE, 0), table)
        return table

    def signatures(self, raw: Any, number: int) -> BlockTable:
        """Return the table of a field's signature blocks, filled as needed."""
        table: BlockTable | None = self._tables.get((layout.SIGNATURES, number))
        if table is None:
            rows = self.shapes[number][1]
            blocks = -(-self.state.next_row // rows)
            space = layout.SPACE_SIGNATURES + number
            table = self._blocks(raw, layout.SIGNATURES, number, blocks, rows, space)
            self._publish((layout.SIGNATURES, number), table)
        return table

    def records(self, raw: Any) -> HeapBlocks:
        """Return the table of record blocks, filled as needed."""
        table: HeapBlocks | None = self._tables.get((layout.RECORDS, 0))
        if table is None:
            prefix = layout.collection_prefix(self.number)
            table = self._heap(raw, layout.RECORDS, 0, prefix, layout.SPACE_RECORDS)
        return table

    def originals(self, raw: Any, number: int) -> HeapBlocks:
        """Return the table of a field's blocks of originals, filled as needed."""
        table: HeapBlocks | None = self._tables.get((layout.ORIGINALS, number))
        if table is None:
            prefix = layout.field_prefix(self.number, number)
            table = self._heap(raw, layout.ORIGINALS, number, prefix, layout.SPACE_ORIGINALS + number)
        return table

    def postings(self, raw: Any, number: int) -> PostingsReader:
        """Return the reader of a field's postings (KEY_MAP: of the key map)."""
        reader: PostingsReader | None = self._tables.get((layout.POSTINGS, number))
        if reader is None:
            _, previous = self._before(layout.POSTINGS, number)
            reader = open_postings(raw, self.number, number, self.bands(number), previous)
            self._publish((layout.POSTINGS, number), reader)
        return reader

    def bands(self, number: int) -> int:
        """Return how many bucket keys a row has in a field; the key map has 1."""
        return 1 if number == layout.KEY_MAP else self.shapes[number][0].bands

    def replace_postings(self, number: int, reader: PostingsReader | None) -> None:
        """In a write transaction, after its postings changed: the reader is now only the one before."""
        old = self._tables.pop((layout.POSTINGS, number), None)
        if old is not None:
            self._stale[layout.POSTINGS, number] = (self.state, old)
        if reader is not None:
            self._tables[layout.POSTINGS, number] = reader

    def _publish(self, space: _Space, table: Any) -> None:
        self._tables[space] = table
        self._stale.pop(space, None)

    def _blocks(self, raw: Any, db: str, number: int, blocks: int, rows: int, space: int) -> BlockTable:
        state, before = self._before(db, number)
        if state is not None:
            gone = self._gone(raw, state, space)
            if gone is not None:
                return before.successor(blocks, state.next_row // rows, gone)  # type: ignore[no-any-return]
        if db == layout.LIVE:
            prefix = layout.collection_prefix(self.number)
        else:
            prefix = layout.field_prefix(self.number, number)
        return BlockTable(db, prefix, blocks, self.limit)

    def _heap(self, raw: Any, db: str, number: int, prefix: bytes, space: int) -> HeapBlocks:
        state, before = self._before(db, number)
        gone = self._gone(raw, state, space) if state is not None else None
        if gone is None:
            table = HeapBlocks.listed(raw, db, prefix, self.limit)
        else:
            table = before.successor(raw, gone)
        self._publish((db, number), table)
        return table

    def _before(self, db: str, number: int) -> tuple[CollectionState | None, Any]:
        return self._stale.get((db, number)) or (None, None)

    def _gone(self, raw: Any, since: CollectionState, space: int) -> list[int] | None:
        """Return the blocks of `space` that changed or went since that state; None when that is not known."""
        if self.state.logged <= since.change:
            return []
        if self._change_log is None:
            key = layout.CHANGES + layout.collection_prefix(self.number)
            self._change_log = ChangeLog.decode(raw.txn.get(key, db=raw.db(layout.META)))
        blocks = self._change_log.since(since.change, space)
        return None if blocks is None else [int(block) for block in blocks]


def read_state(raw: Any, number: int, plan: CollectionLayout) -> CollectionState:
    """Return the stored state of a collection; SchemaError when it was written with another layout."""
    value = raw.txn.get(layout.STATE + layout.collection_prefix(number), db=raw.db(layout.META))
    if value is None:
        raise SchemaError(f"no collection has number {number}")
    state = CollectionState.decode(value, plan)
    if state.layout is None:
        state.layout = plan
    elif state.layout is not plan:
        raise SchemaError(f"collection {number} was written with {state.layout}, not {plan}")
    return state


def stored_layout(raw: Any, number: int) -> CollectionLayout | None:
    """Return the layout that a collection was written with; None if nothing was written yet."""
    value = raw.txn.get(layout.STATE + layout.collection_prefix(number), db=raw.db(layout.META))
    return None if value is None else CollectionState.decode(value).layout


def open_postings(
    raw: Any, number: int, field: int, bands: int, previous: PostingsReader | None = None
) -> PostingsReader:
    """Return the reader of one postings keyspace."""
    prefix = layout.field_prefix(number, field)
    writable = isinstance(raw, RawWrite)
    return PostingsReader.open(raw.txn, raw.db(layout.POSTINGS), prefix, bands, previous, writable)


def missing_rows(what: str, rows: int) -> CorruptStore:
    """Return the error for rows that should be there."""
    return CorruptStore(f"{rows} rows have no {what}: run check")
