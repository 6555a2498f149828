# cython: language_level=3
"""Fast Similarity Sketching over hashed features (csrc/fastsim.h: the algorithm and the slot format)."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

import numpy as np

from simindex.errors import FeatureError

cdef extern from "rows.h" nogil:
    int64_t si_bad_offset(const int64_t *ptr, int64_t n, int64_t m)

cdef extern from "fastsim.h" nogil:
    ctypedef struct si_fastsim_shape:
        uint32_t k
    int SI_FASTSIM_MAX_K
    void si_fastsim_init()
    void si_fastsim_select(int level)
    si_fastsim_shape si_fastsim_shape_of(uint32_t k)
    void (*si_fastsim_update)(uint32_t *slots, si_fastsim_shape s, const uint64_t *h, size_t n)
    void si_fastsim_batch(const uint64_t *h, const int64_t *ptr, int64_t n, uint32_t k, uint32_t *out)
    void si_fastsim_batch_packed(const uint64_t *h, const int64_t *ptr, int64_t n, uint32_t k, int bits,
                                 uint8_t *out)
    void si_fastsim_pack_batch(const uint32_t *slots, int64_t n, uint32_t k, int bits, uint8_t *out)

si_fastsim_init()

MAX_SLOTS = SI_FASTSIM_MAX_K


def _select(int level):
    """Choose the instruction-set level of this module's kernels (see kernels/dispatch.py)."""
    si_fastsim_select(level)


cdef int _check(const uint64_t[::1] hashes, const int64_t[::1] ptr, int k) except -1:
    cdef int64_t bad
    if k < 1 or k > SI_FASTSIM_MAX_K:
        raise ValueError(f"k is {k}: a fastsim signature has 1 to {SI_FASTSIM_MAX_K} slots")
    if ptr.shape[0] < 1:
        raise FeatureError("ptr is empty: n items have n + 1 offsets")
    bad = si_bad_offset(&ptr[0], ptr.shape[0] - 1, hashes.shape[0])
    if bad >= 0:
        raise FeatureError(f"ptr[{bad}] is {ptr[bad]}: offsets start at 0, never fall and end at "
                           f"{hashes.shape[0]}, "
                           "the number of hashes")
    return 0


cdef int _check_bits(int bits) except -1:
    if bits != 8 and bits != 16 and bits != 32:
        raise ValueError(f"bits is {bits}: slots are stored in 8, 16 or 32 bits")
    return 0


def fastsim(const uint64_t[::1] hashes not None, const int64_t[::1] ptr not None, int k):
    """Return the fastsim/1 slots of n items: uint32, shape (n, k).

    hashes, ptr: compressed rows of uniform 64-bit hashes, any order, repeats allowed (types.Features).
    k: 1 to 4096. An item without hashes gives 0xffffffff in every slot.
    P[slot of A == slot of B] = J(A, B), up to rank ties (csrc/fastsim.h). Cost: about n + k ln k mixes an
    item.
    """
    _check(hashes, ptr, k)
    cdef int64_t n = ptr.shape[0] - 1
    out = np.empty((n, k), np.uint32)
    if n == 0:
        return out
    cdef uint32_t[:, ::1] slots = out
    cdef const uint64_t *h = &hashes[0] if hashes.shape[0] else NULL
    with nogil:
        si_fastsim_batch(h, &ptr[0], n, <uint32_t>k, &slots[0, 0])
    return out


def fastsim_packed(const uint64_t[::1] hashes not None, const int64_t[::1] ptr not None, int k, int bits):
    """Return slots cut to their low 8, 16 or 32 bits: uint8, shape (n, k * bits // 8), little-endian.

    Equal to pack_slots(fastsim(...), bits), but an item without hashes gives zero bytes.
    """
    _check(hashes, ptr, k)
    _check_bits(bits)
    cdef int64_t n = ptr.shape[0] - 1
    out = np.empty((n, k * bits // 8), np.uint8)
    if n == 0:
        return out
    cdef uint8_t[:, ::1] rows = out
    cdef const uint64_t *h = &hashes[0] if hashes.shape[0] else NULL
    with nogil:
        si_fastsim_batch_packed(h, &ptr[0], n, <uint32_t>k, bits, &rows[0, 0])
    return out


def fastsim_update(uint32_t[::1] slots not None, const uint64_t[::1] hashes not None):
    """Take more hashes into the slots of one item, in place (all 0xffffffff at first).

    Any division into calls gives the bytes of one call with everything: memory is O(k), however long the
    document.
    """
    cdef si_fastsim_shape shape
    cdef size_t n = hashes.shape[0]
    if slots.shape[0] < 1 or slots.shape[0] > SI_FASTSIM_MAX_K:
        raise ValueError(f"k is {slots.shape[0]}: a fastsim signature has 1 to {SI_FASTSIM_MAX_K} slots")
    if n == 0:
        return
    shape = si_fastsim_shape_of(<uint32_t>slots.shape[0])
    with nogil:
        si_fastsim_update(&slots[0], shape, &hashes[0], n)


def pack_slots(const uint32_t[:, ::1] slots not None, int bits):
    """Return the low `bits` (8, 16 or 32) of each slot: uint8, shape (n, k * bits // 8), little-endian.

    Unequal slots agree with probability 2^-bits.
    """
    _check_bits(bits)
    cdef int64_t n = slots.shape[0]
    cdef uint32_t k = <uint32_t>slots.shape[1]
    out = np.empty((n, k * bits // 8), np.uint8)
    if n == 0 or k == 0:
        return out
    cdef uint8_t[:, ::1] rows = out
    with nogil:
        si_fastsim_pack_batch(&slots[0, 0], n, k, bits, &rows[0, 0])
    return out
