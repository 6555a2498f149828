"""What a file is, read without LMDB: nothing is mapped, locked, created or written, and no byte can crash it.

LMDB maps whatever it is given: a file cut short kills the process (SIGBUS), a foreign one gets a lock file.
So the questions "is this ours, whole, and readable by this version?" are answered first, by plain reads of
the two meta pages and of the few pages on the way to the identity record.

The page format is LMDB 0.9's on 64-bit machines: page header 16 bytes (flags at 10, end of the pointer table
at 12, number of overflow pages at 12), then uint16 pointers to nodes; node header 8 bytes (data size or page
number, flags, key size).
"""

import errno
import os
import stat
import struct
from dataclasses import dataclass
from pathlib import Path

from simindex.errors import CorruptStore, EngineMismatch, NotAStore, OpenError
from simindex.store.layout import IDENTITY, META
from simindex.store.meta import ENGINE, Identity

_MAGIC = 0xBEEFC0DE
_FORMAT_09, _FORMAT_10 = 1, 3
_BRANCH, _LEAF, _OVERFLOW = 1, 2, 4
_BIG, _SUBDATABASE = 1, 2
_NO_PAGE = (1 << 64) - 1
_DEEPEST = 32
_HEADER = 16


class _Torn(Exception):
    """A page is not what the tree says: damage, or a writer was faster than we."""


@dataclass(frozen=True)
class _Tree:
    """The 48 bytes that describe one B-tree of the file."""

    pages: int
    root: int

    @classmethod
    def parse(cls, data: bytes) -> "_Tree":
        branch, leaf, overflow, _, root = struct.unpack_from("<5Q", data, 8)
        return cls(branch + leaf + overflow, root)


@dataclass(frozen=True)
class Meta:
    """A meta page: page size, the trees of free pages and of databases, last page number, transaction id."""

    page_bytes: int
    map_bytes: int
    free: _Tree
    main: _Tree
    last_page: int
    txn: int


