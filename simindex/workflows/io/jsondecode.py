"""From a block of JSON lines to records: the scanner's fast path, and a full parser for the lines that it
leaves.

`decode_lines` is what both must come to: the plain version, every line by a parser.
"""

import json
from typing import Any

import numpy as np
import orjson

from simindex import kernels
from simindex.types import I64, U8, Packed
from simindex.workflows.io.batch import Bools, Decoded, Labels, Reject, pack_texts

BOM = b"\xef\xbb\xbf"
_OK, _BLANK, _MISSING, _NULL = (
    kernels.JSON_OK,
    kernels.JSON_BLANK,
    kernels.JSON_MISSING,
    kernels.JSON_NULL,
)
_STRING, _NUMBER, _ABSENT = kernels.LABEL_STRING, kernels.LABEL_NUMBER, kernels.LABEL_ABSENT


def decode_block(payload: bytes, field: str, key: str | None, is_start: bool) -> Decoded:
    """Return the records of a block of whole lines. is_start: it begins the file, so a BOM may lead it."""
    label = None if key is None else key.encode("utf-8", "surrogatepass")
    data = np.frombuffer(payload, np.uint8)
    name = field.encode("utf-8", "surrogatepass")
    lines = kernels.scan_jsonl(data, name, label, final=True, first=is_start)
    status = lines.status
    if len(status) == 0 and payload:  # nothing but a BOM: a blank line
        return decode_lines(payload, field, key, is_start)
    if (status == _OK).all():
        labels = None if key is None else _scanned_labels(payload, data, lines, None)
        present = np.ones(len(status), np.bool_)
        columns = (field,) if len(status) else ()
        return Decoded(Packed(lines.text, lines.offsets), present, labels, len(status), None, [], columns)
    return _decode_rest(payload, data, lines, field, key)


def _decode_rest(payload: bytes, data: U8, lines: Any, field: str, key: str | None) -> Decoded:
    status = lines.status
    accepted: Bools = (status == _OK) | (status == _MISSING) | (status == _NULL)
    present: Bools = status == _OK
    parsed: dict[int, dict[str, Any]] = {}
    rejects: list[Reject] = []
    for i in np.flatnonzero(~accepted & (status != _BLANK)).tolist():
        line = payload[lines.start[i] : lines.end[i]]
        try:
            parsed[i] = checked(load_object(line), field)
        except ValueError as error:
            rejects.append(Reject(i, str(error), line))
            continue
        accepted[i] = True
        present[i] = parsed[i].get(field) is not None
    texts = _with_parsed(lines.text, lines.offsets, parsed, field)
    offsets = np.concatenate(
        [texts.offsets[:1], texts.offsets[1:][accepted]]
    )  # a line without text has no length
    has_field = present.any() or (status == _NULL).any() or any(field in record for record in parsed.values())
    columns = (field,) if has_field else _columns(payload, lines, accepted)
    labels: list[Any] | Labels | None = None
    if key is not None and parsed:
        labels = _parsed_labels(payload, lines, accepted, parsed, key)
    elif key is not None:
        labels = _scanned_labels(payload, data, lines, accepted)
    everything = None if accepted.all() else accepted
    return Decoded(
        Packed(texts.data, offsets), present[accepted], labels, len(status), everything, rejects, columns
    )


def _with_parsed(text: U8, offsets: I64, parsed: dict[int, dict[str, Any]], field: str) -> Packed:
    """Return the scanned texts with those of parsed lines put in."""
    lengths = np.diff(offsets)
    parts: list[Any] = []
    at = 0
    for i, record in parsed.items():
        value = record.get(field)
        if value is None:
            continue
        extra = encode(value)
        parts += [text[at : offsets[i]], np.frombuffer(extra, np.uint8)]
        at = int(offsets[i])
        lengths[i] = len(extra)
    if not parts:
        return Packed(text, offsets)
    ends = np.zeros(len(offsets), np.int64)
    np.cumsum(lengths, out=ends[1:])
    return Packed(np.concatenate([*parts, text[at:]]), ends)


def _columns(payload: bytes, lines: Any, accepted: Bools) -> tuple[str, ...]:
    """Return the names in the first record, for the message about a field that none has."""
    first = np.flatnonzero(accepted)
    if len(first) == 0:
        return ()
    return tuple(map(str, load_object(payload[lines.start[first[0]] : lines.end[first[0]]])))


