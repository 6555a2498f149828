"""Messages about unknown names, with the nearest valid one."""

from collections.abc import Iterable
from difflib import get_close_matches

from simindex.errors import shown


def unknown(what: str, name: object, valid: Iterable[str]) -> str:
    """Return "unknown WHAT 'name': did you mean 'nearest'? (valid: ...)".

    The nearest name is left out where none is near, the list where it is empty.
    """
    names = sorted(valid)
    near = get_close_matches(name[:200], names, n=1, cutoff=0.5) if isinstance(name, str) else []
    hint = f": did you mean {near[0]!r}?" if near else ""
    known = f" (valid: {', '.join(names)})" if names else ""
    return f"unknown {what} {shown(name, 80)}{hint}{known}"
