"""Every exception of the package, grouped by when it happens; how messages show a value. Imports none of it.

`SimindexError` catches them all. Bad arguments are also ValueError (KeyExists and missing keys also
KeyError), so callers who know only Python's own exceptions are served as well.
"""

import reprlib

_brief = reprlib.Repr()
_brief.maxlevel, _brief.maxother, _brief.maxstring, _brief.maxlong = 3, 100, 100, 100


def shown(value: object, most: int = 60) -> str:
    """Return a value for a message: its repr, cut to a readable length. Never raises, whatever the value is:
    none may turn a clear refusal into another error.
    """
    if isinstance(value, str | bytes | bytearray):
        value = value[: most + 1]
    try:
        text = _brief.repr(value)
    except Exception:  # the repr of a foreign class may do anything
        return f"<{type(value).__name__}>"
    return text if len(text) <= most else f"{text[: most - 3]}..."


class SimindexError(Exception):
    """Any error of simindex."""


# Opening ----------------------------------------------------------------------------------------------------


class OpenError(SimindexError):
    """The store cannot be opened; nothing was written."""


class NotAStore(OpenError):
    """The file is not a simindex store, or is cut short."""


class FormatTooNew(OpenError):
    """The store was written by a newer format than this version reads."""


class EngineMismatch(OpenError):
    """The file belongs to another LMDB engine than the one that this version uses."""


class UnsafeFileSystem(OpenError):
    """The file lies on a network file system, where memory maps and locks cannot be trusted."""


class Locked(OpenError, TimeoutError):
    """Another process held the store's write lock for longer than the timeout; the message names it."""


class CorruptStore(SimindexError):
    """Stored bytes contradict their checksum or each other."""


# Writing ----------------------------------------------------------------------------------------------------


class WriteError(SimindexError):
    """A write was refused or failed; nothing of its transaction was stored."""


class DiskFull(WriteError, OSError):
    """The file system has no room; the store stays readable and deletes still work."""


class QuotaReached(WriteError):
    """The store reached `max_bytes`; the store stays readable and deletes still work."""


class MapFull(WriteError):
    """The memory map filled up in the middle of a transaction; the next one finds a larger map: repeat it.

    Rare (room is made before a batch begins), and handled inside the store where the batch can be repeated.
    """


class KeyExists(WriteError, KeyError):
    """`insert` met a key that is stored already."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class Poisoned(WriteError):
    """An earlier commit failed in a way that leaves this handle's view in doubt: close and open again."""


class ReadOnly(WriteError):
    """The store was opened with mode="r"."""


class Closed(SimindexError, ValueError):
    """The database, collection, snapshot or transaction was used after it was closed."""


# Meaning ----------------------------------------------------------------------------------------------------


class SchemaError(SimindexError, ValueError):
    """A schema, field or setting is wrong, or contradicts the stored one; the message gives both values."""


class NoSuchCollection(SchemaError, KeyError):
    """No collection of that name."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class FeatureError(SimindexError, ValueError):
    """A value cannot be turned into features (wrong type, shape or range)."""


class KeyTypeError(FeatureError, TypeError):
    """A key is not of the collection's key type."""


class QueryError(SimindexError, ValueError):
    """A search or a statement is wrong.

    text, start, stop: the statement and the span at fault, when there is one; str() draws a caret below it.
    """

    def __init__(
        self, message: str, text: str | None = None, start: int = 0, stop: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.start = start
        self.stop = stop if stop is not None else start + 1

    def __str__(self) -> str:
        if self.text is None:
            return self.message
        line_start = self.text.rfind("\n", 0, self.start) + 1
        line_end = self.text.find("\n", self.start)
        line = self.text[line_start : len(self.text) if line_end < 0 else line_end]
        width = max(1, min(self.stop, line_start + len(line)) - self.start)
        return f"{self.message}\n  {line}\n  {' ' * (self.start - line_start)}{'^' * width}"
