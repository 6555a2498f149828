from typing import NamedTuple

from simindex.types import I64, U8

JSON_OK: int
JSON_BLANK: int
JSON_MISSING: int
JSON_NULL: int
JSON_NOT_TEXT: int
JSON_BROKEN: int
JSON_REFUSED: int
LABEL_ABSENT: int
LABEL_STRING: int
LABEL_NUMBER: int
LABEL_OTHER: int

class JsonLines(NamedTuple):
    consumed: int
    start: I64
    end: I64
    status: U8
    text: U8
    offsets: I64
    label_start: I64
    label_end: I64
    label_kind: U8

def _select(level: int) -> None: ...
def scan_jsonl(
    data: U8, field: bytes, label: bytes | None = None, *, final: bool = False, first: bool = False
) -> JsonLines: ...
