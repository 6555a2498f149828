# cython: language_level=3
"""Classic MinHash over hashed features (csrc/minhash.h states the schemes and what is stored)."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

import numpy as np

from simindex.errors import FeatureError

cdef extern from "rows.h" nogil:
    int64_t si_bad_offset(const int64_t *ptr, int64_t n, int64_t m)

cdef extern from "minhash.h" nogil:
    int SI_MINHASH_MAX_K
    int SI_MINHASH_SIMINDEX
    int SI_MINHASH_AFFINE32
    int SI_MINHASH_AFFINE64
    int SI_MINHASH_LEGACY
    void si_minhash_select(int level)
    void si_minhash_constants(uint32_t k, uint64_t *first, uint64_t *second)
    void si_minhash_batch(int scheme, const uint64_t *h, const int64_t *ptr, int64_t n, const uint64_t *first,
                          const uint64_t *second, uint32_t k, uint64_t *out)
    void si_minhash_batch_packed(int scheme, const uint64_t *h, const int64_t *ptr, int64_t n,
                                 const uint64_t *first,
                                 const uint64_t *second, uint32_t k, int bits, uint8_t *out)
    void si_minhash_pack_batch(int scheme, int bits, const uint64_t *minima, int64_t n, uint32_t k,
                               uint8_t *out)

MINHASH_SCHEMES = {
    "simindex": SI_MINHASH_SIMINDEX,
    "affine32": SI_MINHASH_AFFINE32,
    "affine64": SI_MINHASH_AFFINE64,
    "legacy": SI_MINHASH_LEGACY,
}


def _select(int level):
    """Choose the instruction-set level of this module's kernels (see kernels/dispatch.py)."""
    si_minhash_select(level)


cdef int _scheme_number(scheme) except -1:
    if scheme not in MINHASH_SCHEMES:
        raise ValueError(f"unknown MinHash scheme {scheme!r}: known are {', '.join(MINHASH_SCHEMES)}")
    return MINHASH_SCHEMES[scheme]


cdef int _check(const uint64_t[::1] hashes, const int64_t[::1] ptr, const uint64_t[::1] first,
                const uint64_t[::1] second) except -1:
    cdef int64_t bad
    cdef Py_ssize_t k = first.shape[0]
    if k < 1 or k > SI_MINHASH_MAX_K:
        raise ValueError(f"k is {k}: a MinHash signature has 1 to {SI_MINHASH_MAX_K} slots")
    if second.shape[0] != k:
        raise ValueError(f"{k} first constants and {second.shape[0]} second ones: each slot has one of both")
    if ptr.shape[0] < 1:
        raise FeatureError("ptr is empty: n items have n + 1 offsets")
    bad = si_bad_offset(&ptr[0], ptr.shape[0] - 1, hashes.shape[0])
    if bad >= 0:
        raise FeatureError(f"ptr[{bad}] is {ptr[bad]}: offsets start at 0, never fall and end at "
                           f"{hashes.shape[0]}, "
                           "the number of hashes")
    return 0


cdef int _check_bits(int scheme, int bits) except -1:
    if bits == 64 and scheme == SI_MINHASH_AFFINE64:
        return 0
    if bits != 8 and bits != 16 and bits != 32:
        raise ValueError(f"bits is {bits}: slots are stored in 8, 16 or 32 bits (affine64 also in 64)")
    return 0


def minhash_constants(int k):
    """Return the own scheme's constants (first, second): two uint64 arrays of k. Frozen as minhash/1."""
    if k < 1 or k > SI_MINHASH_MAX_K:
        raise ValueError(f"k is {k}: a MinHash signature has 1 to {SI_MINHASH_MAX_K} slots")
    first, second = np.empty(k, np.uint64), np.empty(k, np.uint64)
    cdef uint64_t[::1] f = first
    cdef uint64_t[::1] s = second
    si_minhash_constants(<uint32_t>k, &f[0], &s[0])
    return first, second


def minhash(const uint64_t[::1] hashes not None, const int64_t[::1] ptr not None,
            const uint64_t[::1] first not None,
            const uint64_t[::1] second not None, scheme="simindex"):
    """Return the k minima of n items: uint64, shape (n, k), before any cut to the stored width.

    hashes, ptr: compressed rows (types.Features); affine32 and legacy read the low 32 bits of a hash.
    first, second: the constants of each slot. An item without hashes has the scheme's largest value in
    every slot.
    Cost: n * k evaluations an item.
    """
    cdef int number = _scheme_number(scheme)
    _check(hashes, ptr, first, second)
    cdef int64_t n = ptr.shape[0] - 1
    cdef uint32_t k = <uint32_t>first.shape[0]
    out = np.empty((n, k), np.uint64)
    if n == 0:
        return out
    cdef uint64_t[:, ::1] minima = out
    cdef const uint64_t *h = &hashes[0] if hashes.shape[0] else NULL
    with nogil:
        si_minhash_batch(number, h, &ptr[0], n, &first[0], &second[0], k, &minima[0, 0])
    return out


def minhash_packed(const uint64_t[::1] hashes not None, const int64_t[::1] ptr not None,
                   const uint64_t[::1] first not None, const uint64_t[::1] second not None, scheme, int bits):
    """Return signatures of n items: uint8, shape (n, k * bits // 8), little-endian slots.

    Equal to pack_minima(minhash(...), scheme, bits), except that an item without hashes gives zero bytes.
    """
    cdef int number = _scheme_number(scheme)
    _check(hashes, ptr, first, second)
    _check_bits(number, bits)
    cdef int64_t n = ptr.shape[0] - 1
    cdef uint32_t k = <uint32_t>first.shape[0]
    out = np.empty((n, k * bits // 8), np.uint8)
    if n == 0:
        return out
    cdef uint8_t[:, ::1] rows = out
    cdef const uint64_t *h = &hashes[0] if hashes.shape[0] else NULL
    with nogil:
        si_minhash_batch_packed(number, h, &ptr[0], n, &first[0], &second[0], k, bits, &rows[0, 0])
    return out


def pack_minima(const uint64_t[:, ::1] minima not None, scheme, int bits):
    """Return minima cut to 8, 16 or 32 bits a slot: uint8, shape (n, k * bits // 8), little-endian.

    affine32 and legacy at 32 bits and affine64 at 64 bits keep the values themselves; all else keeps the
    low bits of a mix of the value, so that unequal slots agree with probability 2^-bits.
    """
    cdef int number = _scheme_number(scheme)
    _check_bits(number, bits)
    cdef int64_t n = minima.shape[0]
    cdef uint32_t k = <uint32_t>minima.shape[1]
    out = np.empty((n, k * bits // 8), np.uint8)
    if n == 0 or k == 0:
        return out
    cdef uint8_t[:, ::1] rows = out
    with nogil:
        si_minhash_pack_batch(number, bits, &minima[0, 0], n, k, &rows[0, 0])
    return out
