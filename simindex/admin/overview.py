"""What is in a file, in numbers."""

from dataclasses import dataclass

from simindex.index.layouts import layout_of
from simindex.index.schema import Schema
from simindex.store import Info, Reader, Store


@dataclass(frozen=True)
class FieldOverview:
    """empty, shortened: items whose field has no features, or less than one shingle. description: its
    settings.
    """

    name: str
    empty: int
    shortened: int
    description: str


@dataclass(frozen=True)
class CollectionOverview:
    """items: live ones. rows: row ids used up to now (compact gives those of dead rows back)."""

    name: str
    key: str
    items: int
    rows: int
    fields: tuple[FieldOverview, ...]

    @property
    def empty(self) -> int:
        """Empty field values, over all fields."""
        return sum(field.empty for field in self.fields)

    @property
    def shortened(self) -> int:
        """Shortened field values, over all fields."""
        return sum(field.shortened for field in self.fields)


@dataclass(frozen=True)
class Overview:
    """A file as of now.

    usage: sizes and open readers (store.Info). by_kind: bytes of each kind of data. bytes_per_item: by kind,
    and "all".
    """

    path: str
    collections: tuple[CollectionOverview, ...]
    usage: Info
    by_kind: dict[str, int]
    bytes_per_item: dict[str, float]

    @property
    def items(self) -> int:
        """Items of all collections."""
        return sum(collection.items for collection in self.collections)

    @property
    def empty(self) -> int:
        """Empty field values of all collections."""
        return sum(collection.empty for collection in self.collections)

    @property
    def shortened(self) -> int:
        """Shortened field values of all collections."""
        return sum(collection.shortened for collection in self.collections)

    @property
    def oldest(self) -> Reader | None:
        """The oldest snapshot that is open, if any: space freed since then cannot be used again yet."""
        return self.usage.oldest

    def __str__(self) -> str:
        use = self.usage
        lines = [
            f"{self.path}: {use.file_bytes:,} bytes, {use.used_bytes:,} used, "
            f"{use.free_bytes:,} free, {self.items:,} items"
        ]
        for collection in self.collections:
            lines.append(f"collection {collection.name!r}: {collection.items:,} items, keys {collection.key}")
            for field in collection.fields:
                lines.append(f"  {field.description}")
                lines.append(f"  {field.empty:,} empty, {field.shortened:,} shortened")
        per_item = ", ".join(f"{kind} {value:.1f}" for kind, value in self.bytes_per_item.items())
        lines.append(f"bytes per item: {per_item}")
        if self.oldest is not None:
            lines.append(f"oldest reader: process {self.oldest.pid}, {self.oldest.lag} commits behind")
        return "\n".join(lines)


def overview(store: Store) -> Overview:
    """Return what is in the file now. Cost: microseconds a collection, whatever its size."""
    info = store.info()
    with store.read() as snapshot:
        by_kind = snapshot.sizes()
        collections = []
        for number, stored in snapshot.catalog().items():
            schema = Schema.from_bytes(bytes(stored))
            state = snapshot.collection(number, layout_of(schema)).state
            fields = tuple(
                FieldOverview(
                    name,
                    state.counters.get(f"empty:{schema.numbers[name]}", 0),
                    state.counters.get(f"shortened:{schema.numbers[name]}", 0),
                    field.describe(name),
                )
                for name, field in schema.fields.items()
            )
            collections.append(
                CollectionOverview(schema.name, schema.key, state.live, state.next_row, fields)
            )
    collections.sort(key=lambda collection: collection.name)
    items = sum(collection.items for collection in collections)
    per_item = {kind: size / items if items else 0.0 for kind, size in by_kind.items()}
    per_item["all"] = info.file_bytes / items if items else 0.0
    return Overview(str(store.environment.path), tuple(collections), info, by_kind, per_item)
