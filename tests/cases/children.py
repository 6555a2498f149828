"""What other processes of these tests do: importable by them, whatever the way pytest was started."""

from pathlib import Path
from typing import Any

import simindex


def row(i: int, **more: Any) -> dict[str, Any]:
    """Return an item whose set is its own: no two share half of theirs."""
    return {"key": i, "tags": [i * 3, i * 3 + 1, i * 3 + 2, i * 3 + 3], **more}


def insert_part(path: str | Path, start: int, stop: int, batch: int) -> None:
    with simindex.open(path, timeout=120) as db:
        db["d"].put_many((row(i) for i in range(start, stop)), batch=batch, threads=0)


def keys_found(path: str | Path, i: int) -> list[int]:
    with simindex.open(path) as db:
        return [hit.key for hit in db["d"].search(tags=row(i)["tags"], threshold=1)]
