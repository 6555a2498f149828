"""From what `put_many` is given to batches of checked columns: mappings, Arrow tables, or arrays. Lazy, one
batch at a time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np

from simindex.errors import FeatureError, KeyTypeError, shown
from simindex.index.keys import key_column
from simindex.index.prepare import Prepared, prepare
from simindex.index.records import pack_attributes
from simindex.index.results import Reject
from simindex.index.schema import Schema
from simindex.index.spelling import unknown
from simindex.types import Packed


@dataclass(frozen=True, slots=True)
class Batch:
    """Items start..start + n of the input, by column. keys: as given. attributes: packed, None when no item
    has any.
    """

    start: int
    keys: Any
    columns: dict[str, Any]
    attributes: Sequence[bytes] | None
    n: int


def batches(schema: Schema, rows: Any, size: int) -> Iterator["RowBatch | Batch"]:
    """Yield the input in batches of at most `size`.

    rows: an iterable of mappings with "key" and columns (consumed lazily), a pyarrow Table or RecordBatch, or
    a mapping of column name to array (its "key" column is required). Raises FeatureError at once for any
    other type.
    """
    if isinstance(rows, Mapping):
        return _array_batches(schema, rows, size)
    if hasattr(rows, "to_batches") and hasattr(rows, "schema"):
        return _arrow_batches(rows.to_batches(max_chunksize=size))
    if hasattr(rows, "to_pylist") and hasattr(rows, "schema"):
        return _arrow_batches([rows.slice(at, size) for at in range(0, rows.num_rows, size)])
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable) or getattr(rows, "ndim", 1) == 0:
        raise FeatureError(
            f"put_many takes mappings, an Arrow table or a dict of arrays, not {type(rows).__name__}"
        )
    return _row_batches(rows, size)


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Mappings start..start + n of the input."""

    start: int
    rows: list[Any]

    @property
    def n(self) -> int:
        return len(self.rows)


def _row_batches(rows: Iterable[Any], size: int) -> Iterator[RowBatch]:
    source, start = iter(rows), 0
    while chunk := list(islice(source, size)):
        yield RowBatch(start, chunk)
        start += len(chunk)


def _arrow_batches(parts: Iterable[Any]) -> Iterator[RowBatch]:
    start = 0
    for part in parts:
        rows = part.to_pylist()
        if rows:
            yield RowBatch(start, rows)
        start += len(rows)


def _array_batches(schema: Schema, arrays: Mapping[str, Any], size: int) -> Iterator[Batch]:
    if "key" not in arrays:
        raise FeatureError("arrays need a column 'key'")
    if isinstance(arrays["key"], str | bytes | int | np.integer):
        raise FeatureError("put_many takes many records: use put for one, or give a list of them")
    columns = {}
    for name, column in arrays.items():
        if name in schema.columns and column is not None:
            columns[name] = column
        elif (
            name != "key"
            and name not in schema.columns
            and (name in schema.fields or not isinstance(name, str))
        ):
            raise FeatureError(unknown("column", name, ["key", *schema.columns]))
    extras = {name: column for name, column in arrays.items() if name != "key" and name not in columns}
    keys = arrays["key"]
    n = column_length(keys)
    for name, column in {**columns, **extras}.items():
        if column is not None and column_length(column) != n:
            raise FeatureError(f"column {shown(name)} has {column_length(column)} values for {n} keys")
    kept = {name: column for name, column in columns.items() if name in schema.kept}
    return _slices(keys, columns, {**extras, **kept}, n, size)


def _slices(keys: Any, columns: dict[str, Any], extras: dict[str, Any], n: int, size: int) -> Iterator[Batch]:
    for a in range(0, n, size):
        b = min(a + size, n)
        attributes = None
        if extras:
            names = list(extras)
            cut = [_listed(column_slice(extras[name], a, b)) for name in names]
            attributes = [
                pack_attributes({k: v for k, v in zip(names, values, strict=True) if v is not None})
                for values in zip(*cut, strict=True)
            ]
        yield Batch(
            a,
            column_slice(keys, a, b),
            {k: column_slice(c, a, b) for k, c in columns.items()},
            attributes,
            b - a,
        )


