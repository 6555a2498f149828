"""A collection's schema: its key type and its fields, as stored, as compared."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgpack

from simindex.errors import CorruptStore, FormatTooNew, SchemaError, shown
from simindex.index.field import Field
from simindex.index.keys import KeyKind, check_kind
from simindex.index.spelling import unknown

SCHEMA_FORMAT = 1
RESERVED = frozenset(
    [
        "key",
        "score",
        "k",
        "threshold",
        "radius",
        "where",
        "params",
        "recall",
        "exact",
        "plan",
        "budget",
        "field",
        "accept",
        "attributes",
    ]
)
MAX_FIELDS = 1024
MAX_NAME_BYTES = 255
_FIELD_NAME = re.compile(r"[^\W\d]\w*\Z")


@dataclass(frozen=True)
class Schema:
    """name: the collection's. key: the type of its keys. fields: name to Field, in the order given; number i
    + 1 in the store.
    """

    name: str
    key: KeyKind
    fields: Mapping[str, Field]

    @classmethod
    def build(cls, name: object, fields: object, key: object = "str") -> "Schema":
        """Return a checked schema. Raises SchemaError that names what is wrong."""
        if not isinstance(fields, Mapping) or not fields:
            raise SchemaError(
                "fields must be a mapping of at least one name to a field, such as {'body': simindex.text()}"
            )
        if len(fields) > MAX_FIELDS:
            raise SchemaError(f"{len(fields)} fields: at most {MAX_FIELDS}")
        for field_name, field in fields.items():
            _check_field_name(field_name)
            if not isinstance(field, Field):
                raise SchemaError(
                    f"field {field_name!r} is {type(field).__name__}: use simindex.text(...) or tokens(...)"
                )
        schema = cls(check_name(name), check_kind(key), dict(fields))
        schema.columns  # noqa: B018  (sources are checked here)
        return schema

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Field name to its number in the store."""
        return {name: i + 1 for i, name in enumerate(self.fields)}

    @cached_property
    def searches(self) -> dict[Any, Any]:
        """Searches that were checked already (request.build_search)."""
        return {}

    @cached_property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """Column name to the fields that it feeds."""
        fed: dict[str, list[str]] = {}
        for name, field in self.fields.items():
            column = field.source or name
            if column in RESERVED:
                raise SchemaError(f"field {shown(name)}: source {column!r} is a reserved name")
            if column != name and column in self.fields and self.fields[column].source not in (None, column):
                raise SchemaError(
                    f"field {shown(name)}: its source {column!r} is a field that reads another column"
                )
            fed.setdefault(column, []).append(name)
        return {column: tuple(names) for column, names in fed.items()}

    @cached_property
    def kept(self) -> frozenset[str]:
        """Columns whose value is stored among the attributes (keep=True)."""
        return frozenset(c for c, names in self.columns.items() if any(self.fields[n].keep for n in names))

    def field(self, name: str) -> Field:
        """Return the field of that name; raises SchemaError with the nearest name."""
        try:
            return self.fields[name]
        except (KeyError, TypeError):
            raise SchemaError(unknown(f"field of collection {self.name!r}", name, self.fields)) from None

    def only_field(self) -> str:
        """Return the name of the only field; raises SchemaError if there are several."""
        if len(self.fields) == 1:
            return next(iter(self.fields))
        raise SchemaError(
            f"collection {self.name!r} has several fields: name one of {', '.join(self.fields)} with field="
        )

    def describe(self) -> str:
        """Return the schema in words, with each field's expected recall."""
        lines = [f"collection {self.name!r}, keys {self.key}"]
        return "\n".join(lines + [field.describe(name) for name, field in self.fields.items()])

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain data, as it is stored."""
        return {
            "format": SCHEMA_FORMAT,
            "name": self.name,
            "key": self.key,
            "fields": [{"name": name, **field.to_dict()} for name, field in self.fields.items()],
        }

    def to_bytes(self) -> bytes:
        """Return the schema's stored form (msgpack of to_dict)."""
        packed: bytes = msgpack.packb(self.to_dict(), use_bin_type=True)
        return packed

    @classmethod
    def from_bytes(cls, data: bytes) -> "Schema":
        """Return the schema stored as these bytes. Raises FormatTooNew or CorruptStore."""
        try:
            stored = msgpack.unpackb(bytes(data), raw=False, strict_map_key=False)
            version = stored["format"]
        except (ValueError, KeyError, TypeError, msgpack.UnpackException) as error:
            raise CorruptStore(f"a stored schema cannot be read: {error}") from error
        if version != SCHEMA_FORMAT:
            raise FormatTooNew(
                f"schema of format {version}: this version reads format {SCHEMA_FORMAT}; upgrade simindex"
            )
        fields = {entry["name"]: Field.from_dict(entry) for entry in stored["fields"]}
        return cls(stored["name"], check_kind(stored["key"]), fields)

    def check_same(self, asked: "Schema") -> None:
        """Raise SchemaError that names the first setting in which the asked schema differs from this stored
        one.
        """
        for path, stored, wanted in differences(self, asked):
            raise SchemaError(
                f"collection {self.name!r} exists with other settings: "
                f"{path} is {stored!r} in the store, {wanted!r} was asked"
            )


def differences(stored: Schema, asked: Schema) -> Iterator[tuple[str, Any, Any]]:
    """Yield (setting, stored value, asked value) for all that differs; what `force` accepted is no
    difference.
    """
    if stored.key != asked.key:
        yield "key", stored.key, asked.key
    if list(stored.fields) != list(asked.fields):
        yield "fields", list(stored.fields), list(asked.fields)
    for name, field in stored.fields.items():
        if name not in asked.fields:
            continue
        one, other = field.to_dict(), asked.fields[name].to_dict()
        tuned_alike = one["recall"] is not None and one["recall"] == other["recall"]
        for setting, value in one.items():
            wanted = other[setting]
            if value == wanted or setting == "forced" or (setting in ("bands", "sigmas") and tuned_alike):
                continue
            if isinstance(value, dict) and isinstance(wanted, dict):
                inner = next(k for k in [*value, *wanted] if value.get(k) != wanted.get(k))
                yield f"field {shown(name)}: {inner}", value.get(inner), wanted.get(inner)
            else:
                yield f"field {shown(name)}: {setting}", value, wanted


def check_name(name: object) -> str:
    """Return a collection's name. Raises SchemaError: not a str, empty, over 255 bytes, or with control
    characters.
    """
    if not isinstance(name, str) or not name:
        raise SchemaError(f"collection name {shown(name)}: give a str that is not empty")
    if (
        any(ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 for c in name)
        or len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES
    ):
        raise SchemaError(
            f"collection name {shown(name)}: at most {MAX_NAME_BYTES} bytes of UTF-8, no control characters"
        )
    return name


def _check_field_name(name: object) -> None:
    if not isinstance(name, str) or not _FIELD_NAME.match(name) or len(name) > 64:
        raise SchemaError(
            f"field name {shown(name)}: use letters, digits and _, not beginning with a digit, at most 64"
        )
    if name in RESERVED:
        raise SchemaError(f"field name {shown(name)} is reserved (reserved: {', '.join(sorted(RESERVED))})")
