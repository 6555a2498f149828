"""Survivors in another format than the input's: rows as dicts, columns learnt in a pass of their own."""

import os
from collections.abc import Iterable
from typing import Any

from simindex.errors import FeatureError
from simindex.workflows.io.batch import Bools
from simindex.workflows.io.streams import Output, sync_folder

Passes = Iterable[tuple[Any, Bools]]
GROUP_ROWS = 10_000


class _Rows:
    def __init__(self, source: Any, out: Output) -> None:
        self.source = source
        self.out = out

    def seal(self) -> None:
        self.out.seal()

    def finish(self) -> None:
        self.out.finish()

    def close(self) -> None:
        self.out.close()


def _json_value(value: Any) -> Any:
    """Values of Parquet that JSON lacks: bytes as UTF-8 text, everything else as its text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class JsonRows(_Rows):
    """JSON lines of rows."""

    def write(self, payload: Any, kept: Bools) -> None:
        import orjson

        lines = [
            orjson.dumps(row, default=_json_value, option=orjson.OPT_APPEND_NEWLINE)
            for row in self.source.rows(payload, kept)
        ]
        self.out.write(b"".join(lines))


class CsvRows(_Rows):
    """CSV of rows.

    The columns are all that any kept row has, in order of appearance; nested values as JSON.
    """

    def __init__(self, source: Any, out: Output, delimiter: str, passes: Passes) -> None:
        super().__init__(source, out)
        names: dict[str, None] = {}
        for payload, kept in passes:
            for row in source.rows(payload, kept):
                names.update(dict.fromkeys(row))
        self.columns = list(names)
        self.delimiter = delimiter
        if names:
            self._write([self.columns])

    def _write(self, rows: list[list[Any]]) -> None:
        import csv
        import io

        text = io.StringIO(newline="")
        writer = csv.writer(
            text, delimiter=self.delimiter, lineterminator="\r\n"
        )  # so CR is quoted, as LF is
        for row in rows:
            writer.writerow(row)
            text.seek(text.tell() - 2)
            text.write("\n")
            text.truncate()
        self.out.write(text.getvalue().encode("utf-8", "surrogatepass"))

    def write(self, payload: Any, kept: Bools) -> None:
        self._write(
            [[_cell(row.get(name)) for name in self.columns] for row in self.source.rows(payload, kept)]
        )


def _cell(value: Any) -> Any:
    if isinstance(value, (dict, list, bool)):
        import json

        return json.dumps(value, ensure_ascii=False, default=_json_value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value


class ParquetRows:
    """Parquet of rows; the schema is the union of all kept rows' types, widened where that loses nothing."""

    def __init__(self, source: Any, path: str, temporary: str, passes: Passes) -> None:
        from simindex.workflows.io.parquet import arrow

        self._pa = arrow()
        self.source, self.path, self.temporary = source, path, temporary
        schema = self._pa.schema([])
        for payload, kept in passes:
            rows = list(source.rows(payload, kept))
            if rows:
                schema = self._unified(schema, self._infer(rows))
        self.schema = schema
        try:
            self._writer: Any = self._pa.parquet.ParquetWriter(temporary, schema, compression="zstd")
        except self._pa.ArrowNotImplementedError as error:
            raise FeatureError(f"{path}: Parquet cannot hold these rows: {error}") from error

    def _infer(self, rows: list[dict[str, Any]]) -> Any:
        names = list(dict.fromkeys(name for row in rows for name in row))
        pa = self._pa
        try:
            return pa.schema([(name, pa.array([row.get(name) for row in rows]).type) for name in names])
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise FeatureError(f"{self.path}: the rows do not fit one Parquet schema: {error}") from error

    def _unified(self, a: Any, b: Any) -> Any:
        try:
            return self._pa.unify_schemas([a, b], promote_options="permissive")
        except (self._pa.ArrowInvalid, self._pa.ArrowTypeError) as error:
            raise FeatureError(f"{self.path}: the rows do not fit one Parquet schema: {error}") from error

    def write(self, payload: Any, kept: Bools) -> None:
        rows = list(self.source.rows(payload, kept))
        for start in range(0, len(rows), GROUP_ROWS):
            part = rows[start : start + GROUP_ROWS]
            self._writer.write_table(self._pa.Table.from_pylist(part, schema=self.schema))

    def seal(self) -> None:
        self._writer.close()
        with open(self.temporary, "rb+") as file:
            os.fsync(file.fileno())

    def finish(self) -> None:
        os.replace(self.temporary, self.path)
        sync_folder(self.path)

    def close(self) -> None:
        self._writer.close()
