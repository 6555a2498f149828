"""Check."""

from collections.abc import Iterator
from typing import Any


class Finding: ...


def check(store: Any) -> Iterator[Any]:
    yield from ()
