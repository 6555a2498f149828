/* Vector versions of si_minhash_lower (minhash.h): the minima of a group of slots stay in registers while all hashes
 * of a chunk pass. The 32-bit scheme runs in 32-bit lanes. AVX2 has no 64-bit multiplication; its compiler-made code
 * for affine64 and simindex is no faster than scalar code, so it serves affine32 and legacy only. */
#ifndef SI_MINHASH_SIMD_H
#define SI_MINHASH_SIMD_H

#if SI_X86

/* Evaluates to the value of lanes `f`, `s` for hash `h`. */
#define SI_MINHASH_XOR512(h, f, s) _mm512_mullo_epi64(_mm512_xor_si512(h, f), s)
#define SI_MINHASH_AFFINE512(h, f, s) _mm512_add_epi64(_mm512_mullo_epi64(h, f), s)
#define SI_MINHASH_LEGACY512(h, f, s) si_minhash_legacy512(h, f, s)

SI_TARGET_AVX512 static inline __m512i si_minhash_legacy512(__m512i h, __m512i f, __m512i s) {
    const __m512i p = _mm512_set1_epi64((1ll << 61) - 1);
    const __m512i x = _mm512_add_epi64(_mm512_mullo_epi64(h, f), s);
    const __m512i y = _mm512_add_epi64(_mm512_and_si512(x, p), _mm512_srli_epi64(x, 61));
    /* y < p + 8: y - p wraps to a large number where y < p. */
    return _mm512_and_si512(_mm512_min_epu64(y, _mm512_sub_epi64(y, p)), _mm512_set1_epi64(0xffffffffll));
}

/* 32 slots at a time in four registers. */
#define SI_MINHASH_LOOP512(value)                                                                                     \
    for (; j + 32 <= k; j += 32) {                                                                                    \
        const __m512i f0 = _mm512_loadu_si512(first + j), f1 = _mm512_loadu_si512(first + j + 8);                     \
        const __m512i f2 = _mm512_loadu_si512(first + j + 16), f3 = _mm512_loadu_si512(first + j + 24);               \
        const __m512i s0 = _mm512_loadu_si512(second + j), s1 = _mm512_loadu_si512(second + j + 8);                   \
        const __m512i s2 = _mm512_loadu_si512(second + j + 16), s3 = _mm512_loadu_si512(second + j + 24);             \
        __m512i m0 = _mm512_loadu_si512(minima + j), m1 = _mm512_loadu_si512(minima + j + 8);                         \
        __m512i m2 = _mm512_loadu_si512(minima + j + 16), m3 = _mm512_loadu_si512(minima + j + 24);                   \
        for (size_t i = 0; i < m; i++) {                                                                              \
            const __m512i x = _mm512_set1_epi64((long long)h[i]);                                                     \
            m0 = _mm512_min_epu64(m0, value(x, f0, s0));                                                              \
            m1 = _mm512_min_epu64(m1, value(x, f1, s1));                                                              \
            m2 = _mm512_min_epu64(m2, value(x, f2, s2));                                                              \
            m3 = _mm512_min_epu64(m3, value(x, f3, s3));                                                              \
        }                                                                                                             \
        _mm512_storeu_si512(minima + j, m0);                                                                          \
        _mm512_storeu_si512(minima + j + 8, m1);                                                                      \
        _mm512_storeu_si512(minima + j + 16, m2);                                                                     \
        _mm512_storeu_si512(minima + j + 24, m3);                                                                     \
    }

SI_TARGET_AVX512 static void si_minhash_lower_avx512(int scheme, const uint64_t *h, size_t m, const uint64_t *first,
                                                     const uint64_t *second, uint32_t k, uint64_t *minima) {
    uint32_t j = 0;
    if (scheme == SI_MINHASH_AFFINE32) {
        for (; j + 32 <= k; j += 32) {
            __m512i f[2], s[2], low[2];
            for (int c = 0; c < 2; c++) {
                const uint32_t at = j + 16 * (uint32_t)c;
#define SI_NARROW512(p)                                                                                               \
    _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi64_epi32(_mm512_loadu_si512((p) + at))),                   \
                       _mm512_cvtepi64_epi32(_mm512_loadu_si512((p) + at + 8)), 1)
                f[c] = SI_NARROW512(first);
                s[c] = SI_NARROW512(second);
                low[c] = SI_NARROW512(minima);
#undef SI_NARROW512
            }
            for (size_t i = 0; i < m; i++) {
                const __m512i x = _mm512_set1_epi32((int)h[i]);
                low[0] = _mm512_min_epu32(low[0], _mm512_add_epi32(_mm512_mullo_epi32(x, f[0]), s[0]));
                low[1] = _mm512_min_epu32(low[1], _mm512_add_epi32(_mm512_mullo_epi32(x, f[1]), s[1]));
            }
            for (int c = 0; c < 2; c++) {
                _mm512_storeu_si512(minima + j + 16 * c, _mm512_cvtepu32_epi64(_mm512_castsi512_si256(low[c])));
                _mm512_storeu_si512(minima + j + 16 * c + 8,
                                    _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(low[c], 1)));
            }
        }
    } else if (scheme == SI_MINHASH_AFFINE64) {
        SI_MINHASH_LOOP512(SI_MINHASH_AFFINE512)
    } else if (scheme == SI_MINHASH_LEGACY) {
        SI_MINHASH_LOOP512(SI_MINHASH_LEGACY512)
    } else {
        SI_MINHASH_LOOP512(SI_MINHASH_XOR512)
    }
    si_minhash_lower_baseline(scheme, h, m, first + j, second + j, k - j, minima + j);
}

