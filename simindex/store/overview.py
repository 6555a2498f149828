"""The state of an open store file in numbers."""

import os
from dataclasses import dataclass

from simindex.store.openfile import OpenFile


@dataclass(frozen=True)
class Reader:
    """A snapshot held by some process: its pid, the transaction it sees, and how many commits have happened
    since.
    """

    pid: int
    txn: int
    lag: int


@dataclass(frozen=True)
class Info:
    """Sizes in bytes. used_bytes: pages in use; free_bytes: pages of the file that later writes may take.

    last_txn: the number of the newest transaction; readers: the open snapshots of all processes, oldest
    first (one that lags keeps the pages of every later commit from being used again, so the file grows).
    """

    file_bytes: int
    used_bytes: int
    free_bytes: int
    page_bytes: int
    map_bytes: int
    max_bytes: int | None
    last_txn: int
    readers: tuple[Reader, ...]

    @property
    def oldest(self) -> Reader | None:
        """The snapshot that lags most, or None."""
        return self.readers[0] if self.readers else None


def look(file: OpenFile) -> Info:
    """Return the state of an open file. Cost: some 20 microseconds and 1 per open snapshot."""
    with file.begin_read() as raw:
        env = file.env
        used = file.used_bytes(raw)
        seen = env.info()
        lines = env.readers().splitlines()[1:]
    last = int(seen["last_txnid"])
    readers = []
    for line in lines:
        words = line.split()
        if len(words) == 3 and words[2] != "-":
            readers.append(Reader(int(words[0]), int(words[2]), max(last - int(words[2]), 0)))
    own = Reader(os.getpid(), raw.id, last - raw.id)
    if own in readers:
        readers.remove(own)  # the one that this function took
    end = (int(seen["last_pgno"]) + 1) * file.page_bytes
    return Info(
        file_bytes=file.path.stat().st_size,
        used_bytes=used,
        free_bytes=max(end - used, 0),
        page_bytes=file.page_bytes,
        map_bytes=int(seen["map_size"]),
        max_bytes=file.max_bytes,
        last_txn=last,
        readers=tuple(sorted(readers, key=lambda reader: reader.txn)),
    )
