"""From what the user gives for a field to features or signatures, a column (a batch of values) at a time."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from simindex import features, sketch
from simindex.errors import FeatureError
from simindex.index.field import Field
from simindex.types import ABSENT, PRESENT, U8, Features, Packed

_PLAIN = frozenset([str, bytes, list, tuple, set, frozenset, type(None)])
Signed = tuple[U8, U8]  # signatures (n, width), states (n,)


def column_features(field: Field, column: Any, n: int) -> Features | Signed:
    """Return the features of a column, or its ready signatures with their states.

    column: a sequence of values (None: the item has no such field), Packed texts, (hashes, ptr) of sets,
    Features, or signatures: uint8 (n, width) of the field's family; for minhash/1 also datasketch MinHash
    objects or their hash values. Raises FeatureError for anything else, and for signatures where
    verify="exact" needs the features.
    """
    if isinstance(column, Features):
        found: Features | Signed = column
    elif isinstance(column, np.ndarray) and column.ndim == 2:
        found = _signatures(field, column)
    elif isinstance(column, Packed):
        if field.kind != "text":
            raise FeatureError("packed byte strings are texts: this field takes sets of tokens")
        assert field.text is not None
        found = features.text_features_packed(column, field.text)
    elif field.kind == "tokens" and isinstance(column, tuple) and len(column) == 2 and _is_csr(column):
        found = features.set_features_csr(*column)
    else:
        found = _value_list(field, column)
    count = len(found[1]) if isinstance(found, tuple) else len(found)
    if count != n:
        raise FeatureError(f"a column of {count} values in a batch of {n} items")
    return found


def _is_csr(column: tuple[Any, Any]) -> bool:
    return all(isinstance(part, np.ndarray) and part.ndim == 1 and part.dtype.kind in "ui" for part in column)


def _value_list(field: Field, column: Any) -> Features | Signed:
    values: Sequence[Any] = column if isinstance(column, list | tuple) else list(column)
    if not _PLAIN.issuperset(map(type, values)) and any(map(_is_signature, values)):
        return _signature_list(field, values)
    if field.kind == "text":
        assert field.text is not None
        return features.text_features(values, field.text)
    return features.set_features([_members(value) for value in values])


def _is_signature(value: Any) -> bool:
    """A 1-d uint8 array is a signature (token arrays are wider integers); so is a datasketch object."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype == np.uint8
    return hasattr(value, "hashvalues")


def _members(value: Any) -> Any:
    if value is None or isinstance(value, np.ndarray | list | tuple | set | frozenset):
        return value
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise FeatureError(
            f"a set of tokens is an iterable of str, bytes or ints, not {type(value).__name__}"
        )
    return list(value)


def _need_estimate(field: Field) -> None:
    if field.is_exact:
        raise FeatureError(
            'signatures were given, but verify="exact" needs the features themselves: use verify="estimate"'
        )


def _signatures(field: Field, array: Any) -> Signed:
    _need_estimate(field)
    family = field.family
    if array.dtype == np.uint8 and array.shape[1] == family.width:
        return np.ascontiguousarray(array), np.full(len(array), PRESENT, np.uint8)
    if field.family_name == "minhash/1" and array.dtype.kind == "u" and array.shape[1] == family.k:
        return _from_datasketch(field, array)
    raise FeatureError(
        f"signatures of {field.family_name} here are uint8 of shape (n, {family.width}), "
        f"not {array.dtype} of shape {array.shape}"
    )


def _from_datasketch(field: Field, given: Any) -> Signed:
    params = field.params
    if params.get("scheme", "simindex") == "simindex":
        raise FeatureError(
            f"datasketch sketches need a field that names their scheme, {_settings_for(given)}; "
            "this field's is 'simindex'"
        )
    family, signatures, states = sketch.from_datasketch(
        given, params["scheme"], params["seed"], params["slots"]
    )
    if family.params != params:
        raise FeatureError(f"datasketch sketches have {family.params}: this field has {params}")
    return signatures, states


def _settings_for(given: Any) -> str:
    """Return the settings that fit the first of some datasketch objects, as they are written in a call."""
    if isinstance(given, np.ndarray):
        return "scheme='affine32', 'affine64' or 'legacy' (before datasketch 2.0)"
    one = given[0]
    scheme, seed = getattr(one, "scheme", "legacy"), getattr(one, "seed", 1)
    return f"here scheme={scheme!r}, seed={seed}, k={len(one.hashvalues)}"


def _signature_list(field: Field, values: Sequence[Any]) -> Signed:
    _need_estimate(field)
    rows = np.zeros((len(values), field.family.width), np.uint8)
    states = np.full(len(values), PRESENT, np.uint8)
    objects: list[int] = []
    for i, value in enumerate(values):
        if value is None:
            states[i] = ABSENT
        elif isinstance(value, np.ndarray):
            if value.dtype != np.uint8 or value.shape != (field.family.width,):
                raise FeatureError(
                    f"a signature here is uint8 of shape ({field.family.width},), "
                    f"not {value.dtype} of shape {value.shape}"
                )
            rows[i] = value
        elif hasattr(value, "hashvalues"):
            objects.append(i)
        else:
            raise FeatureError(f"signatures and {type(value).__name__} in one batch: give one kind")
    if objects:
        if field.family_name != "minhash/1":
            raise FeatureError(
                f"datasketch MinHash objects need family='minhash/1': this field's is {field.family_name!r}"
            )
        rows[objects], states[objects] = _from_datasketch(field, [values[i] for i in objects])
    return rows, states
