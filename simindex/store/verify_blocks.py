"""Checks of the row-indexed blocks: each value by itself, then against the collection's state."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from simindex.kernels import heap_is_sound, is_sealed
from simindex.store import layout
from simindex.store.collection import CollectionState
from simindex.store.finding import Finding
from simindex.store.view import CollectionView
from simindex.types import PRESENT, U8, Array


def _values(raw: Any, db: str, prefix: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Yield (rest of the key, value) of every entry below a prefix."""
    n = len(prefix)
    with raw.txn.cursor(db=raw.db(db)) as cursor:
        more = cursor.set_range(prefix)
        while more and cursor.key()[:n] == prefix:
            yield bytes(cursor.key()[n:]), cursor.value()
            more = cursor.next()


def _broken(value: memoryview, magic: bytes, least: int) -> tuple[str, str] | None:
    """Return (kind, detail) when a value is too short, of another kind, or fails its checksum."""
    if len(value) < least:
        return "shape", f"{len(value)} bytes of at least {least}"
    if bytes(value[:4]) != magic:
        return "shape", f"begins with {bytes(value[:4])!r}, not {magic!r}"
    if not is_sealed(value):
        return "checksum", f"CRC-32C is not the stored {int.from_bytes(value[4:8], 'little'):08x}"
    return None


def live_findings(raw: Any, number: int, state: CollectionState) -> tuple[Array, list[Finding]]:
    """Return (bool, one per row: the live rows; findings) of a collection's live bitmap."""
    bits = np.zeros(-(-state.next_row // layout.LIVE_ROWS) * layout.LIVE_ROWS, np.bool_)
    findings = []
    for key, value in _values(raw, layout.LIVE, layout.collection_prefix(number)):
        where = f"collection {number} live block {int.from_bytes(key, 'big')}"
        broken = _broken(value, layout.LIVE_MAGIC, layout.LIVE_BYTES)
        if broken:
            findings.append(Finding(broken[0], where, broken[1]))
            continue
        block = int.from_bytes(key, "big")
        fields = tuple(np.frombuffer(value, "<u4", 2, layout.LIVE_BLOCK_AT).tolist())
        if len(key) != 4 or len(value) != layout.LIVE_BYTES or fields != (block, number):
            findings.append(Finding("shape", where, f"{len(value)} bytes for block and collection {fields}"))
            continue
        first = block * layout.LIVE_ROWS
        mine = np.unpackbits(np.frombuffer(value, np.uint8, offset=layout.LIVE_HEADER), bitorder="little")
        if mine[max(state.next_row - first, 0) :].any():
            findings.append(Finding("extra", where, f"rows at or beyond {state.next_row} are live"))
        elif not mine.any() and first + layout.LIVE_ROWS <= state.next_row:
            findings.append(Finding("extra", where, "no row is live: the block should be gone"))
        else:
            bits[first : first + layout.LIVE_ROWS] = mine
    bits = bits[: state.next_row]
    live = int(np.count_nonzero(bits))
    if live != state.live:
        findings.append(
            Finding("count", f"collection {number}", f"{live} rows are live, the state says {state.live}")
        )
    return bits, findings


def signature_findings(
    raw: Any, view: CollectionView, number: int, where: str, bits: Array
) -> tuple[U8, list[Finding]]:
    """Return (uint8, one per row: states; findings) of a field's signature blocks."""
    field, rows, header = view.shapes[number]
    next_row = view.state.next_row
    states = np.zeros(next_row, np.uint8)
    findings: list[Finding] = []
    blocks = -(-next_row // rows)
    held = np.zeros(blocks, np.bool_)
    for key, value in _values(raw, layout.SIGNATURES, layout.field_prefix(view.number, number)):
        block = int.from_bytes(key, "big")
        at = f"{where} block {block}"
        broken = _broken(value, layout.SIGNATURES_MAGIC, header)
        if broken:
            findings.append(Finding(broken[0], at, broken[1]))
            held[block : block + 1] = True  # it is there: say only once that it is bad
            continue
        count = min(rows, next_row - block * rows)
        stored = layout.SIGNATURES_HEADER.unpack_from(value)[2:]
        expected = (block, count, field.width, rows, view.number, number)
        if len(key) != 4 or count <= 0 or stored != expected or len(value) != header + count * field.width:
            findings.append(Finding("shape", at, f"{len(value)} bytes, header {stored}, not {expected}"))
            continue
        held[block] = True
        packed = np.frombuffer(
            value, np.uint8, header - layout.SIGNATURES_STATES_AT, layout.SIGNATURES_STATES_AT
        )
        mine = (packed[:, None] >> np.array([0, 2, 4, 6], np.uint8) & 3).ravel()
        if mine[count:].any():
            findings.append(Finding("extra", at, f"states beyond its {count} rows"))
        states[block * rows : block * rows + count] = mine[:count]
        bytes_of = np.frombuffer(value, np.uint8, offset=header).reshape(count, field.width)
        if bytes_of[mine[:count] < PRESENT].any():
            findings.append(Finding("extra", at, "a row without features has a signature"))
    live = (
        np.add.reduceat(bits, np.arange(blocks) * rows, dtype=np.int64) if blocks else np.zeros(0, np.int64)
    )
    for block in np.flatnonzero((live > 0) & ~held).tolist():
        findings.append(Finding("missing", f"{where} block {block}", f"{live[block]} rows are live"))
    for block in np.flatnonzero((live == 0) & held).tolist():
        if (block + 1) * rows <= next_row:
            findings.append(
                Finding("extra", f"{where} block {block}", "no row is live: the block should be gone")
            )
    return states, findings


def heap_findings(
    raw: Any,
    db: str,
    prefix: bytes,
    where: str,
    collection: int,
    number: int,
    state: CollectionState,
    bits: Array,
) -> Iterator[Finding]:
    """Yield the findings of one keyspace of heap blocks. bits: bool, one per row: the live rows."""
    covered = np.zeros(state.next_row, np.bool_)
    end = 0
    for key, value in _values(raw, db, prefix):
        first = int.from_bytes(key, "big")
        at = f"{where} block of row {first}"
        broken = _broken(value, layout.HEAP_MAGIC, layout.HEAP_HEADER + 4)
        if broken:
            yield Finding(broken[0], at, broken[1])
            continue
        _, _, stored, count, *owner = layout.HEAP_FIELDS.unpack_from(value)
        if len(key) != 4 or stored != first or owner != [collection, number] or not heap_is_sound(value):
            yield Finding("shape", at, f"row {stored}, owner {owner}, or its offsets are wrong")
            continue
        if first < end or first + count > state.next_row:
            yield Finding("shape", at, f"rows {first} to {first + count} of {end} to {state.next_row}")
            continue
        end = first + count
        if end < state.next_row and not bits[first:end].any():
            yield Finding("extra", at, "no row is live: the block should be gone")
        covered[first:end] = True
    if end != state.next_row and (state.next_row or end):
        yield Finding("missing", where, f"the last block ends at row {end}, not {state.next_row}")
    missing = np.flatnonzero(bits & ~covered)
    if len(missing):
        yield Finding(
            "missing", where, f"{len(missing)} live rows have no value, for example row {missing[0]}"
        )
