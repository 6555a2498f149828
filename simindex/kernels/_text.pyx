# cython: language_level=3
"""Text and sets to 64-bit hashes: h64/1, word and character shingles, tokens of Python sets.

csrc/hash64.h, shingle.h, clean.h and tokens.h state what is frozen; kernels/reference/text.py says it
plainly.
"""

cimport cython
from cpython.bytes cimport PyBytes_AsString, PyBytes_Size
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

import numpy as np

from simindex.errors import FeatureError

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    int PyBuffer_FillInfo(Py_buffer *view, object owner, void *p, Py_ssize_t n, int readonly,
                          int flags) except -1
    unsigned long long PyLong_AsUnsignedLongLong(object value) except? 0xFFFFFFFFFFFFFFFF

cdef extern from "rows.h" nogil:
    int64_t si_bad_offset(const int64_t *ptr, int64_t n, int64_t m)

cdef extern from "text.h" nogil:
    ctypedef struct si_hashes:
        uint64_t *hash
        size_t n
        size_t room
    ctypedef struct si_text:
        pass
    const char *SI_UNICODE_VERSION
    int SI_SHINGLE_MAX
    uint64_t si_mix64(uint64_t x)
    uint64_t si_hash64(const uint8_t *p, size_t n, uint64_t seed)
    si_text *si_text_new(int kind, int n, int normalize, int casefold)
    void si_text_keep(si_text *s)
    int64_t si_text_feed(si_text *s, const uint8_t *p, size_t n, int final, si_hashes *out)
    int si_text_end(si_text *s, si_hashes *out)
    int si_text_batch(si_text *s, const uint8_t *data, const int64_t *offsets, int64_t n, si_hashes *out,
                      int64_t *ptr, uint8_t *state)
    int si_hashes_need(si_hashes *out, size_t more)
    void si_text_select(int level)

UNICODE_VERSION = SI_UNICODE_VERSION.decode("ascii")
MAX_SHINGLE = SI_SHINGLE_MAX

# Seeds of the hashes of set members, so that "a" and b"a" are two things. Frozen since tokens/1.
STR_SEED = 0
BYTES_SEED = 1


def _select(int level):
    """Choose the instruction-set level of this module's kernels (see kernels/dispatch.py)."""
    si_text_select(level)


cdef int _check_packed(const uint8_t[::1] data, const int64_t[::1] offsets) except -1:
    """Raise FeatureError unless the offsets lie in the data and never fall."""
    cdef int64_t i, before
    if offsets.shape[0] < 1:
        raise FeatureError("offsets is empty: n strings have n + 1 offsets")
    before = 0
    for i in range(offsets.shape[0]):
        if offsets[i] < before or offsets[i] > data.shape[0]:
            raise FeatureError(f"offsets[{i}] is {offsets[i]}: offsets never fall and lie between 0 and "
                               f"{data.shape[0]}, the length of data")
        before = offsets[i]
    return 0


cdef int _check_settings(int kind, int n, int normalize) except -1:
    if kind != 0 and kind != 1:
        raise FeatureError(f"kind is {kind}: 0 is words, 1 is chars")
    if n < 1 or n > SI_SHINGLE_MAX:
        raise FeatureError(f"n is {n}: a shingle has 1 to {SI_SHINGLE_MAX} words or characters")
    if normalize < 0 or normalize > 2:
        raise FeatureError(f"normalize is {normalize}: 0 is none, 1 is nfc, 2 is nfkc")
    return 0


cdef class _Owner:
    """Memory of hashes that an array views, freed with it."""

    cdef uint64_t *hash
    cdef size_t n

    def __dealloc__(self):
        free(self.hash)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.hash, <Py_ssize_t>(self.n * 8), 0, flags)


