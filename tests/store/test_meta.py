"""The identity record: frozen bytes, and every way in which it can be wrong."""

import json
import zlib
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simindex.errors import CorruptStore, EngineMismatch, FormatTooNew, NotAStore, SimindexError
from simindex.store.meta import Identity

PLAIN = Identity(created_by="0.1.0", page_bytes=4096, created=1_790_000_000, byte_order="little")


def test_the_stored_form_is_frozen(golden):
    frozen = golden("identity_1.bin")
    identity = replace(PLAIN, settings={"a": 1, "ü": [2]})
    assert identity.encode() == frozen
    assert Identity.decode(frozen, "x") == identity


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@given(
    st.text(),
    st.integers(1, 2**31),
    st.integers(0, 2**40),
    st.dictionaries(st.text(), json_values, max_size=4),
)
def test_what_is_stored_is_read_back(created_by, page_bytes, created, settings):
    identity = Identity(created_by, page_bytes, created, settings=settings)
    assert Identity.decode(identity.encode(), "x") == identity


@given(st.integers(0, len(PLAIN.encode()) - 1), st.integers(1, 255))
@example(11, 1)  # format 0
def test_a_changed_byte_is_never_read_as_an_identity(at, change):
    value = bytearray(PLAIN.encode())
    value[at] ^= change
    with pytest.raises(SimindexError):
        Identity.decode(bytes(value), "a.simdb")


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_not_a_store(value):
    with pytest.raises(NotAStore, match=r"a\.simdb: an LMDB file, but not"):
        Identity.decode(value, "a.simdb")


def test_a_newer_format_is_refused_before_anything_else_is_read():
    value = bytearray(PLAIN.encode())
    value[8:12] = (7).to_bytes(4, "big")
    with pytest.raises(FormatTooNew, match="format 7, this version reads 1 to 1: upgrade"):
        Identity.decode(bytes(value[:16]), "x")


def test_another_engine_is_refused_with_both_names():
    with pytest.raises(EngineMismatch, match=r"lmdb-1\.0.*lmdb-0\.9"):
        Identity.decode(replace(PLAIN, engine="lmdb-1.0").encode(), "x")


@pytest.mark.parametrize("body", [b"[]", b"{}", b"no json", b'{"created_by": 1}'])
def test_a_record_with_a_right_checksum_but_wrong_contents_is_corrupt(body):
    value = PLAIN.encode()[:12] + zlib.crc32(body).to_bytes(4, "big") + body
    with pytest.raises(CorruptStore, match="cannot be read"):
        Identity.decode(value, "x")


def test_the_record_can_be_read_by_eye():
    assert json.loads(PLAIN.encode()[16:])["created_by"] == "0.1.0"
