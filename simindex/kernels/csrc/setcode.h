/* Packed sets: the bytes of one item's distinct shingle hashes. Frozen since format 1: changing this breaks stores.
 *
 *   byte 0        w, the width: every hash is cut to its top w bits, 1 <= w <= 64
 *   LEB128        n, the number of distinct cut hashes, 1 <= n < 2^32 (at most 5 bytes, shortest form)
 *   low part      n fields of l bits, little-endian bit order, padded to a byte
 *   high part     Elias-Fano: bit (h_i + i) is set for the i-th hash, h = cut hash >> l; up to the last byte that
 *                 has a set bit
 *   l = min(56, w - bit_length(n - 1)), so the high part has 2 to 3 bits a hash.
 * The empty set is the empty string. A set has exactly one encoding, so equal bytes are equal sets.
 *
 * The width grows with the set (si_set_width): with a hashes in the smaller set and u in the union, two of the union's
 * hashes agree in w bits with chance <= u^2 / 2^(w + 1). 2^w >= 11468800 a^2 keeps that below 1e-6 for u <= 4.7 a, that
 * is for any pair whose Jaccard is 0.22 or more: a corpus has millions of pairs near its threshold, and none should be
 * moved across it. Where that would take more than 4.3 bytes a hash (from about 180 hashes), w grows by one bit a doubling
 * (4.2 bytes) and the chance slowly with it, until 2^w >= 2800 a^2 (1e-3 for u <= 2.36 a, Jaccard >= 0.43) takes over. */
#ifndef SI_SETCODE_H
#define SI_SETCODE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cpu.h"
#include "load.h"
#include "setsort.h"

#define SI_SET_LOW_MOST 56u  /* a field of 56 bits lies within one unaligned 64-bit load */
#define SI_SET_HEADER_MOST 6u
#define SI_SET_BOUND(n) (8u * (size_t)(n) + 48u) /* no set of n hashes takes more bytes */

/* Width in bits for a set of n distinct 64-bit hashes. */
static inline uint32_t si_set_width(uint64_t n) {
    if (n >= (1u << 26)) return 64;
    uint32_t tight = si_bit_length64(2800u * n * n - 1);
    uint32_t wide = si_bit_length64(n < (1u << 18) ? 11468800u * n * n - 1 : ~(uint64_t)0);
    uint32_t most = si_bit_length64(n - 1) + 31;
    if (wide > most) wide = most;
    return tight > wide ? tight : wide;
}

static inline uint32_t si_set_low_bits(uint32_t width, uint32_t n) {
    uint32_t high = si_bit_length64((uint64_t)n - 1);
    uint32_t low = width > high ? width - high : 0;
    return low < SI_SET_LOW_MOST ? low : SI_SET_LOW_MOST;
}

/* Encode n sorted distinct values of `width` bits into out (SI_SET_BOUND(n) bytes); returns the length. */
static inline size_t si_set_encode(const uint64_t *value, uint32_t n, uint32_t width, uint8_t *out) {
    if (!n) return 0;
    uint8_t *p = out;
    *p++ = (uint8_t)width;
    uint32_t rest = n;
    while (rest >= 128) { *p++ = (uint8_t)(rest | 128); rest >>= 7; }
    *p++ = (uint8_t)rest;
    uint32_t low = si_set_low_bits(width, n);
    size_t low_bytes = ((uint64_t)n * low + 7) / 8;
    uint64_t last = (low < 64 ? value[n - 1] >> low : 0) + n - 1;
    size_t high_bytes = last / 8 + 1;
    uint64_t mask = low ? ~(uint64_t)0 >> (64 - low) : 0, pending = 0;
    uint32_t have = 0;
    uint8_t *high = p + low_bytes;
    memset(high, 0, high_bytes);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t x = value[i] & mask, at = (value[i] >> low) + i;
        high[at >> 3] |= (uint8_t)(1u << (at & 7));
        pending |= x << have;
        have += low;
        if (have >= 64) { /* high part's bytes may be overwritten by nobody: the 8 bytes end within the low part */
            si_store64(p, pending);
            p += 8;
            have -= 64;
            pending = have ? x >> (low - have) : 0;
        }
    }
    while (p < high) { *p++ = (uint8_t)pending; pending >>= 8; }
    return (size_t)(high - out) + high_bytes;
}