cdef object _take(si_hashes *found):
    """Return the hashes as an array that owns them; no copy."""
    cdef size_t n = found.n
    cdef uint64_t *hash = found.hash
    cdef uint64_t *fitted
    cdef _Owner owner
    found.hash = NULL
    found.n = found.room = 0
    if n == 0:
        free(hash)
        return np.empty(0, np.uint64)
    fitted = <uint64_t *>realloc(hash, n * 8)
    owner = _Owner.__new__(_Owner)
    owner.hash = hash if fitted == NULL else fitted
    owner.n = n
    return np.frombuffer(owner, np.uint64)


def hash_bytes(const uint8_t[::1] data not None, const int64_t[::1] offsets not None, uint64_t seed=0):
    """Return h64/1 of n byte strings: uint64, shape (n,).

    data, offsets: types.Packed. Other seeds give other hashes. Frozen (csrc/hash64.h).
    """
    _check_packed(data, offsets)
    cdef int64_t n = offsets.shape[0] - 1, i
    out = np.empty(n, np.uint64)
    if n == 0:
        return out
    cdef uint64_t[::1] hashes = out
    cdef const uint8_t *p = &data[0] if data.shape[0] else NULL
    with nogil:
        for i in range(n):
            hashes[i] = si_hash64(p + offsets[i], <size_t>(offsets[i + 1] - offsets[i]), seed)
    return out


def mix64(const uint64_t[::1] values not None):
    """Return the values mixed by a frozen bijection of 64 bits: uint64, same shape."""
    cdef int64_t n = values.shape[0], i
    out = np.empty(n, np.uint64)
    if n == 0:
        return out
    cdef uint64_t[::1] mixed = out
    with nogil:
        for i in range(n):
            mixed[i] = si_mix64(values[i])
    return out


def shingle_texts(const uint8_t[::1] data not None, const int64_t[::1] offsets not None, int kind, int n,
                  int normalize, bint casefold):
    """Return the shingle hashes of n texts: (hashes uint64[m], ptr int64[n + 1], state uint8[n]).

    data, offsets: UTF-8 (types.Packed); no bytes are refused. kind: 0 words, 1 chars; n: 1 to 64 of them.
    normalize: 0 none, 1 nfc, 2 nfkc. States: EMPTY (no token), PRESENT, SHORTENED (fewer than n tokens: one
    shingle of them all). Hashes stand in text order, repeats and all. features.TextSettings says what a token
    is.
    """
    _check_packed(data, offsets)
    _check_settings(kind, n, normalize)
    cdef int64_t count = offsets.shape[0] - 1
    ptr = np.zeros(count + 1, np.int64)
    state = np.zeros(count, np.uint8)
    if count == 0:
        return np.empty(0, np.uint64), ptr, state
    cdef int64_t[::1] ptr_view = ptr
    cdef uint8_t[::1] state_view = state
    cdef const uint8_t *p = &data[0] if data.shape[0] else NULL
    cdef si_hashes found
    cdef int failed = 0
    cdef int64_t room
    found.hash = NULL
    found.n = found.room = 0
    cdef si_text *text = si_text_new(kind, n, normalize, casefold)
    if text == NULL:
        raise MemoryError
    with nogil:
        room = (offsets[count] - offsets[0]) // (5 if kind == 0 else 1) + 16
        failed = si_hashes_need(&found, <size_t>room)
        if failed == 0:
            failed = si_text_batch(text, p, &offsets[0], count, &found, &ptr_view[0], &state_view[0])
    if failed:
        free(text)
        free(found.hash)
        raise MemoryError
    si_text_keep(text)
    return _take(&found), ptr, state


