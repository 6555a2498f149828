"""Blocks in memory for kernel tests: what the store would map, built from plain arrays."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Heap:
    first_rows: np.ndarray
    addresses: np.ndarray
    blocks: list[np.ndarray]  # keeps the memory alive


def heap_of(values: list[bytes], rows_per_block: int = 1000, first_row: int = 0) -> Heap:
    """Return heap blocks (csrc/heap.h) of consecutive rows that hold `values`."""
    first_rows, blocks = [], []
    for start in range(0, len(values), rows_per_block):
        part = values[start : start + rows_per_block]
        header = np.zeros(8, np.uint32)
        header[2], header[3] = first_row + start, len(part)
        offsets = 32 + 4 * (len(part) + 1) + np.concatenate([[0], np.cumsum([len(v) for v in part])])
        data = header.tobytes() + offsets.astype(np.uint32).tobytes() + b"".join(part)
        blocks.append(np.frombuffer(data, np.uint8).copy())
        first_rows.append(first_row + start)
    addresses = np.array([b.ctypes.data for b in blocks], np.uint64)
    return Heap(np.array(first_rows, np.uint32), addresses, blocks)


def signatures_of(rows: np.ndarray, rows_per_block: int = 7) -> tuple[np.ndarray, int, int, list[np.ndarray]]:
    """Return (addresses, rows_per_block, header, blocks): uint8 `rows` (n, width) in signature blocks."""
    header = (48 + (rows_per_block + 3) // 4 + 15) // 16 * 16
    blocks = []
    for start in range(0, len(rows), rows_per_block):
        block = np.zeros(header + rows_per_block * rows.shape[1], np.uint8)
        part = rows[start : start + rows_per_block]
        block[header : header + part.size] = part.ravel()
        blocks.append(block)
    return np.array([b.ctypes.data for b in blocks], np.uint64), rows_per_block, header, blocks
