"""The JSON-lines scanner against orjson and the standard parser, on sound, odd and mutated lines."""

import json

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex import kernels
from simindex.kernels.reference import jsonl as twin


def scan(raw: bytes, field="text", label=None, **options):
    return kernels.scan_jsonl(
        np.frombuffer(raw, np.uint8), field.encode(), label and label.encode(), **options
    )


def texts(found) -> list[bytes]:
    whole = found.text.tobytes()
    return [whole[a:b] for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)]


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.one_of(st.sampled_from(["text", "id"]), st.text(max_size=5)), VALUES, max_size=5)
LINES = st.builds(
    lambda value, ascii, indent: json.dumps(value, ensure_ascii=ascii, separators=indent).encode(
        "utf-8", "ignore"
    ),
    st.one_of(OBJECTS, OBJECTS, VALUES),
    st.booleans(),
    st.sampled_from([(",", ":"), (" , ", " :\t"), (", ", ": ")]),
)
PIECES = st.sampled_from([b'"', b"\\", b"\\ud800", b"\\u0041", b"{", b"}", b"[", b",", b":", b"\xff",
                          b"\xed\xa0\x80",
                          b"0", b"-", b".", b"e5", b"1e999", b" ", b"\r", b"\x00", b"\x1f", b"null", b"NaN",
                          b"x",
                          b'"text":"a"', b'"text":1', "é€😀".encode(), b"\xc3",
                          b"\xf4\x90\x80\x80"])  # fmt: skip


@st.composite
def mutated(draw) -> bytes:
    line = draw(LINES)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(line)))
        cut = draw(st.integers(0, 3))
        line = line[:at] + draw(st.one_of(PIECES, st.just(b""))) + line[at + cut :]
    return line.replace(b"\n", b" ")


def check_line(line: bytes) -> None:
    found = scan(line + b"\n")
    assert len(found.status) == 1
    status = int(found.status[0])
    want, _ = twin.scan_line(line, "text")
    try:
        parsed = orjson.loads(line)
    except orjson.JSONDecodeError:
        parsed = None
    if status == kernels.JSON_OK:
        assert parsed["text"].encode() == texts(found)[0]
    else:
        assert texts(found) == [b""]
    if status == kernels.JSON_BROKEN:
        assert not isinstance(parsed, dict)
    if status != kernels.JSON_REFUSED:
        assert status == want
        if status not in (kernels.JSON_BROKEN, kernels.JSON_BLANK):
            assert isinstance(parsed, dict)


@given(mutated())
@settings(max_examples=1000, deadline=None)
def test_a_status_is_what_the_parsers_say(line) -> None:
    check_line(line)


@given(st.lists(mutated(), max_size=6), st.booleans(), st.sampled_from([b"\n", b"\r\n"]))
@settings(max_examples=150, deadline=None)
def test_levels_agree_and_lines_are_independent(lines, final, newline) -> None:
    raw = newline.join(lines)
    results = []
    for level in kernels.dispatch.available():
        with kernels.dispatch.forced(level):
            results.append(scan(raw, label="id", final=final))
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))
    found = results[0]
    ends = raw.split(b"\n")
    whole = ends if final and ends[-1] else ends[:-1]
    assert [raw[a:b] for a, b in zip(found.start, found.end, strict=True)] == whole
    assert [int(scan(line + b"\n").status[0]) for line in whole] == found.status.tolist()
    assert found.consumed == (len(raw) if final else raw.rfind(b"\n") + 1)
    for i, line in enumerate(whole):
        if found.label_kind[i] != kernels.LABEL_ABSENT:
            value = json.loads(raw[found.label_start[i] : found.label_end[i]])
            assert value == json.loads(line)["id"]


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b'{"text": "a"}', kernels.JSON_OK),
        (b" \t\r", kernels.JSON_BLANK),
        (b"", kernels.JSON_BLANK),
        (b"{}", kernels.JSON_MISSING),
        (b'{"a": {"text": "x"}}', kernels.JSON_MISSING),
        (b'{"text": null}', kernels.JSON_NULL),
        (b'{"text": ["a"]}', kernels.JSON_NOT_TEXT),
        (b'{"text": 1.5e3}', kernels.JSON_NOT_TEXT),
        (b'{"text": "a"', kernels.JSON_BROKEN),
        (b'{"text": "a"} x', kernels.JSON_BROKEN),
        (b'{"text": "a",}', kernels.JSON_BROKEN),
        (b'{"text": "\x01"}', kernels.JSON_BROKEN),
        (b'{"text": "\xff"}', kernels.JSON_BROKEN),
        (b'{"text": "\\x"}', kernels.JSON_BROKEN),
        (b'{"text": "a", "b": 01}', kernels.JSON_BROKEN),
        (b'{"text": "a", "b": NaN}', kernels.JSON_BROKEN),
        (b'["text"]', kernels.JSON_BROKEN),
        (b'{"text": "\\ud800"}', kernels.JSON_REFUSED),
        (b'{"text": "a", "text": "b"}', kernels.JSON_REFUSED),
        (b'{"te\\u0078t": "a"}', kernels.JSON_REFUSED),
        (b'{"text": "a", "b": ' + b"[" * 100 + b"]" * 100 + b"}", kernels.JSON_REFUSED),
    ],
)
def test_status_of_a_line(isa, line, status) -> None:
    assert scan(line + b"\n").status.tolist() == [status]
    if status != kernels.JSON_REFUSED:
        check_line(line)


def test_escapes_become_utf8(isa) -> None:
    line = rb'{"text": "\"\\\/\b\f\n\r\t\u00e9\u20ac\ud83d\ude00 plain ' + "é€😀".encode() * 30 + b'"}\n'
    assert texts(scan(line)) == ['"\\/\b\f\n\r\té€😀 plain '.encode() + "é€😀".encode() * 30]


def test_a_byte_order_mark_is_skipped_at_the_start_only() -> None:
    raw = b'\xef\xbb\xbf{"text": "a"}\n'
    assert scan(raw, first=True).status.tolist() == [kernels.JSON_OK]
    assert scan(raw, first=True).start.tolist() == [3]
    assert scan(raw).status.tolist() == [kernels.JSON_BROKEN]
    assert scan(b"\xef\xbb", first=True).consumed == 0


def test_an_unfinished_line_is_left_unless_final() -> None:
    raw = b'{"text": "a"}\n{"text": "b"}'
    assert (scan(raw).consumed, texts(scan(raw))) == (14, [b"a"])
    assert (scan(raw, final=True).consumed, texts(scan(raw, final=True))) == (27, [b"a", b"b"])
    assert scan(b"", final=True).consumed == 0


def test_labels_are_ranges_with_a_kind() -> None:
    raw = b'{"id": "x1", "text": "a"}\n{"id": 17, "text": "b"}\n{"id": "\\n", "text": "c"}\n{"text": "d"}\n'
    found = scan(raw, label="id")
    ranges = [raw[a:b] for a, b in zip(found.label_start, found.label_end, strict=True)]
    assert ranges[:3] == [b'"x1"', b"17", b'"\\n"']
    assert found.label_start[3] == found.label_end[3] == -1
    kinds = [kernels.LABEL_STRING, kernels.LABEL_NUMBER, kernels.LABEL_OTHER, kernels.LABEL_ABSENT]
    assert found.label_kind.tolist() == kinds
