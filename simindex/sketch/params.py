"""Reading a family's JSON parameters, with errors that name the parameter, its value and what is valid."""

from collections.abc import Sequence
from typing import Any

from simindex.errors import SchemaError, shown
from simindex.sketch.family import nearest


def check_names(of: str, params: dict[str, Any], known: Sequence[str]) -> None:
    """Raise SchemaError for a parameter that `of` does not have."""
    for name in params:
        if name not in known:
            raise SchemaError(
                f"{of} has no parameter {name!r}{nearest(name, tuple(known))}: it has {', '.join(known)}"
            )


def integer(of: str, name: str, value: Any, low: int, high: int) -> int:
    """Return value as an int in low..high. Booleans, floats and strings are refused."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise SchemaError(f"{of}: {name} is {shown(value)}, not an integer")
    number = int(value.__index__())
    if not low <= number <= high:
        raise SchemaError(f"{of}: {name} is {shown(number)}: it is {low} to {high}")
    return number


def choice(of: str, name: str, value: Any, valid: Sequence[Any]) -> Any:
    """Return value if it is one of `valid` and of the same type."""
    for one in valid:
        if type(value) is type(one) and value == one:
            return one
    listed = ", ".join(map(repr, valid))
    hint = nearest(value, tuple(valid)) if all(isinstance(v, str) for v in valid) else ""
    raise SchemaError(f"{of}: {name} is {shown(value)}{hint}: it is one of {listed}")
