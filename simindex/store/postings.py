"""Stand-in for the runs of postings, replaced by them when they land: one value per flush, searched by brute
force."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from simindex.kernels import are_live
from simindex.types import I64, U32, U64

_LOW = np.uint64(0xFFFFFFFF)


class PostingsReader:
    def __init__(self, chunks: list[U64]) -> None:
        self.chunks = chunks

    @classmethod
    def open(
        cls, txn: Any, db: Any, prefix: bytes, bands: int, previous: "PostingsReader | None" = None
    ) -> "PostingsReader":
        chunks = []
        with txn.cursor(db=db) as cursor:
            more = cursor.set_range(prefix)
            while more and cursor.key()[:6] == prefix:
                chunks.append(np.frombuffer(bytes(cursor.value()), np.uint64).reshape(bands, -1))
                more = cursor.next()
        return cls(chunks)

    def lookup(self, txn: Any, keys: U64, live: U64) -> tuple[I64, U32]:
        found: list[U32] = []
        ptr = np.zeros(len(keys) + 1, np.int64)
        for i, query in enumerate(keys):
            rows = [np.empty(0, np.uint32)]
            for chunk in self.chunks:
                for band, key in zip(chunk, query, strict=True):
                    low = np.searchsorted(band, key & ~_LOW)
                    high = np.searchsorted(band, key | _LOW, side="right")
                    rows.append((band[low:high] & _LOW).astype(np.uint32))
            unique = np.unique(np.concatenate(rows))
            unique = unique[are_live(live, unique)]
            found.append(unique)
            ptr[i + 1] = ptr[i] + len(unique)
        return ptr, np.concatenate(found) if found else np.empty(0, np.uint32)

    def band(self, txn: Any, band: int, live: U64) -> Iterator[U64]:
        if self.chunks:
            postings = np.sort(np.concatenate([chunk[band] for chunk in self.chunks]))
            yield postings[are_live(live, (postings & _LOW).astype(np.uint32))]

    def stats(self) -> dict[str, int]:
        return {"postings": sum(chunk.size for chunk in self.chunks)}

    def verify(self, txn: Any) -> Iterator[Any]:
        return iter(())


class PostingsWriter:
    def __init__(self, txn: Any, db: Any, prefix: bytes, bands: int) -> None:
        self._txn, self._db, self._prefix, self._bands = txn, db, prefix, bands
        self._chunks: list[U64] = []

    @property
    def pending(self) -> int:
        return sum(chunk.size for chunk in self._chunks)

    def append(self, postings: U64, first_row: int) -> None:
        if postings.size:
            self._chunks.append(postings + np.uint64(first_row))

    def flush(self) -> None:
        if self._chunks:
            joined = np.sort(np.concatenate(self._chunks, axis=1), axis=1)
            number = 0
            with self._txn.cursor(db=self._db) as cursor:
                more = cursor.set_range(self._prefix)
                while more and cursor.key()[:6] == self._prefix:
                    number += 1
                    more = cursor.next()
            self._txn.put(self._prefix + number.to_bytes(4, "big"), joined.tobytes(), db=self._db)
            self._chunks.clear()

    def merge(self, live: U64, budget: int | None = None) -> None: ...

    def save(self) -> None: ...