def _scanned_labels(payload: bytes, data: U8, lines: Any, accepted: Bools | None) -> list[Any] | Labels:
    start, end, kind = lines.label_start, lines.label_end, lines.label_kind
    if accepted is not None:
        start, end, kind = start[accepted], end[accepted], kind[accepted]
    if ((kind == _STRING) | (kind == _NUMBER) | (kind == _ABSENT)).all():
        return Labels(data, start, end, kind)
    ranges = zip(start.tolist(), end.tolist(), kind.tolist(), strict=True)
    return [label_of(payload[a:b], what) for a, b, what in ranges]


def _parsed_labels(
    payload: bytes, lines: Any, accepted: Bools, parsed: dict[int, dict[str, Any]], key: str
) -> list[Any]:
    out = []
    for i in np.flatnonzero(accepted).tolist():
        if i in parsed:
            out.append(as_label(parsed[i].get(key)))
        else:
            value = payload[lines.label_start[i] : lines.label_end[i]]
            out.append(label_of(value, int(lines.label_kind[i])))
    return out


def label_of(value: bytes, kind: int) -> str | int | None:
    """Return the label that a JSON value of this kind (of the scanner) is."""
    if kind == _ABSENT:
        return None
    if kind == _STRING:
        return value[1:-1].decode("utf-8", "surrogatepass")
    return as_label(load_object(value))


def label_list(labels: "list[Any] | Labels") -> list[Any]:
    """Return labels as Python objects."""
    if isinstance(labels, list):
        return labels
    ends = zip(labels.start.tolist(), labels.end.tolist(), labels.kind.tolist(), strict=True)
    return [label_of(labels.data[a:b].tobytes(), kind) for a, b, kind in ends]


def load_object(line: bytes) -> Any:
    """Parse one line. orjson first; the standard parser takes what orjson refuses: lone surrogates, NaN,
    bytes that are no UTF-8.

    Raises ValueError with a short reason.
    """
    if line.startswith(BOM):
        line = line[3:]
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as first:
        try:
            return json.loads(line.decode("utf-8", "surrogateescape"))
        except (ValueError, RecursionError):
            raise ValueError(f"not JSON: {first}") from None


def encode(text: str) -> bytes:
    """Return a parsed text as bytes: those that were no UTF-8 as they were, lone surrogates by
    surrogatepass."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def decode_lines(payload: bytes, field: str, key: str | None, is_start: bool) -> Decoded:
    """Decode every line with a parser. Slow; the definition of what decode_block returns."""
    texts: list[str | bytes | None] = []
    labels: list[Any] = []
    rejects: list[Reject] = []
    columns: tuple[str, ...] = ()
    lines = payload.split(b"\n")
    if not lines[-1]:
        lines.pop()
    accepted = np.ones(len(lines), np.bool_)
    for i, line in enumerate(lines):
        if i == 0 and is_start and line.startswith(BOM):
            line = line[3:]
        if not line.strip(b" \t\r\n"):
            accepted[i] = False
            continue
        try:
            record = checked(load_object(line), field)
        except ValueError as error:
            accepted[i] = False
            rejects.append(Reject(i, str(error), line))
            continue
        value = record.get(field)
        texts.append(None if value is None else encode(value))
        if field in record:
            columns = (field,)
        elif len(texts) == 1:
            columns = tuple(map(str, record))
        if key is not None:
            labels.append(as_label(record.get(key)))
    packed, present = pack_texts(texts)
    everything = None if accepted.all() else accepted
    return Decoded(
        packed, present, labels if key is not None else None, len(lines), everything, rejects, columns
    )


def checked(record: Any, field: str) -> dict[str, Any]:
    """Return the record if it is an object whose text is a string, null or missing; else ValueError."""
    if not isinstance(record, dict):
        raise ValueError(f"a JSON object is needed, not {_kind(record)}")
    text = record.get(field)
    if text is not None and not isinstance(text, str):
        raise ValueError(f"field {field!r} must be a string, not {_kind(text)}")
    return record


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    return names.get(type(value), "a number")


def as_label(value: Any) -> str | int | None:
    """Return a JSON value as a label: strings and integers as they are, other values as their JSON text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64:
        return value
    return json.dumps(value, ensure_ascii=False)
