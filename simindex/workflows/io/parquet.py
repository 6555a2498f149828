"""Parquet (extra `arrow`).

The text column packed without a Python object a row; survivors keep schema and metadata.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from simindex.errors import FeatureError
from simindex.types import Packed
from simindex.workflows.io.batch import (
    BadRecord,
    Batch,
    Block,
    Bools,
    Decoded,
    Place,
    TruncatedInput,
    UnknownColumn,
)
from simindex.workflows.io.formats import Format
from simindex.workflows.io.inputs import InputFile

BATCH_ROWS = 8192


def arrow() -> Any:
    """Return the pyarrow module. Raises FeatureError that names the extra, where it is missing."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise FeatureError("Parquet needs pyarrow: pip install 'simindex[arrow]'") from error
    return pyarrow


class Parquet:
    """Parquet files of one schema.

    The text column is a string or binary (also large or dictionary-encoded) column.
    """

    def __init__(self, files: list[InputFile], field: str, key: str | None) -> None:
        self.format = Format("parquet")
        self.files = files
        self.field = field
        self.key = key
        self._pa = arrow()
        self.schema: Any = None
        for number in range(len(files)):
            schema = self._open(number).schema_arrow
            if self.schema is None:
                self._check_columns(schema, files[number].name)
                self.schema = schema
            elif not schema.equals(self.schema):
                raise BadRecord(f"{files[number].name}: its schema is not that of {files[0].name}:\n{schema}")

    def _check_columns(self, schema: Any, name: str) -> None:
        for column in (self.field, self.key):
            if column is not None and column not in schema.names:
                raise UnknownColumn(f"{name}: no column {column!r}; the file has: {', '.join(schema.names)}")
        kind = schema.field(self.field).type
        types = self._pa.types
        inner = kind.value_type if types.is_dictionary(kind) else kind
        tests = (
            types.is_string,
            types.is_large_string,
            types.is_string_view,
            types.is_binary,
            types.is_large_binary,
        )
        if not any(test(inner) for test in tests):
            raise UnknownColumn(f"{name}: column {self.field!r} is {kind}, not text")

    def _open(self, number: int) -> Any:
        try:
            return self._pa.parquet.ParquetFile(self.files[number].local_path())
        except (self._pa.ArrowInvalid, self._pa.ArrowException) as error:
            raise TruncatedInput(
                f"{self.files[number].name}: not a Parquet file, or cut short: {error}"
            ) from error

    def _stretches(self, number: int, columns: list[str] | None) -> Iterator[Any]:
        try:
            yield from self._open(number).iter_batches(batch_size=BATCH_ROWS, columns=columns)
        except (self._pa.ArrowInvalid, OSError) as error:
            raise TruncatedInput(f"{self.files[number].name}: broken Parquet data: {error}") from error

    def stretches(self, number: int) -> Iterator[Any]:
        """Yield one file's rows, all columns, as Arrow batches."""
        yield from self._stretches(number, None)

    def batches(self, place: Place) -> Iterator[Batch]:
        columns = [self.field] if self.key in (None, self.field) else [self.field, str(self.key)]
        for number in range(place.file, len(self.files)):
            start = place.offset if number == place.file else 0
            offset = 0
            for batch in self._stretches(number, columns):
                stop = offset + len(batch)
                if stop > start:
                    part = batch.slice(max(0, start - offset))
                    yield Batch(number, stop - len(part), stop, stop - len(part), part, part.nbytes)
                offset = stop

    def decode(self, batch: Batch) -> Decoded:
        pa = self._pa
        column = batch.payload.column(self.field)
        present = ~np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)
        labels = None
        if self.key is not None:
            values = batch.payload.column(self.key).to_pylist()
            labels = [
                v if v is None or (isinstance(v, (str, int)) and not isinstance(v, bool)) else str(v)
                for v in values
            ]
        texts = column.cast(pa.large_binary() if _is_binary(pa, column.type) else pa.large_string())
        return Decoded(_packed(texts), present, labels, len(column), None, [], tuple(self.schema.names))

    def again(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, Any]]:
        """Yield each block with its rows, all columns, as an Arrow table."""
        current, at = -1, 0
        stretches: Iterator[Any] = iter(())
        rest: Any = None
        for block in blocks:
            if block.file != current:
                stretches, current, at, rest = self._stretches(block.file, None), block.file, 0, None
            parts = []
            while at < block.stop:
                if rest is None or len(rest) == 0:
                    rest = next(stretches, None)
                    if rest is None:
                        raise TruncatedInput(
                            f"{self.files[current].name}: the file became shorter while it was read"
                        )
                step = min(len(rest), (block.offset if at < block.offset else block.stop) - at)
                if at >= block.offset:
                    parts.append(rest.slice(0, step))
                rest = rest.slice(step)
                at += step
            yield block, self._pa.Table.from_batches(parts, schema=self.schema)

    def rows(self, payload: Any, mask: Bools) -> Iterator[dict[str, Any]]:
        yield from payload.filter(self._pa.array(mask)).to_pylist()


def _is_binary(pa: Any, kind: Any) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_binary(inner) or pa.types.is_large_binary(inner))


def _packed(texts: Any) -> Packed:
    """View a large_string or large_binary array; a null is an empty string here."""
    _, offsets, data = texts.buffers()
    if len(texts) == 0 or offsets is None:
        return Packed(np.empty(0, np.uint8), np.zeros(len(texts) + 1, np.int64))
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return Packed(np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8), ends)
