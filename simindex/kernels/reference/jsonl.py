"""Plain twin of _jsonl: the standard parser, line by line. It refuses nothing but what parsers disagree
about."""

import json
from typing import Any

OK, BLANK, MISSING, NULL, NOT_TEXT, BROKEN, REFUSED = range(7)


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def scan_line(line: bytes, field: str) -> tuple[int, str | None]:
    """Return the status of a line and its text, if it has one."""
    if not line.strip(b" \t\r\n"):
        return BLANK, None
    try:
        pairs = json.loads(line.decode(), object_pairs_hook=list, parse_constant=_constant)
    except (ValueError, RecursionError):
        return BROKEN, None
    if not line.strip(b" \t\r\n").startswith(b"{"):
        return BROKEN, None
    values = [value for key, value in pairs if key == field]
    if not values:
        return MISSING, None
    if len(values) > 1:
        return REFUSED, None
    value = values[0]
    if value is None:
        return NULL, None
    if not isinstance(value, str):
        return NOT_TEXT, None
    try:
        value.encode()
    except UnicodeEncodeError:
        return REFUSED, None
    return OK, value