/* Lower halves of two registers of 64-bit lanes, in the order 0 1 4 5 2 3 6 7 (undone when storing). */
SI_TARGET_AVX2 static inline __m256i si_minhash_narrow256(const uint64_t *p) {
    const __m256i a = _mm256_loadu_si256((const __m256i *)p), b = _mm256_loadu_si256((const __m256i *)(p + 4));
    return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
}

SI_TARGET_AVX2 static inline void si_minhash_widen256(uint64_t *p, __m256i v) {
    const __m256i zero = _mm256_setzero_si256();
    _mm256_storeu_si256((__m256i *)p, _mm256_unpacklo_epi32(v, zero));
    _mm256_storeu_si256((__m256i *)(p + 4), _mm256_unpackhi_epi32(v, zero));
}

SI_TARGET_AVX2 static inline __m256i si_minhash_legacy256(__m256i h, __m256i f, __m256i f_high, __m256i s) {
    const __m256i p = _mm256_set1_epi64x((1ll << 61) - 1), low = _mm256_set1_epi64x(0xffffffffll);
    const __m256i upper = _mm256_slli_epi64(_mm256_mul_epu32(h, f_high), 32);
    const __m256i x = _mm256_add_epi64(_mm256_add_epi64(_mm256_mul_epu32(h, f), upper), s);
    const __m256i y = _mm256_add_epi64(_mm256_and_si256(x, p), _mm256_srli_epi64(x, 61));
    const __m256i less = _mm256_cmpgt_epi64(p, y); /* both are positive */
    return _mm256_and_si256(_mm256_sub_epi64(y, _mm256_andnot_si256(less, p)), low);
}

SI_TARGET_AVX2 static void si_minhash_lower_avx2(int scheme, const uint64_t *h, size_t m, const uint64_t *first,
                                                 const uint64_t *second, uint32_t k, uint64_t *minima) {
    uint32_t j = 0;
    if (scheme == SI_MINHASH_AFFINE32) {
        for (; j + 16 <= k; j += 16) {
            const __m256i f0 = si_minhash_narrow256(first + j), f1 = si_minhash_narrow256(first + j + 8);
            const __m256i s0 = si_minhash_narrow256(second + j), s1 = si_minhash_narrow256(second + j + 8);
            __m256i m0 = si_minhash_narrow256(minima + j), m1 = si_minhash_narrow256(minima + j + 8);
            for (size_t i = 0; i < m; i++) {
                const __m256i x = _mm256_set1_epi32((int)h[i]);
                m0 = _mm256_min_epu32(m0, _mm256_add_epi32(_mm256_mullo_epi32(x, f0), s0));
                m1 = _mm256_min_epu32(m1, _mm256_add_epi32(_mm256_mullo_epi32(x, f1), s1));
            }
            si_minhash_widen256(minima + j, m0);
            si_minhash_widen256(minima + j + 8, m1);
        }
    } else if (scheme == SI_MINHASH_LEGACY) {
        for (; j + 8 <= k; j += 8) {
            const __m256i f0 = _mm256_loadu_si256((const __m256i *)(first + j));
            const __m256i f1 = _mm256_loadu_si256((const __m256i *)(first + j + 4));
            const __m256i g0 = _mm256_srli_epi64(f0, 32), g1 = _mm256_srli_epi64(f1, 32);
            const __m256i s0 = _mm256_loadu_si256((const __m256i *)(second + j));
            const __m256i s1 = _mm256_loadu_si256((const __m256i *)(second + j + 4));
            __m256i m0 = _mm256_loadu_si256((const __m256i *)(minima + j));
            __m256i m1 = _mm256_loadu_si256((const __m256i *)(minima + j + 4));
            for (size_t i = 0; i < m; i++) {
                const __m256i x = _mm256_set1_epi64x((long long)h[i]);
                /* Values are below 2^32, so the upper halves stay zero. */
                m0 = _mm256_min_epu32(m0, si_minhash_legacy256(x, f0, g0, s0));
                m1 = _mm256_min_epu32(m1, si_minhash_legacy256(x, f1, g1, s1));
            }
            _mm256_storeu_si256((__m256i *)(minima + j), m0);
            _mm256_storeu_si256((__m256i *)(minima + j + 4), m1);
        }
    }
    si_minhash_lower_baseline(scheme, h, m, first + j, second + j, k - j, minima + j);
}

#endif
#endif