/* A checked view of one packed set. n == 0: the empty set. */
typedef struct {
    const uint8_t *low, *high;
    uint32_t n, width, low_bits;
    size_t low_bytes, high_bytes;
} si_set;

/* Read a packed set of `length` bytes. Returns 0, or -1 if the bytes cannot be one; after 0 every walk stays inside
 * them and meets exactly n values below 2^width. Only the order within one high value is left unchecked. */
static inline __attribute__((always_inline)) int si_set_open(const uint8_t *bytes, size_t length, si_set *set) {
    memset(set, 0, sizeof *set);
    if (!length) return 0;
    if (length < 3) return -1;
    const uint8_t *p = bytes + 1, *end = bytes + length;
    uint32_t width = bytes[0], shift = 0;
    uint64_t n = 0;
    if (width < 1 || width > 64) return -1;
    for (;;) {
        if (p == end || shift > 28) return -1;
        n |= (uint64_t)(*p & 127) << shift;
        shift += 7;
        if (!(*p++ & 128)) break;
    }
    if (n < 1 || n > 0xffffffffu || (shift > 7 && !p[-1])) return -1;
    set->n = (uint32_t)n;
    set->width = width;
    set->low_bits = si_set_low_bits(width, set->n);
    set->low_bytes = (n * set->low_bits + 7) / 8;
    if ((size_t)(end - p) <= set->low_bytes) return -1;
    set->low = p;
    set->high = p + set->low_bytes;
    set->high_bytes = (size_t)(end - set->high);
    if (!end[-1]) return -1;
    uint64_t last = (uint64_t)(set->high_bytes - 1) * 8 + si_bit_length64(end[-1]) - 1;
    uint32_t high_bits = width - set->low_bits;
    if (last < n - 1 || (high_bits < 64 && (last - (n - 1)) >> high_bits)) return -1;
    uint64_t ones = 0, word;
    size_t at = 0;
    for (; at + 8 <= set->high_bytes; at += 8) ones += (uint64_t)__builtin_popcountll(si_load64(set->high + at));
    if (at < set->high_bytes) {
        word = 0;
        memcpy(&word, set->high + at, set->high_bytes - at);
        ones += (uint64_t)__builtin_popcountll(word);
    }
    return ones == n ? 0 : -1;
}

static inline uint64_t si_set_high_word(const si_set *set, size_t at) {
    if (at + 8 <= set->high_bytes) return si_load64(set->high + at);
    uint64_t word = 0;
    memcpy(&word, set->high + at, set->high_bytes - at);
    return SI_LE64(word);
}

/* The low field of value i, for an i whose eight bytes may reach past the end of the set. */
static inline uint64_t si_set_low_careful(const si_set *set, uint64_t bit) {
    const uint8_t *p = set->low + (bit >> 3), *end = set->high + set->high_bytes;
    uint64_t word = 0;
    if (end - p >= 8) word = si_load64(p);
    else if (end > p) { memcpy(&word, p, (size_t)(end - p)); word = SI_LE64(word); }
    return word >> (bit & 7);
}

/* The first values, whose low fields may be read eight bytes at a time without leaving the set. */
static inline uint32_t si_set_free_reads(const si_set *set) {
    size_t bytes = set->low_bytes + set->high_bytes;
    if (!set->low_bits) return bytes >= 8 ? set->n : 0;
    if (bytes < 8) return 0;
    uint64_t k = ((uint64_t)(bytes - 8) * 8 + 7) / set->low_bits + 1; /* (i * l) >> 3 <= bytes - 8 */
    return k < set->n ? (uint32_t)k : set->n;
}

