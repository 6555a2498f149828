"""What the store knows of one collection: its layout (given) and its state (rewritten with each commit)."""

from dataclasses import dataclass, field

import msgpack

from simindex.errors import CorruptStore, SchemaError
from simindex.kernels import crc32c
from simindex.store import layout


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """One field: signature `width` in bytes, `bands` bucket keys a row, and whether originals are kept."""

    number: int
    width: int
    bands: int
    originals: bool

    def __post_init__(self) -> None:
        if not 0 <= self.number <= layout.MAX_FIELD:
            raise SchemaError(f"field number {self.number} is not in 0..{layout.MAX_FIELD}")
        if not 1 <= self.width <= layout.SIGNATURES_BYTES - layout.signature_header(1):
            raise SchemaError(f"a signature of {self.width} bytes does not fit in a block")
        if not 1 <= self.bands <= 0xFFFF:
            raise SchemaError(f"{self.bands} bands are not in 1..65535")


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes of blocks in bytes. Only tests use others than the defaults; stored with the collection."""

    signatures: int = layout.SIGNATURES_BYTES
    heap: int = layout.HEAP_BYTES
    tail: int = layout.HEAP_TAIL_BYTES


STANDARD = Geometry()


@dataclass(frozen=True, slots=True)
class CollectionLayout:
    """All that the store needs to know of a schema. Frozen for a collection: stored at its first write."""

    fields: tuple[FieldLayout, ...]
    geometry: Geometry = STANDARD

    def __post_init__(self) -> None:
        numbers = [f.number for f in self.fields]
        if len(set(numbers)) != len(numbers):
            raise SchemaError(f"field numbers repeat: {numbers}")

    def field(self, number: int) -> FieldLayout:
        """Return the field of that number; KeyError if there is none."""
        for f in self.fields:
            if f.number == number:
                return f
        raise KeyError(f"no field of number {number}")

    def to_plain(self) -> list[object]:
        g = self.geometry
        return [
            [[f.number, f.width, f.bands, f.originals] for f in self.fields],
            [g.signatures, g.heap, g.tail],
        ]

    @classmethod
    def from_plain(cls, plain: list[list[list[int]]]) -> "CollectionLayout":
        fields = tuple(FieldLayout(n, width, bands, bool(kept)) for n, width, bands, kept in plain[0])
        signatures, heap, tail = plain[1]
        return cls(fields, Geometry(signatures, heap, tail))  # type: ignore[arg-type]


@dataclass(slots=True)
class CollectionState:
    """The counters of a collection as of one transaction.

    next_row: the row id that the next append gets; live: rows that are live; sequence: the next sequence
    number; counters: named counts of the index floor. change: how many commits changed the collection;
    logged: the last change that is in the change log (readers skip the log when they have seen that one);
    examined: removals since the live bitmap was last searched for sparse blocks; layout: as given at the
    first write.
    """

    next_row: int = 0
    live: int = 0
    sequence: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    change: int = 0
    logged: int = 0
    examined: int = 0
    layout: CollectionLayout | None = None

    def copy(self) -> "CollectionState":
        return CollectionState(
            self.next_row, self.live, self.sequence, dict(self.counters), self.change, self.logged,
            self.examined, self.layout,
        )  # fmt: skip

    def encode(self) -> bytes:
        plain = self.layout.to_plain() if self.layout is not None else None
        body: bytes = msgpack.packb(
            [
                self.next_row,
                self.live,
                self.sequence,
                self.counters,
                self.change,
                self.logged,
                self.examined,
                plain,
            ]
        )
        return layout.CHECKED.pack(layout.STATE_MAGIC, crc32c(body)) + body

    @classmethod
    def decode(cls, value: bytes | memoryview, known: CollectionLayout | None = None) -> "CollectionState":
        """known: the layout expected; when equal it is taken instead of a copy, so that `is` compares."""
        body = check(value, layout.STATE_MAGIC, "state of a collection")
        try:
            state = cls(*msgpack.unpackb(body))
            if state.layout is not None:
                state.layout = _layout_of(state.layout, known)  # type: ignore[arg-type]
        except (ValueError, TypeError, SchemaError) as error:
            raise CorruptStore(f"state of a collection: {error}") from error
        return state


def _layout_of(plain: list[list[list[int]]], known: CollectionLayout | None) -> CollectionLayout:
    """Return the layout that `plain` tells of; `known` itself if it is that one."""
    key = msgpack.packb(plain)
    found = _layouts.get(key)
    if found is None or (known is not None and found is not known and found == known):
        found = CollectionLayout.from_plain(plain)
        if len(_layouts) >= _MOST_LAYOUTS:
            _layouts.clear()
        found = _layouts[key] = known if known is not None and found == known else found
    return found


_layouts: dict[bytes, CollectionLayout] = {}  # each state is decoded again with every commit
_MOST_LAYOUTS = 1000


def check(value: bytes | memoryview, magic: bytes, what: str) -> memoryview:
    """Return the bytes after the checked header; CorruptStore when magic or checksum is wrong."""
    view = memoryview(value)
    if len(view) < layout.CHECKED_AT:
        raise CorruptStore(f"{what}: {len(view)} bytes are too few")
    found, crc = layout.CHECKED.unpack_from(view)
    if found != magic:
        raise CorruptStore(f"{what}: begins with {found!r}, not {magic!r}")
    body = view[layout.CHECKED_AT :]
    if crc32c(body) != crc:
        raise CorruptStore(f"{what}: checksum {crc32c(body):08x}, stored {crc:08x}")
    return body


def checked(magic: bytes, body: bytes) -> bytes:
    """Return `body` after its header of magic and checksum."""
    return layout.CHECKED.pack(magic, crc32c(body)) + body