class Peek:
    """A store file, opened for plain reads. Close it, or use it in a `with` block."""

    def __init__(self, path: Path) -> None:
        """Raises OpenError (missing, not readable), NotAStore (folder, device, not LMDB), EngineMismatch."""
        self.path = path
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            if error.errno == errno.EISDIR:
                raise NotAStore(f"{path}: a folder, not a store file") from error
            raise OpenError(f"{path}: cannot be read: {error.strerror}") from error
        try:
            seen = os.fstat(self._file)
            if stat.S_ISDIR(seen.st_mode):
                raise NotAStore(f"{path}: a folder, not a store file")
            if not stat.S_ISREG(seen.st_mode):
                raise NotAStore(f"{path}: not a regular file")
            self.meta = self._newest()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> "Peek":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    @property
    def file_bytes(self) -> int:
        """The size of the file now."""
        return os.fstat(self._file).st_size

    def _newest(self) -> Meta:
        first = os.pread(self._file, 152, 0)
        if not first:
            raise NotAStore(f"{self.path}: an empty file, not a store; delete it to create one there")
        if len(first) >= 32 and struct.unpack_from("<II", first, 24) == (_MAGIC, _FORMAT_10):
            raise EngineMismatch(
                f"{self.path}: written by LMDB engine 1.0 (data format {_FORMAT_10}), this version uses "
                f"{ENGINE} (data format {_FORMAT_09})"
            )
        if len(first) < 152 or struct.unpack_from("<I", first, 16)[0] != _MAGIC:
            if len(first) >= 20 and struct.unpack_from(">I", first, 16)[0] == _MAGIC:
                raise EngineMismatch(
                    f"{self.path}: written on a big-endian machine, this one is little-endian"
                )
            raise NotAStore(f"{self.path}: not a simindex store (its first bytes are {first[:16]!r})")
        version = struct.unpack_from("<I", first, 20)[0]
        if version != _FORMAT_09:
            raise EngineMismatch(f"{self.path}: LMDB data format {version}, this version uses {_FORMAT_09}")
        page = struct.unpack_from("<I", first, 40)[0]
        own = os.sysconf("SC_PAGE_SIZE")
        if page != own:
            raise EngineMismatch(
                f"{self.path}: pages of {page} bytes, this machine uses {own}: "
                "run 'simindex dump' where it was written and 'simindex load' here"
            )
        second = os.pread(self._file, 152, page)
        if len(second) < 152 or struct.unpack_from("<II", second, 16) != (_MAGIC, _FORMAT_09):
            raise NotAStore(
                f"{self.path}: cut short or damaged: the second of its two meta pages is missing "
                f"({self.file_bytes} bytes); restore it from a backup"
            )
        return max((_parse(first), _parse(second)), key=lambda meta: meta.txn)

    def check(self) -> Identity:
        """Return the store's identity. Raises NotAStore (foreign, cut short), FormatTooNew, EngineMismatch,
        CorruptStore."""
        for _ in range(50):
            before = self.meta
            try:
                self._check_length()
                value = self._lookup(before.main, META.encode(), _SUBDATABASE)
                if value is not None:
                    value = self._lookup(_Tree.parse(value), IDENTITY, 0)
                if value is None:
                    raise NotAStore(f"{self.path}: an LMDB file, but not a simindex store")
                return Identity.decode(value, str(self.path))
            except (_Torn, struct.error, NotAStore, CorruptStore) as error:
                self.meta = self._newest()
                if self.meta.txn != before.txn:
                    continue  # a writer was faster: look again
                if isinstance(error, NotAStore | CorruptStore):
                    raise
                raise CorruptStore(
                    f"{self.path}: the pages that lead to the identity record are damaged ({error}); "
                    "restore the store from a backup"
                ) from error
        raise OpenError(f"{self.path}: changes too fast to be read")

    def _check_length(self) -> None:
        meta, have = self.meta, self.file_bytes
        need = (meta.last_page + 1) * meta.page_bytes
        if have >= need:
            return
        # Pages that a transaction took at the end of the file and freed again are never written, so a sound
        # file may lack them; every one of them must be on the free list.
        missing = set(range(have // meta.page_bytes, meta.last_page + 1)) if need - have < 1 << 32 else None
        try:
            if missing is not None and missing <= self._free_pages():
                return
        except (_Torn, struct.error):
            pass
        raise NotAStore(
            f"{self.path}: cut short: {have} bytes of {need}; restore it from a backup (nothing was written)"
        )

    def _free_pages(self) -> set[int]:
        free: set[int] = set()
        for value in self._values(self.meta.free.root, 0):
            count = struct.unpack_from("<Q", value)[0]
            free.update(struct.unpack_from(f"<{min(count, len(value) // 8 - 1)}Q", value, 8))
        return free

    # Trees --------------------------------------------------------------------------------------------------

    def _page(self, number: int, pages: int = 1) -> bytes:
        size = self.meta.page_bytes
        data = b""
        if size * (number + pages) <= self.file_bytes:
            data = os.pread(self._file, size * pages, size * number)
        if len(data) < size * pages or struct.unpack_from("<Q", data)[0] != number:
            raise _Torn(f"page {number}")
        return data

    def _nodes(self, page: bytes) -> list[tuple[int, int, bytes, int]]:
        """Return (page number or data size, flags, key, offset of the data) of each node of a page."""
        end = struct.unpack_from("<H", page, 12)[0]
        nodes = []
        for at in range(_HEADER, min(end, len(page)) - 1, 2):
            start = struct.unpack_from("<H", page, at)[0]
            if start + 8 > len(page):
                raise _Torn("a node outside its page")
            low, high, flags, key_size = struct.unpack_from("<4H", page, start)
            key = page[start + 8 : start + 8 + key_size]
            nodes.append((low | high << 16, flags, key, start + 8 + key_size))
        return nodes

    def _value(self, page: bytes, size: int, flags: int, at: int) -> bytes:
        if flags & _BIG:
            first = struct.unpack_from("<Q", page, at)[0]
            count = (_HEADER + size + self.meta.page_bytes - 1) // self.meta.page_bytes
            return self._page(first, count)[_HEADER : _HEADER + size]
        if at + size > len(page):
            raise _Torn("a value outside its page")
        return page[at : at + size]

    def _lookup(self, tree: _Tree, wanted: bytes, kind: int) -> bytes | None:
        number = tree.root
        for _ in range(_DEEPEST):
            if number == _NO_PAGE:
                return None
            page = self._page(number)
            flags = struct.unpack_from("<H", page, 10)[0]
            nodes = self._nodes(page)
            if flags & _BRANCH and nodes:
                below = [node for node in nodes[1:] if node[2] <= wanted]
                low, high, _, _ = below[-1] if below else nodes[0]
                number = low | high << 32
            elif flags & _LEAF:
                for size, node_flags, key, at in nodes:
                    if key == wanted and node_flags & _SUBDATABASE == kind:
                        return self._value(page, size, node_flags, at)
                return None
            else:
                break
        raise _Torn("not a tree")

    def _values(self, number: int, depth: int) -> list[bytes]:
        if number == _NO_PAGE:
            return []
        page = self._page(number)
        flags = struct.unpack_from("<H", page, 10)[0]
        if flags & _BRANCH and depth < _DEEPEST:
            found = []
            for low, high, _, _ in self._nodes(page):
                found += self._values(low | high << 32, depth + 1)
            return found
        if flags & _LEAF:
            return [self._value(page, size, node_flags, at) for size, node_flags, _, at in self._nodes(page)]
        raise _Torn("not a tree")


def _parse(data: bytes) -> Meta:
    map_bytes = struct.unpack_from("<Q", data, 32)[0]
    page_bytes = struct.unpack_from("<I", data, 40)[0]
    last_page, txn = struct.unpack_from("<QQ", data, 136)
    return Meta(page_bytes, map_bytes, _Tree.parse(data[40:88]), _Tree.parse(data[88:136]), last_page, txn)