@cython.final
cdef class TextStream:
    """The shingle hashes of one text fed in pieces: the same hashes for any division, in flat memory.

    Settings as in shingle_texts. Pieces may end inside a character.
    """

    cdef si_text *_text
    cdef bytes _tail
    cdef bint _done

    def __cinit__(self, int kind, int n, int normalize, bint casefold):
        _check_settings(kind, n, normalize)
        self._tail = b""
        self._done = False
        self._text = si_text_new(kind, n, normalize, casefold)
        if self._text == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._text)

    cdef object _run(self, bytes data, bint final):
        cdef si_hashes found
        cdef const uint8_t *p = <const uint8_t *>PyBytes_AsString(data)
        cdef size_t n = <size_t>PyBytes_Size(data)
        cdef int64_t took
        cdef int state = 0
        if self._done:
            raise ValueError("the stream is finished")
        found.hash = NULL
        found.n = found.room = 0
        with nogil:
            took = si_text_feed(self._text, p, n, final, &found)
            if took >= 0 and final:
                state = si_text_end(self._text, &found)
        if took < 0 or state < 0:
            free(found.hash)
            self._done = True
            raise MemoryError
        self._tail = data[took:]
        return _take(&found), state

    def feed(self, data):
        """Take more bytes; return the hashes that became complete (uint64, possibly none)."""
        return self._run(self._tail + bytes(data), False)[0]

    def finish(self):
        """End the text; return (the remaining hashes, its state)."""
        out = self._run(self._tail, True)
        self._done = True
        return out


cdef int _grow(uint8_t **data, size_t *room, size_t need) except -1:
    cdef size_t size = room[0] + room[0] // 2
    if size < need:
        size = need
    cdef uint8_t *p = <uint8_t *>realloc(data[0], size)
    if p == NULL:
        raise MemoryError
    data[0] = p
    room[0] = size
    return 0


def pack_texts(texts):
    """Return texts as UTF-8 in one buffer: (data uint8, offsets int64[n + 1], absent uint8[n]).

    texts: a sequence of str, bytes (taken as they are) or None (absent, no bytes). Lone surrogates are
    encoded as three bytes. Raises FeatureError that names the position of anything else.
    """
    cdef Py_ssize_t n = len(texts), i = 0, size = 0
    offsets = np.zeros(n + 1, np.int64)
    absent = np.zeros(n, np.uint8)
    cdef int64_t[::1] ends = offsets
    cdef uint8_t[::1] missing = absent
    cdef uint8_t *data = NULL
    cdef size_t room = 0, used = 0
    cdef const char *p
    cdef object encoded
    try:
        for text in texts:
            if i >= n:
                raise FeatureError(f"texts has more than the {n} items that its length promised")
            encoded = text
            if isinstance(text, str):
                if text.isascii():
                    p = PyUnicode_AsUTF8AndSize(text, &size)
                else:
                    # Encoded apart: AsUTF8 would keep the copy alive as long as the caller's string.
                    try:
                        encoded = text.encode()
                    except UnicodeEncodeError:
                        encoded = text.encode("utf-8", "surrogatepass")
                    p = PyBytes_AsString(encoded)
                    size = PyBytes_Size(encoded)
            elif isinstance(text, bytes):
                p = PyBytes_AsString(text)
                size = PyBytes_Size(text)
            elif text is None:
                missing[i] = 1
                size = 0
                p = NULL
            else:
                raise FeatureError(f"text {i} is {type(text).__name__}: a text is str, bytes or None")
            if size:
                if used + <size_t>size > room:
                    _grow(&data, &room, used + <size_t>size)
                memcpy(data + used, p, <size_t>size)
                used += <size_t>size
            ends[i + 1] = <int64_t>used
            i += 1
        if i != n:
            raise FeatureError(f"texts has {i} items, fewer than the {n} that its length promised")
        out = np.empty(used, np.uint8)
        if used:
            _copy_out(out, data, used)
    finally:
        free(data)
    return out, offsets, absent


cdef int _copy_out(uint8_t[::1] out, const uint8_t *data, size_t n) except -1:
    memcpy(&out[0], data, n)
    return 0


