/* Fast Similarity Sketching (Dahlgaard, Knudsen, Thorup, arXiv 1704.04370), all rounds. Frozen as fastsim/1.
 *
 * Round 0 throws every hash into a slot by the hash itself, rounds 1 .. k-1 by the hash re-mixed with the round's
 * constants; what is still open then is filled slot by slot with the slot's own minimum ("round k"). A slot keeps
 * the smallest of (round, rank), packed into 32 bits:
 *
 *     round 0       0 | rank: 31 bits
 *     round r >= 1  1 | r - 1: t bits | rank: 31 - t bits         t = ceil(log2(k))
 *
 * Later rounds are always greater, so a signature is the coordinate-wise minimum over its hashes and all rounds: it
 * does not depend on order, repetition or chunks, and two signatures merge by min. A round is left out when every
 * slot is below its smallest value. Two different hashes can tie in rank: in round 0 with probability n/k / 2^32 a
 * slot; later rounds run only while n is of the order of k ln k or less, so 19 bits (k = 4096) and more suffice. */
#ifndef SI_FASTSIM_H
#define SI_FASTSIM_H

#include <stdint.h>
#include <string.h>

#include "cpu.h"
#include "load.h"

#define SI_FASTSIM_MAX_K 4096
#define SI_FASTSIM_OPEN 0xffffffffu /* no value yet; no round makes this value */

/* Entry r mixes round r; entry SI_FASTSIM_MAX_K + j mixes for the last round of slot j. */
static uint64_t si_fastsim_flip[2 * SI_FASTSIM_MAX_K];
static uint64_t si_fastsim_multiplier[2 * SI_FASTSIM_MAX_K]; /* odd */