/* Run `body` for each value v (uint64_t) of the set, ascending. */
#define SI_SET_EACH(set, v, body)                                                                                     \
    do {                                                                                                              \
        uint64_t each_mask = (set)->low_bits ? ~(uint64_t)0 >> (64 - (set)->low_bits) : 0, each_bit = 0;              \
        uint32_t each_free = si_set_free_reads(set), each_low = (set)->low_bits, each_i = 0;                          \
        for (size_t each_at = 0; each_at < (set)->high_bytes; each_at += 8) {                                         \
            uint64_t each_word = si_set_high_word((set), each_at);                                                    \
            while (each_word) {                                                                                       \
                uint64_t each_high = each_at * 8 + (uint64_t)__builtin_ctzll(each_word) - each_i;                     \
                uint64_t each_rest = each_i < each_free ? si_load64((set)->low + (each_bit >> 3)) >> (each_bit & 7)   \
                                                        : si_set_low_careful((set), each_bit);                        \
                uint64_t v = each_high << each_low | (each_rest & each_mask);                                         \
                body;                                                                                                 \
                each_word &= each_word - 1;                                                                           \
                each_bit += each_low;                                                                                 \
                each_i++;                                                                                             \
            }                                                                                                         \
        }                                                                                                             \
    } while (0)

/* All values, ascending, into out[n]; returns 0, or -1 if they do not ascend strictly. */
static inline __attribute__((always_inline)) int si_set_decode_body(const si_set *set, uint64_t *out) {
    const uint64_t mask = set->low_bits ? ~(uint64_t)0 >> (64 - set->low_bits) : 0;
    const uint32_t low = set->low_bits, free_reads = si_set_free_reads(set);
    uint64_t bit = 0, bad = 0;
    uint32_t i = 0;
    for (size_t at = 0; at < set->high_bytes; at += 8) {
        uint64_t word = si_set_high_word(set, at);
        const uint64_t base = at * 8;
        if (i + (uint32_t)__builtin_popcountll(word) <= free_reads) {
            for (; word; word &= word - 1, bit += low, i++)
                out[i] = (base + (uint64_t)__builtin_ctzll(word) - i) << low |
                         ((si_load64(set->low + (bit >> 3)) >> (bit & 7)) & mask);
        } else {
            for (; word; word &= word - 1, bit += low, i++)
                out[i] = (base + (uint64_t)__builtin_ctzll(word) - i) << low | (si_set_low_careful(set, bit) & mask);
        }
    }
    for (uint32_t k = 1; k < i; k++) bad |= out[k] <= out[k - 1];
    return bad ? -1 : 0;
}

static int si_set_decode_baseline(const si_set *set, uint64_t *out) { return si_set_decode_body(set, out); }
#if SI_X86
SI_TARGET_AVX2 static int si_set_decode_avx2(const si_set *set, uint64_t *out) { return si_set_decode_body(set, out); }
#endif
static int (*si_set_decode)(const si_set *, uint64_t *) = si_set_decode_baseline;

/* Sort, drop repeats, cut to the width for what remains and encode. a: m hashes, overwritten; spare: m more.
 * Returns the length; *n the number of hashes stored. */
static inline size_t si_set_pack(uint64_t *a, uint64_t *spare, size_t m, uint32_t *counter, uint8_t *out, uint32_t *n) {
    if (!m) { *n = 0; return 0; }
    si_sort64(a, spare, m, 0, counter);
    size_t distinct = si_unique64(a, m);
    uint32_t width = si_set_width(distinct);
    if (width < 64) {
        for (size_t i = 0; i < distinct; i++) a[i] >>= 64 - width;
        distinct = si_unique64(a, distinct);
    }
    *n = (uint32_t)distinct;
    return si_set_encode(a, (uint32_t)distinct, width, out);
}

#endif