cdef uint64_t _token(object token, Py_ssize_t item) except? 0:
    """Return the hash of one set member."""
    cdef Py_ssize_t size = 0
    cdef const char *p
    if isinstance(token, str):
        try:
            p = PyUnicode_AsUTF8AndSize(token, &size)
        except UnicodeEncodeError:
            token = token.encode("utf-8", "surrogatepass")
            return si_hash64(<const uint8_t *>PyBytes_AsString(token), <size_t>PyBytes_Size(token), STR_SEED)
        return si_hash64(<const uint8_t *>p, <size_t>size, STR_SEED)
    if isinstance(token, bytes):
        return si_hash64(<const uint8_t *>PyBytes_AsString(token), <size_t>PyBytes_Size(token), BYTES_SEED)
    if type(token) is int:
        try:
            return si_mix64(PyLong_AsUnsignedLongLong(token))
        except OverflowError:
            raise FeatureError(f"set {item} holds {token}: whole numbers are 0 to 2**64 - 1") from None
    if isinstance(token, bool):
        raise FeatureError(f"set {item} holds the bool {token}: members are str, bytes or whole numbers")
    if isinstance(token, (int, np.integer)):
        return _token(int(token), item)
    raise FeatureError(f"set {item} holds a {type(token).__name__}: members are str, bytes or whole numbers")


def hash_sets(sets):
    """Return the member hashes of Python sets: (hashes uint64[m], ptr int64[n + 1], absent uint8[n]).

    sets: a sequence of iterables of str, bytes and whole numbers (0 to 2**64 - 1), uint64 arrays, or None
    (absent). str and bytes by h64/1 of their bytes, with two seeds; numbers by mix64. Repeats are kept.
    Raises FeatureError that names the position of the set at fault.
    """
    cdef Py_ssize_t n = len(sets), i = 0
    ptr = np.zeros(n + 1, np.int64)
    absent = np.zeros(n, np.uint8)
    cdef int64_t[::1] ends = ptr
    cdef uint8_t[::1] missing = absent
    cdef si_hashes found
    found.hash = NULL
    found.n = found.room = 0
    cdef const uint64_t[::1] ready
    cdef Py_ssize_t j
    try:
        for members in sets:
            if i >= n:
                raise FeatureError(f"sets has more than the {n} items that its length promised")
            if members is None:
                missing[i] = 1
            elif isinstance(members, (str, bytes)):
                raise FeatureError(f"set {i} is one {type(members).__name__}: a set is an iterable of "
                                   "members")
            elif isinstance(members, np.ndarray):
                ready = _numbers(members, i)
                if si_hashes_need(&found, <size_t>ready.shape[0]):
                    raise MemoryError
                for j in range(ready.shape[0]):
                    found.hash[found.n] = si_mix64(ready[j])
                    found.n += 1
            else:
                try:
                    iterator = iter(members)
                except TypeError:
                    raise FeatureError(f"set {i} is {type(members).__name__}: a set is an iterable of "
                                       "str, bytes or whole numbers, a uint64 array, or None") from None
                for token in iterator:
                    if found.n == found.room and si_hashes_need(&found, 1024):
                        raise MemoryError
                    found.hash[found.n] = _token(token, i)
                    found.n += 1
            i += 1
            ends[i] = <int64_t>found.n
        if i != n:
            raise FeatureError(f"sets has {i} items, fewer than the {n} that its length promised")
        return _take(&found), ptr, absent
    finally:
        free(found.hash)


cdef object _numbers(object array, Py_ssize_t item):
    """Return a one-dimensional array of whole numbers as contiguous uint64."""
    if array.ndim != 1:
        raise FeatureError(f"set {item} is an array of {array.ndim} dimensions: arrays of numbers have one")
    if array.dtype.kind == "i":
        if array.size and array.min() < 0:
            raise FeatureError(f"set {item} holds {array.min()}: whole numbers are 0 to 2**64 - 1")
    elif array.dtype.kind != "u":
        if array.size == 0 and array.dtype.kind == "f":
            return np.empty(0, np.uint64)
        raise FeatureError(f"set {item} is an array of {array.dtype}: arrays hold whole numbers (uint64)")
    return np.ascontiguousarray(array, np.uint64)