def _listed(column: Any) -> list[Any]:
    if isinstance(column, Packed):
        raw, ends = column.data.tobytes(), column.offsets.tolist()
        return [raw[x:y].decode("utf-8", "surrogatepass") for x, y in pairwise(ends)]
    if isinstance(column, tuple) and len(column) == 2 and isinstance(column[1], np.ndarray):
        ends = column[1].tolist()
        return [column[0][x:y].tolist() for x, y in pairwise(ends)]
    return column.tolist() if hasattr(column, "tolist") else list(column)


def column_length(column: Any) -> int:
    """Return how many items a column holds. Raises FeatureError for what is no column and wrong offsets."""
    if isinstance(column, tuple) and len(column) == 2 and isinstance(column[0], np.ndarray):
        return check_offsets("ptr", column[1], column[0], True)
    if isinstance(column, Packed):
        return check_offsets("offsets", column.offsets, column.data, False)
    try:
        if not isinstance(column, str | bytes | bytearray | memoryview | Mapping | Set):
            return len(column)
    except (TypeError, ValueError):
        pass
    raise FeatureError(f"a column is {shown(column)}: give a list or an array, one value per item")


def check_offsets(name: str, offsets: Any, data: Any, whole: bool) -> int:
    """Return how many items the offsets divide `data` into. Raises FeatureError, naming the offset at fault,
    unless they are whole numbers that never fall and lie in `data`; whole: from 0 to its end.
    """
    if not isinstance(data, np.ndarray) or data.ndim != 1:
        raise FeatureError(f"{name} divides {shown(data)}: it divides an array of one dimension")
    if (
        not isinstance(offsets, np.ndarray)
        or offsets.ndim != 1
        or offsets.dtype.kind not in "ui"
        or not len(offsets)
    ):
        raise FeatureError(f"{name} is {shown(offsets)}: n items have n + 1 whole numbers in one row")
    first, last = int(offsets[0]), int(offsets[-1])
    if first < 0 or last > len(data) or (whole and (first, last) != (0, len(data))):
        raise FeatureError(f"{name} goes from {first} to {last}: the data has {len(data)} elements")
    falls = np.flatnonzero(offsets[1:] < offsets[:-1])
    if len(falls):
        at = int(falls[0])
        raise FeatureError(
            f"{name} falls from {offsets[at]} to {offsets[at + 1]} at {at + 1}: offsets never fall"
        )
    return len(offsets) - 1


def column_slice(column: Any, a: int, b: int) -> Any:
    """Return items a..b of a column, without copying where its form allows."""
    if isinstance(column, Packed):
        return Packed(column.data, np.asarray(column.offsets[a : b + 1], np.int64))
    if isinstance(column, tuple) and len(column) == 2 and isinstance(column[0], np.ndarray):
        hashes, ptr = column
        cut = np.asarray(ptr[a : b + 1]).astype(np.int64)
        return hashes[int(cut[0]) : int(cut[-1])], cut - cut[0]
    if a == 0 and b == len(column):
        return column
    return column[a:b]


def as_batch(schema: Schema, batch: "RowBatch | Batch") -> Batch:
    """Return mappings as columns. Raises FeatureError that names the first record at fault.

    Iterators among token sets are read here, once.
    """
    if isinstance(batch, Batch):
        return batch
    rows = batch.rows
    try:
        keys = [row["key"] for row in rows]
        columns: dict[str, Any] = {column: [row.get(column) for row in rows] for column in schema.columns}
        known = {"key", *(c for c in schema.columns if c not in schema.kept)}
        attributes = None
        if any(not row.keys() <= known for row in rows):
            attributes = [_extra(row, known) for row in rows]
    except (FeatureError, KeyError, TypeError, AttributeError, IndexError, ValueError):
        for i, row in enumerate(rows):
            _check_row(schema, row, batch.start + i)
        raise
    for column, names in schema.columns.items():
        if any(schema.fields[name].kind == "tokens" for name in names):
            columns[column] = [list(v) if isinstance(v, Iterator) else v for v in columns[column]]
    return Batch(batch.start, keys, columns, attributes, len(rows))


def _extra(row: Mapping[str, Any], known: set[str]) -> bytes:
    extra = {name: value for name, value in row.items() if name not in known}
    return pack_attributes(extra) if extra else b""


