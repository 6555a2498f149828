"""Twins of the kernels of row-indexed blocks. Tables of addresses are lists of blocks; None is address 0."""

from collections.abc import Sequence

import numpy as np

from simindex.types import I64, U8, U32, Packed

Blocks = Sequence[U8 | None]

LIVE_ROWS = 32_512
LIVE_HEADER = 16


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of `data`, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def live_bits(blocks: Blocks) -> U8:
    """Return one 0 or 1 per row of all blocks."""
    empty = np.zeros(LIVE_ROWS, np.uint8)
    lines = [empty if b is None else np.unpackbits(b[LIVE_HEADER:4080], bitorder="little") for b in blocks]
    return np.concatenate(lines)


def are_live(blocks: Blocks, rows: U32) -> U8:
    """Return which rows are live."""
    return live_bits(blocks)[rows.astype(np.int64)]


def count_live(blocks: Blocks, starts: I64, stops: I64) -> I64:
    """Return the live rows of each range."""
    bits = live_bits(blocks)
    return np.array([bits[a:b].sum(dtype=np.int64) for a, b in zip(starts, stops, strict=True)], np.int64)


def list_live(blocks: Blocks, start: int, stop: int) -> U32:
    """Return the live rows of one range."""
    return (np.flatnonzero(live_bits(blocks)[start:stop]) + start).astype(np.uint32)


def states(block: U8, rows_per_block: int) -> U8:
    """Return the state of every row of a signature block."""
    i = np.arange(rows_per_block)
    return (block[48 + i // 4] >> (2 * (i % 4)).astype(np.uint8)) & np.uint8(3)


def gather_signatures(
    blocks: Blocks, rows_per_block: int, header: int, width: int, rows: U32
) -> tuple[U8, U8]:
    """Return (signatures, states) of rows; zeros where there is no block."""
    signatures, found = np.zeros((len(rows), width), np.uint8), np.zeros(len(rows), np.uint8)
    for i, row in enumerate(rows.tolist()):
        block, at = divmod(row, rows_per_block)
        data = blocks[block] if block < len(blocks) else None
        if data is not None:
            signatures[i] = data[header + at * width : header + (at + 1) * width]
            found[i] = states(data, rows_per_block)[at]
    return signatures, found


def heap_values(first_rows: U32, blocks: Blocks, rows: U32) -> tuple[Packed, int]:
    """Return (values of rows, how many no block holds)."""
    values, missing = [], 0
    for row in rows.tolist():
        b = int(np.searchsorted(first_rows, row, side="right")) - 1
        block = blocks[b] if b >= 0 else None
        value = b""
        if block is None or row - first_rows[b] >= int(block[12:16].view("<u4")[0]):
            missing += 1
        else:
            at = 32 + 4 * (row - int(first_rows[b]))
            start, stop = block[at : at + 8].view("<u4").tolist()
            value = block[start:stop].tobytes()
        values.append(value)
    offsets = np.concatenate([[0], np.cumsum([len(v) for v in values])]).astype(np.int64)
    return Packed(np.frombuffer(b"".join(values), np.uint8), offsets), missing
