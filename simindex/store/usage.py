"""How much of a file is used, by what, and who reads it."""

from dataclasses import dataclass
from typing import Any

from simindex.store.layout import DATABASES


@dataclass(frozen=True, slots=True)
class Reader:
    """An open snapshot: of which process and thread, of which transaction, and how many commits are newer."""

    pid: int
    thread: str
    transaction: int
    lag: int


@dataclass(frozen=True, slots=True)
class Usage:
    """file_bytes: the file's size. live_bytes: pages in use. free_bytes: pages to be used again.

    by_kind: bytes of the pages of each database. readers: open snapshots, oldest first. transaction: the
    newest one.
    """

    file_bytes: int
    live_bytes: int
    free_bytes: int
    by_kind: dict[str, int]
    readers: tuple[Reader, ...]
    transaction: int
    map_bytes: int


def usage(raw: Any, environment: Any) -> Usage:
    """Return the usage of the file that transaction `raw` belongs to. Cost: microseconds."""
    file = environment._open_file()
    info, page = file._env.info(), int(file._env.stat()["psize"])
    by_kind = {}
    for kind in DATABASES:
        stat = raw.txn.stat(raw.db(kind))
        pages = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
        by_kind[kind] = int(pages) * page
    stat = file._env.stat()
    own = (2 + stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]) * page
    live = sum(by_kind.values()) + own
    newest = int(info["last_txnid"])
    size = (int(info["last_pgno"]) + 1) * page
    readers = _readers(str(file._env.readers()), newest)
    return Usage(size, live, size - live, by_kind, readers, newest, int(info["map_size"]))


def _readers(table: str, newest: int) -> tuple[Reader, ...]:
    """Parse LMDB's reader list: a title, then lines of pid, thread (hexadecimal), transaction ("-": idle)."""
    found = []
    for line in table.splitlines()[1:]:
        parts = line.split()
        if len(parts) == 3 and parts[0].isdigit() and parts[2].isdigit():
            seen = int(parts[2])
            found.append(Reader(int(parts[0]), parts[1], seen, max(newest - seen, 0)))
    return tuple(sorted(found, key=lambda reader: reader.transaction))
