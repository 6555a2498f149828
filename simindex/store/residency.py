"""Which pages of a store's file are in memory: reading ahead before a pass over all, letting go during one.

The map itself is read page by page, so that a search of few blocks does not drag in megabytes around each.

Pages of the map are the kernel's page cache: it takes them back when it needs room, but until then every page
that was touched counts as resident. A pass over a large file would look like a leak, and limits of containers
would see it.
"""

import os
from functools import cache
from typing import Any

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_READ_AHEAD = 128 << 10  # one request reads no more than the device's own read-ahead, often this much
_DONTNEED = 4  # MADV_DONTNEED on Linux: of a shared map of a file it only drops the page table entries


def trim(path: str | os.PathLike[str], most_bytes: int) -> bool:
    """Let go of the resident pages of a store's map if file pages of this process take more than
    `most_bytes`.

    Their content stays in the page cache and comes back at the next access (about 0.1 microseconds a page).
    Returns whether it did so; False on systems other than Linux. Safe beside readers in other threads.
    """
    if _resident_file_bytes() <= most_bytes:
        return False
    done = False
    for start, stop in _shared_maps(os.path.realpath(path)):
        done = _libc().madvise(start, stop - start, _DONTNEED) == 0 or done
    return done


def read_ahead(path: str | os.PathLike[str]) -> None:
    """Ask the system to read a file into its cache, all of it, in the background where it can.

    Files larger than half of the machine's memory are left alone. Cost: about 10 microseconds a MB that is
    there.
    """
    if not hasattr(os, "posix_fadvise"):
        return
    size = os.stat(path).st_size
    if size > _PAGE * os.sysconf("SC_PHYS_PAGES") // 2:
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for start in range(0, size, _READ_AHEAD):
            os.posix_fadvise(descriptor, start, _READ_AHEAD, os.POSIX_FADV_WILLNEED)
    finally:
        os.close(descriptor)


def _resident_file_bytes() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[2]) * _PAGE
    except OSError:
        return 0


def _shared_maps(path: str) -> list[tuple[int, int]]:
    """Return (start, stop) of this process's shared, read-only maps of a file; private ones must not be
    dropped."""
    found = []
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            parts = line.rstrip("\n").split(maxsplit=5)
            if len(parts) == 6 and parts[5] == path and parts[1] == "r--s":
                start, stop = (int(part, 16) for part in parts[0].split("-"))
                found.append((start, stop))
    return found


@cache
def _libc() -> Any:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    libc.madvise.restype = ctypes.c_int
    return libc