def _check_row(schema: Schema, row: Any, position: int) -> None:
    """Raise FeatureError unless the record is a mapping with a key, whose attributes can be stored."""
    if not isinstance(row, Mapping):
        raise FeatureError(
            f"record {position} is {type(row).__name__}: records are mappings with 'key' and fields"
        )
    if "key" not in row:
        raise FeatureError(f"record {position} has no 'key'")
    try:
        _extra(row, {"key", *(c for c in schema.columns if c not in schema.kept)})
    except FeatureError as error:
        raise FeatureError(f"record {position} (key {shown(row['key'])}): {error}") from error


def prepare_batch(
    schema: Schema, batch: "RowBatch | Batch", skip: bool
) -> tuple[Prepared, list[Reject], list[int]]:
    """Return (items, rejects, positions of the items in the input).

    skip: leave records at fault out and list them; else the first raises, with its position. The whole batch
    is tried at once first; only a batch with a record at fault is checked record by record.
    """
    rejects: list[Reject] = []
    positions = list(range(batch.start, batch.start + batch.n))
    if skip and isinstance(batch, RowBatch):
        batch, rejects, positions = _sound_rows(schema, batch)
    columns = as_batch(schema, batch)
    try:
        return _prepare(schema, columns), rejects, positions
    except FeatureError as error:
        good, more = _one_by_one(schema, columns, positions, None if skip else error)
    rejects = sorted([*rejects, *more], key=lambda reject: reject.position)
    return _prepare(schema, _select(columns, good)), rejects, [positions[i] for i in good]


def _prepare(schema: Schema, batch: Batch) -> Prepared:
    return prepare(schema, key_column(schema.key, batch.keys), batch.columns, batch.attributes)


def _sound_rows(schema: Schema, batch: RowBatch) -> tuple[RowBatch, list[Reject], list[int]]:
    rejects: list[Reject] = []
    positions: list[int] = []
    for position, row in enumerate(batch.rows, batch.start):
        try:
            _check_row(schema, row, position)
            positions.append(position)
        except FeatureError as error:
            rejects.append(Reject(position, row.get("key") if isinstance(row, Mapping) else None, str(error)))
    if not rejects:
        return batch, rejects, positions
    return RowBatch(batch.start, [batch.rows[p - batch.start] for p in positions]), rejects, positions


def _one_by_one(
    schema: Schema, batch: Batch, positions: list[int], fatal: FeatureError | None
) -> tuple[list[int], list[Reject]]:
    good: list[int] = []
    rejects: list[Reject] = []
    for i in range(batch.n):
        key = None if isinstance(batch.keys, Packed) else batch.keys[i]
        try:
            _prepare(schema, _select(batch, [i]))
            good.append(i)
        except FeatureError as error:
            if fatal is not None:
                named = "" if key is None else f" (key {shown(key)})"
                kind = KeyTypeError if isinstance(error, KeyTypeError) else FeatureError
                raise kind(f"record {positions[i]}{named}: {error}") from error
            rejects.append(Reject(positions[i], key, str(error)))
    if fatal is not None:
        raise fatal  # no record alone is at fault: the batch's form is
    return good, rejects


def _select(batch: Batch, index: list[int]) -> Batch:
    attributes = None if batch.attributes is None else [batch.attributes[i] for i in index]
    columns = {name: _pick(column, index) for name, column in batch.columns.items()}
    return Batch(batch.start, _pick(batch.keys, index), columns, attributes, len(index))


def _pick(column: Any, index: list[int]) -> Any:
    if isinstance(column, np.ndarray):
        return column[index]
    if isinstance(column, Packed) or (isinstance(column, tuple) and isinstance(column[0], np.ndarray)):
        parts = [column_slice(column, i, i + 1) for i in index]
        if isinstance(column, Packed):
            raw = [part.data[int(part.offsets[0]) : int(part.offsets[1])] for part in parts]
            offsets = np.cumsum([0, *map(len, raw)], dtype=np.int64)
            return Packed(np.concatenate(raw) if raw else np.zeros(0, np.uint8), offsets)
        sizes = np.cumsum([0, *(len(part[0]) for part in parts)], dtype=np.int64)
        return (np.concatenate([part[0] for part in parts]) if parts else column[0][:0]), sizes
    return [column[i] for i in index]