static inline uint64_t si_fastsim_splitmix(uint64_t i) {
    uint64_t x = i * 0x9e3779b97f4a7c15ull + 0x73696d696e646578ull; /* "simindex" */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static void si_fastsim_init(void) {
    for (uint64_t i = 0; i < 2 * SI_FASTSIM_MAX_K; i++) {
        si_fastsim_flip[i] = si_fastsim_splitmix(2 * i + 1);
        si_fastsim_multiplier[i] = si_fastsim_splitmix(2 * i + 2) | 1;
    }
}

typedef struct {
    uint32_t k;
    int tag_bits;  /* t: ceil(log2(k)) */
    int power;     /* log2(k) if k is a power of two, else -1 */
} si_fastsim_shape;

static inline si_fastsim_shape si_fastsim_shape_of(uint32_t k) {
    si_fastsim_shape s = {k, 0, -1};
    while ((1u << s.tag_bits) < k) s.tag_bits++;
    if ((1u << s.tag_bits) == k) s.power = s.tag_bits;
    return s;
}

/* m * k / 2^64: slot in the upper 32 bits, the next 32 bits of the fraction below. */
static inline uint64_t si_fastsim_throw(uint64_t m, uint32_t k) {
    return (m >> 32) * k + (((m & 0xffffffffu) * k) >> 32);
}

/* The smallest value that round r can make. */
static inline uint32_t si_fastsim_base(si_fastsim_shape s, uint32_t r) {
    return r ? 0x80000000u | (uint32_t)((uint64_t)(r - 1) << (31 - s.tag_bits)) : 0;
}

#define SI_INLINE static inline __attribute__((always_inline))

SI_INLINE int si_fastsim_is_done(const uint32_t *slots, uint32_t k, uint32_t base) {
    uint32_t open = 0;
    for (uint32_t j = 0; j < k; j++) open |= slots[j] >= base;
    return !open;
}

SI_INLINE void si_fastsim_round0(uint32_t *slots, si_fastsim_shape s, const uint64_t *h, size_t n) {
    if (s.power > 0) {
        const int q = s.power;
        for (size_t i = 0; i < n; i++) {
            uint64_t m = h[i];
            uint32_t j = (uint32_t)(m >> (64 - q)), v = (uint32_t)((m << q) >> 33), old = slots[j];
            slots[j] = v < old ? v : old;
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t x = si_fastsim_throw(h[i], s.k);
        uint32_t j = (uint32_t)(x >> 32), v = (uint32_t)x >> 1, old = slots[j];
        slots[j] = v < old ? v : old;
    }
}

SI_INLINE void si_fastsim_round(uint32_t *slots, si_fastsim_shape s, uint32_t r, const uint64_t *h, size_t n) {
    const uint64_t flip = si_fastsim_flip[r], multiplier = si_fastsim_multiplier[r];
    const uint32_t base = si_fastsim_base(s, r);
    const int shift = s.tag_bits + 1;
    for (size_t i = 0; i < n; i++) {
        const uint64_t mixed = (h[i] ^ flip) * multiplier;
        const uint64_t x = s.power >= 0 ? mixed >> (32 - s.power) : si_fastsim_throw(mixed, s.k);
        const uint32_t j = (uint32_t)(x >> 32), v = base | (uint32_t)x >> shift, old = slots[j];
        slots[j] = v < old ? v : old;
    }
}

SI_INLINE void si_fastsim_last(uint32_t *slots, si_fastsim_shape s, const uint64_t *h, size_t n) {
    const uint32_t base = si_fastsim_base(s, s.k);
    const int shift = s.tag_bits + 1;
    for (uint32_t j = 0; j < s.k; j++) {
        if (slots[j] < base) continue;
        const uint64_t flip = si_fastsim_flip[SI_FASTSIM_MAX_K + j];
        const uint64_t multiplier = si_fastsim_multiplier[SI_FASTSIM_MAX_K + j];
        uint32_t least = SI_FASTSIM_OPEN;
        for (size_t i = 0; i < n; i++) {
            uint32_t v = base | (uint32_t)((((h[i] ^ flip) * multiplier) >> 32) >> shift);
            if (v == SI_FASTSIM_OPEN) v--;
            least = v < least ? v : least;
        }
        if (least < slots[j]) slots[j] = least;
    }
}

/* Take n more hashes into k slots (all SI_FASTSIM_OPEN at first). With few hashes several rounds run between two
 * looks at the slots: a round that was not needed changes nothing. */
SI_INLINE void si_fastsim_update_scalar(uint32_t *slots, si_fastsim_shape s, const uint64_t *h, size_t n) {
    if (!n) return;
    const uint32_t stride = n < 64 ? (uint32_t)(64 / n) : 1;
    si_fastsim_round0(slots, s, h, n);
    for (uint32_t r = 1; r < s.k;) {
        if (si_fastsim_is_done(slots, s.k, si_fastsim_base(s, r))) return;
        for (const uint32_t stop = r + stride < s.k ? r + stride : s.k; r < stop; r++)
            si_fastsim_round(slots, s, r, h, n);
    }
    if (!si_fastsim_is_done(slots, s.k, si_fastsim_base(s, s.k))) si_fastsim_last(slots, s, h, n);
}

static void si_fastsim_update_baseline(uint32_t *slots, si_fastsim_shape s, const uint64_t *h, size_t n) {
    si_fastsim_update_scalar(slots, s, h, n);
}

#if SI_X86
/* AVX2 has no 64-bit multiplication and no compress: the scalar code with better shifts is what pays. */
SI_TARGET_AVX2 static void si_fastsim_update_avx2(uint32_t *slots, si_fastsim_shape s, const uint64_t *h, size_t n) {
    si_fastsim_update_scalar(slots, s, h, n);
}
#endif

/* The low `bits` of each slot: unequal slots agree with probability 2^-bits, for the low rank bits are uniform. */
static inline void si_fastsim_pack(const uint32_t *slots, uint32_t k, int bits, uint8_t *out) {
    if (bits == 8)
        for (uint32_t j = 0; j < k; j++) out[j] = (uint8_t)slots[j];
    else if (bits == 16)
        for (uint32_t j = 0; j < k; j++) si_store16(out + 2 * j, (uint16_t)slots[j]);
    else
        for (uint32_t j = 0; j < k; j++) si_store32(out + 4 * j, slots[j]);
}

#include "fastsim_avx512.h"

static void (*si_fastsim_update)(uint32_t *, si_fastsim_shape, const uint64_t *, size_t) = si_fastsim_update_baseline;

static void si_fastsim_select(int level) {
    si_fastsim_update = si_fastsim_update_baseline;
#if SI_X86
    if (level >= SI_AVX512) si_fastsim_update = si_fastsim_update_avx512;
    else if (level >= SI_AVX2) si_fastsim_update = si_fastsim_update_avx2;
#else
    (void)level;
#endif
}

/* Sign items first .. last-1 of a compressed-row batch; an item without hashes gives SI_FASTSIM_OPEN everywhere. */
static void si_fastsim_batch(const uint64_t *h, const int64_t *ptr, int64_t n, uint32_t k, uint32_t *out) {
    const si_fastsim_shape s = si_fastsim_shape_of(k);
    memset(out, 0xff, (size_t)n * k * 4);
    for (int64_t i = 0; i < n; i++, out += k) si_fastsim_update(out, s, h + ptr[i], (size_t)(ptr[i + 1] - ptr[i]));
}

/* The same, packed to `bits` a slot; an item without hashes gives zero bytes. */
static void si_fastsim_batch_packed(const uint64_t *h, const int64_t *ptr, int64_t n, uint32_t k, int bits,
                                    uint8_t *out) {
    const si_fastsim_shape s = si_fastsim_shape_of(k);
    const size_t width = (size_t)k * (size_t)bits / 8;
    uint32_t slots[SI_FASTSIM_MAX_K];
    for (int64_t i = 0; i < n; i++, out += width) {
        const size_t m = (size_t)(ptr[i + 1] - ptr[i]);
        if (!m) {
            memset(out, 0, width);
            continue;
        }
        memset(slots, 0xff, (size_t)k * 4);
        si_fastsim_update(slots, s, h + ptr[i], m);
        si_fastsim_pack(slots, k, bits, out);
    }
}

static void si_fastsim_pack_batch(const uint32_t *slots, int64_t n, uint32_t k, int bits, uint8_t *out) {
    const size_t width = (size_t)k * (size_t)bits / 8;
    for (int64_t i = 0; i < n; i++, slots += k, out += width) si_fastsim_pack(slots, k, bits, out);
}

#endif
