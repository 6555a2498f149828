/* How many of 16 consecutive sorted postings lie below a range, and how many below or in it. */
#ifndef SI_RUNCOUNT_H
#define SI_RUNCOUNT_H

#include "cpu.h"
#include "load.h"

#define SI_WINDOW 16

/* Returns (number of postings < low) | (number of postings <= high) << 8; p is any address with 128 readable bytes. */
static uint32_t si_count_scalar(const uint8_t *p, uint64_t low, uint64_t high) {
    uint32_t below = 0, upto = 0;
    for (int i = 0; i < SI_WINDOW; i++) {
        uint64_t v = si_load64(p + 8 * i);
        below += v < low;
        upto += v <= high;
    }
    return below | upto << 8;
}

#if SI_X86
SI_TARGET_AVX2 static uint32_t si_count_avx2(const uint8_t *p, uint64_t low, uint64_t high) {
    const __m256i flip = _mm256_set1_epi64x(INT64_MIN); /* compares are signed */
    const __m256i l = _mm256_set1_epi64x((int64_t)(low ^ (uint64_t)INT64_MIN));
    const __m256i h = _mm256_set1_epi64x((int64_t)(high ^ (uint64_t)INT64_MIN));
    __m256i below = _mm256_setzero_si256(), above = _mm256_setzero_si256();
    for (int i = 0; i < SI_WINDOW; i += 4) {
        __m256i v = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)(p + 8 * i)), flip);
        below = _mm256_sub_epi64(below, _mm256_cmpgt_epi64(l, v));
        above = _mm256_sub_epi64(above, _mm256_cmpgt_epi64(v, h));
    }
    __m256i both = _mm256_or_si256(below, _mm256_slli_epi64(above, 32)); /* sum both halves at once */
    __m128i two = _mm_add_epi64(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    uint64_t sum = (uint64_t)_mm_cvtsi128_si64(two) + (uint64_t)_mm_extract_epi64(two, 1);
    return (uint32_t)sum | (SI_WINDOW - (uint32_t)(sum >> 32)) << 8;
}

SI_TARGET_AVX512 static uint32_t si_count_avx512(const uint8_t *p, uint64_t low, uint64_t high) {
    const __m512i l = _mm512_set1_epi64((int64_t)low), h = _mm512_set1_epi64((int64_t)high);
    __m512i a = _mm512_loadu_si512(p), b = _mm512_loadu_si512(p + 64);
    uint32_t below = (uint32_t)_mm512_cmplt_epu64_mask(a, l) | (uint32_t)_mm512_cmplt_epu64_mask(b, l) << 8;
    uint32_t upto = (uint32_t)_mm512_cmple_epu64_mask(a, h) | (uint32_t)_mm512_cmple_epu64_mask(b, h) << 8;
    return (uint32_t)__builtin_popcount(below) | (uint32_t)__builtin_popcount(upto) << 8;
}
#endif

static uint32_t (*si_count_window)(const uint8_t *p, uint64_t low, uint64_t high) = si_count_scalar;

static void si_runs_select(int level) {
    si_count_window = si_count_scalar;
#if SI_X86
    if (level >= SI_AVX512)
        si_count_window = si_count_avx512;
    else if (level >= SI_AVX2)
        si_count_window = si_count_avx2;
#else
    (void)level;
#endif
}

#endif
