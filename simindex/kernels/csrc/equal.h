/* How many slots of two signatures are equal: rows of `width` bytes with slots of 1, 2, 4 or 8 bytes. */
#ifndef SI_EQUAL_H
#define SI_EQUAL_H

#include <stdint.h>
#include <string.h>

#include "cpu.h"
#include "load.h"

static inline uint32_t si_equal_baseline(const uint8_t *a, const uint8_t *b, uint32_t width, uint32_t slot_bytes) {
    uint32_t equal = 0;
    for (uint32_t i = 0; i < width; i += slot_bytes) equal += !memcmp(a + i, b + i, slot_bytes);
    return equal;
}

/* Counts of n consecutive rows against one query; returns the largest. */
typedef uint32_t (*si_equal_rows_fn)(const uint8_t *rows, uint32_t n, const uint8_t *query, uint32_t width,
                                     uint32_t slot_bytes, uint16_t *counts);
typedef uint32_t (*si_equal_pair_fn)(const uint8_t *a, const uint8_t *b, uint32_t width, uint32_t slot_bytes);

static uint32_t si_equal_rows_baseline(const uint8_t *rows, uint32_t n, const uint8_t *query, uint32_t width,
                                       uint32_t slot_bytes, uint16_t *counts) {
    uint32_t largest = 0;
    for (uint32_t i = 0; i < n; i++, rows += width) {
        const uint32_t c = si_equal_baseline(rows, query, width, slot_bytes);
        counts[i] = (uint16_t)c;
        if (c > largest) largest = c;
    }
    return largest;
}

static uint32_t si_equal_pair_baseline(const uint8_t *a, const uint8_t *b, uint32_t width, uint32_t slot_bytes) {
    return si_equal_baseline(a, b, width, slot_bytes);
}

#if SI_X86

SI_TARGET_AVX2 static inline uint32_t si_equal_avx2(const uint8_t *a, const uint8_t *b, uint32_t width,
                                                    uint32_t slot_bytes) {
    uint32_t bytes = 0, i = 0;
#define SI_EQUAL_AVX2(compare)                                                                                        \
    for (; i + 32 <= width; i += 32) {                                                                                \
        const __m256i x = _mm256_loadu_si256((const __m256i *)(a + i));                                               \
        const __m256i y = _mm256_loadu_si256((const __m256i *)(b + i));                                               \
        bytes += (uint32_t)_mm_popcnt_u32((uint32_t)_mm256_movemask_epi8(compare(x, y)));                             \
    }
    if (slot_bytes == 1) { SI_EQUAL_AVX2(_mm256_cmpeq_epi8) }
    else if (slot_bytes == 2) { SI_EQUAL_AVX2(_mm256_cmpeq_epi16) bytes >>= 1; }
    else if (slot_bytes == 4) { SI_EQUAL_AVX2(_mm256_cmpeq_epi32) bytes >>= 2; }
    else { SI_EQUAL_AVX2(_mm256_cmpeq_epi64) bytes >>= 3; }
#undef SI_EQUAL_AVX2
    return bytes + si_equal_baseline(a + i, b + i, width - i, slot_bytes);
}

SI_TARGET_AVX2 static uint32_t si_equal_rows_avx2(const uint8_t *rows, uint32_t n, const uint8_t *query,
                                                  uint32_t width, uint32_t slot_bytes, uint16_t *counts) {
    uint32_t largest = 0;
    for (uint32_t i = 0; i < n; i++, rows += width) {
        const uint32_t c = si_equal_avx2(rows, query, width, slot_bytes);
        counts[i] = (uint16_t)c;
        if (c > largest) largest = c;
    }
    return largest;
}

SI_TARGET_AVX2 static uint32_t si_equal_pair_avx2(const uint8_t *a, const uint8_t *b, uint32_t width,
                                                  uint32_t slot_bytes) {
    return si_equal_avx2(a, b, width, slot_bytes);
}

/* Equal slots of 64 bytes (of their first `bytes`, a multiple of the slot) as a bit mask. */
SI_TARGET_AVX512 static inline uint64_t si_equal_mask512(__m512i x, __m512i y, uint32_t slot_bytes, uint64_t bytes) {
    if (slot_bytes == 1) return _mm512_mask_cmpeq_epi8_mask(bytes, x, y);
    if (slot_bytes == 2) return _mm512_mask_cmpeq_epi16_mask((__mmask32)_pext_u64(bytes, 0x5555555555555555ull), x, y);
    if (slot_bytes == 4) return _mm512_mask_cmpeq_epi32_mask((__mmask16)_pext_u64(bytes, 0x1111111111111111ull), x, y);
    return _mm512_mask_cmpeq_epi64_mask((__mmask8)_pext_u64(bytes, 0x0101010101010101ull), x, y);
}

