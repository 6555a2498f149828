"""Opening files and reading keys as the command line gives them."""

import os
from typing import Any

import typer


def open_for_writing(path: str) -> Any:
    """Return the open database; unlike simindex.open it makes no new file. Raises OpenError if there is
    none."""
    import simindex
    from simindex.errors import OpenError

    if not os.path.exists(path):
        raise OpenError(f"{path}: no such file; 'simindex create' makes one")
    return simindex.open(path)


def parse_key(kind: str, text: str) -> str | bytes | int:
    """Return a key of the collection's type from the command line's text. Raises a usage error."""
    if kind == "str":
        return text
    if kind == "bytes":
        return os.fsencode(text)
    if not text.isdecimal():
        raise typer.BadParameter(f"key {text!r}: this collection's keys are integers from 0")
    return int(text)
