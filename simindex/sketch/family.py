"""What a family of signatures is, and the registry that finds one by name and parameters.

A family turns features into fixed-width bytes and says what agreement between two signatures means. It is
identified by its name (with a frozen version, such as "fastsim/1") and its JSON parameters; both are kept
in a schema.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, ClassVar, Literal, Protocol, TypeVar, overload, runtime_checkable

from simindex.errors import SchemaError, shown
from simindex.types import F64, U8, U16, Array, Features

Params = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Measure:
    """What a family estimates: its name, whether more or less is closer, and its least and greatest value."""

    name: str
    direction: Literal["similarity", "distance"]
    low: float
    high: float


JACCARD = Measure("jaccard", "similarity", 0.0, 1.0)


@runtime_checkable
class Family(Protocol):
    """A way to make signatures. Equal features give equal bytes: any order, batch, thread or machine."""

    name: ClassVar[str]
    measure: ClassVar[Measure]
    scheme: ClassVar[Literal["bands", "chunks", "tables"]]  # how its signatures make bucket keys

    @property
    def params(self) -> Params:
        """All parameters, defaults filled in; JSON values. family(name, params) gives an equal family."""

    @property
    def width(self) -> int:
        """Bytes per signature."""

    def sign(self, features: Features) -> U8:
        """Return signatures: uint8, shape (n, width). Rows whose state is EMPTY or ABSENT are zero."""

    def accept(self, signatures: Array) -> U8:
        """Return ready signatures as bytes, shape (n, width); refuse another width or dtype."""


@runtime_checkable
class SlotFamily(Family, Protocol):
    """A family whose signature is k slots; the similarity alone decides how likely a slot is equal."""

    @property
    def k(self) -> int:
        """Number of slots."""

    @property
    def slot_bits(self) -> int:
        """Bits per slot: 8, 16, 32 or 64."""

    @property
    def slot_bytes(self) -> int:
        """Bytes per slot."""

    def slot_probability(self, s: float) -> float:
        """Return P[a slot is equal] at similarity s."""

    @overload
    def estimate(self, equal: int) -> float: ...
    @overload
    def estimate(self, equal: U16) -> F64: ...
    def estimate(self, equal: int | U16) -> float | F64:
        """Return the similarity estimated from numbers of equal slots."""

    @overload
    def interval(self, equal: int, confidence: float = 0.95) -> tuple[float, float]: ...
    @overload
    def interval(self, equal: U16, confidence: float = 0.95) -> tuple[F64, F64]: ...
    def interval(self, equal: int | U16, confidence: float = 0.95) -> tuple[float | F64, float | F64]:
        """Return the ends of an interval that holds the true similarity with about this confidence."""

    def min_equal(self, threshold: float, sigmas: float = 3.0) -> int:
        """Return the equal slots below which a candidate for `threshold` is discarded."""

    def pass_probability(self, s: float, min_equal: int) -> float:
        """Return P[at least min_equal slots are equal] at similarity s."""


_families: dict[str, Callable[[Params], Family]] = {}
_Class = TypeVar("_Class", bound=type)


def register(name: str) -> Callable[[_Class], _Class]:
    """Class decorator: make a family known by its name. The class is called with its JSON parameters.

    Raises SchemaError if the name is taken: a family's bytes are frozen, so nothing may replace it.
    """

    def enter(cls: _Class) -> _Class:
        if name in _families:
            raise SchemaError(f"family {shown(name)} is registered already, by {_families[name]!r}")
        _families[name] = cls
        return cls

    return enter


def families() -> tuple[str, ...]:
    """Return the names of all families, sorted."""
    return tuple(sorted(_families))


def family(name: str, params: Mapping[str, Any] | None = None) -> Any:
    """Return the family of that name and parameters; missing parameters take their defaults.

    The static type is Any: the caller knows which protocol (Family, SlotFamily) it asked for.
    Raises SchemaError for an unknown name or parameter (naming the nearest valid one) and for values out of
    range.
    """
    if name not in _families:
        raise SchemaError(
            f"unknown family {shown(name)}{nearest(name, families())}: known are {', '.join(families())}"
        )
    return _families[name](dict(params or {}))


def identity(of: Family) -> Params:
    """Return what a schema keeps of a family: {"name": ..., "params": {...}}, JSON values only."""
    return {"name": of.name, "params": of.params}


def nearest(name: object, known: tuple[str, ...]) -> str:
    """Return " (did you mean 'x'?)" for the closest known name, or ""."""
    close = get_close_matches(str(name), known, n=1, cutoff=0.4)
    return f" (did you mean {close[0]!r}?)" if close else ""
