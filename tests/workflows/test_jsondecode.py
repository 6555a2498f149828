"""The scanner's fast path gives what a full parser gives, line by line."""

import json
import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simindex.workflows.io import Decoded, label_list
from simindex.workflows.io.jsondecode import decode_block, decode_lines

LINES = [
    b'{"text": "one", "id": "a"}',
    b'{"id": 7, "text": "two"}\r',
    b"",
    b" \t",
    b'{"id": "\\u00e9", "text": "\\ud835 lone"}',
    b'{"text": null, "id": null}',
    b'{"id": 1.50}',
    b'{"text": 5}',
    b'{"text": "a", "text": "b", "id": 1, "id": 2}',
    b'{"text": "\xff", "id": "\xe4\xb8\xad"}',
    b"{broken",
    b"[]",
    b"nonsense",
    b'{"text": NaN}',
    b'{"n": NaN, "text": "x", "id": 18446744073709551615}',
    b'{"text": "x", "id": 18446744073709551616}',
    b'{"text": "x", "id": -1}',
    b'{"text": "x", "id": {"a": [1, "\\n"]}}',
    b'{"te\\u0078t": "escaped name"}',
    b'{"text": "' + b"long " * 50 + b'", "id": 300}',
]


def as_plain(found: Decoded) -> Any:
    raw, ends = found.texts.data.tobytes(), found.texts.offsets.tolist()
    return (
        [raw[a:b] for a, b in pairwise(ends)],
        found.present.tolist(),
        None if found.labels is None else label_list(found.labels),
        found.lines,
        None if found.accepted is None else found.accepted.tolist(),
        found.rejects,
    )


def same(payload: bytes, key: str | None = "id", is_start: bool = True) -> None:
    fast, slow = (make(payload, "text", key, is_start) for make in (decode_block, decode_lines))
    assert as_plain(fast) == as_plain(slow)
    assert fast.columns == slow.columns


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:30].decode("latin-1"))
def test_each_kind_of_line_alone_and_among_others(line: bytes) -> None:
    good = b'{"text": "good one", "id": "g"}\n'
    for payload in (line, line + b"\n", good + line, good + line + b"\n" + good, line + b"\n" + line + b"\n"):
        same(payload)
        same(payload, None)
        same(b"\xef\xbb\xbf" + payload)


def test_random_mixtures_of_lines() -> None:
    chance = random.Random(3)
    for _ in range(300):
        same(b"\n".join(chance.choices(LINES, k=chance.randrange(30))) + chance.choice([b"", b"\n"]))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(
        st.one_of(
            st.dictionaries(
                st.sampled_from(["text", "id", "x", "texts"]),
                st.one_of(
                    st.none(), st.text(), st.integers(), st.floats(), st.lists(st.integers()), st.booleans()
                ),
            ).map(lambda value: json.dumps(value).encode()),
            st.binary(max_size=30).map(lambda raw: raw.replace(b"\n", b"")),
        ),
        max_size=8,
    )
)
def test_any_lines(lines: list[bytes]) -> None:
    same(b"\n".join(lines))


def test_fast_labels_stay_in_place() -> None:
    found = decode_block(
        b'{"id": "a", "text": "x"}\n{"id": 5, "text": "y"}\n{"text": "z"}\n', "text", "id", True
    )
    assert not isinstance(found.labels, list)
    assert found.labels is not None
    assert label_list(found.labels) == ["a", 5, None]
    assert found.texts.offsets.dtype == np.int64