SI_TARGET_AVX512 static inline uint32_t si_equal_avx512(const uint8_t *a, const uint8_t *b, uint32_t width,
                                                        uint32_t slot_bytes) {
    uint64_t equal = 0;
    uint32_t i = 0;
    for (; i + 64 <= width; i += 64)
        equal += (uint64_t)_mm_popcnt_u64(
            si_equal_mask512(_mm512_loadu_si512(a + i), _mm512_loadu_si512(b + i), slot_bytes, ~0ull));
    if (i < width) {
        const uint64_t tail = ~0ull >> (64 - (width - i));
        const __m512i x = _mm512_maskz_loadu_epi8(tail, a + i), y = _mm512_maskz_loadu_epi8(tail, b + i);
        equal += (uint64_t)_mm_popcnt_u64(si_equal_mask512(x, y, slot_bytes, tail));
    }
    return (uint32_t)equal;
}

SI_TARGET_AVX512 static inline __attribute__((always_inline)) uint32_t
si_equal_rows_fixed(const uint8_t *rows, uint32_t n, const uint8_t *query, uint32_t width, uint32_t slot_bytes,
                    uint16_t *counts) {
    uint32_t largest = 0;
    for (uint32_t i = 0; i < n; i++, rows += width) {
        const uint32_t c = si_equal_avx512(rows, query, width, slot_bytes);
        counts[i] = (uint16_t)c;
        if (c > largest) largest = c;
    }
    return largest;
}

/* The default width, with the query kept in registers (counts could alias it otherwise). */
SI_TARGET_AVX512 static uint32_t si_equal_rows_128(const uint8_t *rows, uint32_t n, const uint8_t *query,
                                                   uint16_t *counts) {
    const __m512i q0 = _mm512_loadu_si512(query), q1 = _mm512_loadu_si512(query + 64);
    uint32_t largest = 0;
    for (uint32_t i = 0; i < n; i++, rows += 128) {
        const uint64_t a = _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(rows), q0);
        const uint64_t b = _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(rows + 64), q1);
        const uint32_t c = (uint32_t)_mm_popcnt_u64(a) + (uint32_t)_mm_popcnt_u64(b);
        counts[i] = (uint16_t)c;
        if (c > largest) largest = c;
    }
    return largest;
}

SI_TARGET_AVX512 static uint32_t si_equal_rows_avx512(const uint8_t *rows, uint32_t n, const uint8_t *query,
                                                      uint32_t width, uint32_t slot_bytes, uint16_t *counts) {
    /* The widths of the default settings get loops without a length to test. */
    if (width == 128 && slot_bytes == 1) return si_equal_rows_128(rows, n, query, counts);
    if (width == 256 && slot_bytes == 2) return si_equal_rows_fixed(rows, n, query, 256, 2, counts);
    if (slot_bytes == 1) return si_equal_rows_fixed(rows, n, query, width, 1, counts);
    if (slot_bytes == 2) return si_equal_rows_fixed(rows, n, query, width, 2, counts);
    if (slot_bytes == 4) return si_equal_rows_fixed(rows, n, query, width, 4, counts);
    return si_equal_rows_fixed(rows, n, query, width, 8, counts);
}

SI_TARGET_AVX512 static uint32_t si_equal_pair_avx512(const uint8_t *a, const uint8_t *b, uint32_t width,
                                                      uint32_t slot_bytes) {
    return si_equal_avx512(a, b, width, slot_bytes);
}

#endif

static si_equal_rows_fn si_equal_rows = si_equal_rows_baseline;
static si_equal_pair_fn si_equal_pair = si_equal_pair_baseline;

static void si_equal_select(int level) {
    si_equal_rows = si_equal_rows_baseline;
    si_equal_pair = si_equal_pair_baseline;
#if SI_X86
    if (level >= SI_AVX512) {
        si_equal_rows = si_equal_rows_avx512;
        si_equal_pair = si_equal_pair_avx512;
    } else if (level >= SI_AVX2) {
        si_equal_rows = si_equal_rows_avx2;
        si_equal_pair = si_equal_pair_avx2;
    }
#else
    (void)level;
#endif
}

#endif
