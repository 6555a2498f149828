/* Fast Similarity Sketching with AVX-512: the same minima as fastsim.h, found with less work.
 *
 * Vectors only decide which hashes can matter; those are appended to a small buffer and taken into the slots one by
 * one, so two lanes that meet in one slot lose nothing. Round 0 filters by the largest value of a group of slots,
 * later rounds by a bitmap of the slots that are still open. With few hashes the lanes are eight rounds of one hash
 * instead of eight hashes of one round: running a round that is not needed changes nothing. */
#ifndef SI_FASTSIM_AVX512_H
#define SI_FASTSIM_AVX512_H

#if SI_X86

#define SI_FASTSIM_BUFFER 512
#define SI_FASTSIM_FEW 72 /* below this number of hashes lanes are rounds (benchmarks/bench_sign.py) */

/* y: slot in the upper half, value in the lower. */
SI_TARGET_AVX512 static inline void si_fastsim_take512(uint32_t *slots, const uint64_t *y, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t j = (uint32_t)(y[i] >> 32), v = (uint32_t)y[i], old = slots[j];
        slots[j] = v < old ? v : old;
    }
}

SI_TARGET_AVX512 static inline void si_fastsim_scalar0_512(uint32_t *slots, int q, const uint64_t *h, size_t n) {
#pragma GCC unroll 2
    for (size_t i = 0; i < n; i++) {
        const uint64_t m = h[i];
        const uint32_t j = (uint32_t)(m >> (64 - q)), v = (uint32_t)((m << q) >> 33), old = slots[j];
        slots[j] = v < old ? v : old;
    }
}

/* Round 0 for k = 2^q >= 32. Slots are in 32 groups by their low five bits; a hash whose leading fraction bits exceed
 * the largest value of its group cannot lower any slot. */
SI_TARGET_AVX512 static void si_fastsim_round0_512(uint32_t *slots, si_fastsim_shape s, const uint64_t *h, size_t n) {
    const int q = s.power;
    const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    const __m128i to_group = _mm_cvtsi32_si128(32 - q), to_fraction = _mm_cvtsi32_si128(q);
    uint64_t buffer[SI_FASTSIM_BUFFER + 16];
    size_t done = n < 2 * s.k + 64 ? n : 2 * s.k;
    si_fastsim_scalar0_512(slots, q, h, done);
    while (done < n) {
        __m512i low = _mm512_loadu_si512(slots), high = _mm512_loadu_si512(slots + 16);
        for (uint32_t j = 32; j < s.k; j += 32) {
            low = _mm512_max_epu32(low, _mm512_loadu_si512(slots + j));
            high = _mm512_max_epu32(high, _mm512_loadu_si512(slots + j + 16));
        }
        /* Values of later rounds (streams) become large numbers with the shift, open slots too: they let all pass. */
        const __m512i top = _mm512_set1_epi32((int)0x80000000);
        low = _mm512_mask_set1_epi32(_mm512_slli_epi32(low, 1), _mm512_test_epi32_mask(low, top), -1);
        high = _mm512_mask_set1_epi32(_mm512_slli_epi32(high, 1), _mm512_test_epi32_mask(high, top), -1);
        const size_t step = done < 1024 ? 192 : SI_FASTSIM_BUFFER;
        const size_t stop = n - done < step ? n : done + step;
        size_t kept = 0;
        for (; done + 16 <= stop; done += 16) {
            const __m512i m0 = _mm512_loadu_si512(h + done), m1 = _mm512_loadu_si512(h + done + 8);
            const __m512i upper = _mm512_permutex2var_epi32(m0, odd, m1);
            const __m512i limit = _mm512_permutex2var_epi32(low, _mm512_srl_epi32(upper, to_group), high);
            const uint32_t pass = _mm512_cmple_epu32_mask(_mm512_sll_epi32(upper, to_fraction), limit);
            _mm512_storeu_si512(buffer + kept, _mm512_maskz_compress_epi64((__mmask8)pass, m0));
            kept += (size_t)_mm_popcnt_u32(pass & 255);
            _mm512_storeu_si512(buffer + kept, _mm512_maskz_compress_epi64((__mmask8)(pass >> 8), m1));
            kept += (size_t)_mm_popcnt_u32(pass >> 8);
        }
        si_fastsim_scalar0_512(slots, q, buffer, kept);
        if (stop == n) {
            si_fastsim_scalar0_512(slots, q, h + done, n - done);
            done = n;
        }
    }
}

/* Which slots are >= base, one bit each; returns how many. */
SI_TARGET_AVX512 static inline uint32_t si_fastsim_open512(const uint32_t *slots, uint32_t k, uint32_t base,
                                                           uint64_t *open) {
    const __m512i least = _mm512_set1_epi32((int)base);
    uint32_t count = 0;
    uint32_t j = 0;
    for (; j + 64 <= k; j += 64) {
        const uint64_t a = _mm512_cmpge_epu32_mask(_mm512_loadu_si512(slots + j), least);
        const uint64_t b = _mm512_cmpge_epu32_mask(_mm512_loadu_si512(slots + j + 16), least);
        const uint64_t c = _mm512_cmpge_epu32_mask(_mm512_loadu_si512(slots + j + 32), least);
        const uint64_t d = _mm512_cmpge_epu32_mask(_mm512_loadu_si512(slots + j + 48), least);
        const uint64_t word = a | b << 16 | c << 32 | d << 48;
        open[j >> 6] = word;
        count += (uint32_t)_mm_popcnt_u64(word);
    }
    if (j < k) {
        uint64_t word = 0;
        for (uint32_t i = j; i < k; i += 16) {
            const __mmask16 in = k - i >= 16 ? 0xffff : (__mmask16)((1u << (k - i)) - 1);
            const __m512i v = _mm512_maskz_loadu_epi32(in, slots + i);
            word |= (uint64_t)_mm512_mask_cmpge_epu32_mask(in, v, least) << (i - j);
        }
        open[j >> 6] = word;
        count += (uint32_t)_mm_popcnt_u64(word);
    }
    return count;
}

typedef struct {
    si_fastsim_shape s;
    __m512i k;
    __m128i shift_throw; /* k = 2^q: m * k / 2^32 is m >> (32 - q) */
    __m128i shift_rank;  /* fraction to rank */
    const uint64_t *open;
    __m512i word0_7;
} si_fastsim_lanes;

SI_TARGET_AVX512 static inline __m512i si_fastsim_throw512(const si_fastsim_lanes *l, __m512i mixed) {
    if (l->s.power >= 0) return _mm512_srl_epi64(mixed, l->shift_throw);
    const __m512i high = _mm512_mul_epu32(_mm512_srli_epi64(mixed, 32), l->k);
    return _mm512_add_epi64(high, _mm512_srli_epi64(_mm512_mul_epu32(mixed, l->k), 32));
}

/* Lanes whose slot is open. */
SI_TARGET_AVX512 static inline __mmask8 si_fastsim_hits512(const si_fastsim_lanes *l, __m512i thrown) {
    const __m512i index = _mm512_srli_epi64(thrown, 38);
    const __m512i word = l->s.k <= 512 ? _mm512_permutexvar_epi64(index, l->word0_7)
                                       : _mm512_i64gather_epi64(index, (const void *)l->open, 8);
    return _mm512_test_epi64_mask(_mm512_rorv_epi64(word, _mm512_srli_epi64(thrown, 32)), _mm512_set1_epi64(1));
}

/* slot << 32 | base | rank, from a throw. */
SI_TARGET_AVX512 static inline __m512i si_fastsim_value512(const si_fastsim_lanes *l, __m512i thrown, __m512i base) {
    return _mm512_or_si512(_mm512_mask_srl_epi32(thrown, 0x5555, thrown, l->shift_rank), base);
}

/* One round, lanes are hashes. The open slots are those before the round. */
SI_TARGET_AVX512 static void si_fastsim_round512(uint32_t *slots, const si_fastsim_lanes *l, uint32_t r,
                                                   const uint64_t *h, size_t n) {
    const __m512i flip = _mm512_set1_epi64((long long)si_fastsim_flip[r]);
    const __m512i multiplier = _mm512_set1_epi64((long long)si_fastsim_multiplier[r]);
    const __m512i base = _mm512_set1_epi64((long long)si_fastsim_base(l->s, r));
    uint64_t buffer[SI_FASTSIM_BUFFER + 8];
    size_t kept = 0;
    for (size_t i = 0; i < n; i += 8) {
        const __mmask8 in = n - i >= 8 ? 0xff : (__mmask8)((1u << (n - i)) - 1);
        const __m512i hash = _mm512_maskz_loadu_epi64(in, h + i);
        const __m512i thrown = si_fastsim_throw512(l, _mm512_mullo_epi64(_mm512_xor_si512(hash, flip), multiplier));
        const __mmask8 hits = si_fastsim_hits512(l, thrown) & in;
        const __m512i y = si_fastsim_value512(l, thrown, base);
        _mm512_storeu_si512(buffer + kept, _mm512_maskz_compress_epi64(hits, y));
        kept += (size_t)_mm_popcnt_u32(hits);
        if (kept > SI_FASTSIM_BUFFER - 8) {
            si_fastsim_take512(slots, buffer, kept);
            kept = 0;
        }
    }
    si_fastsim_take512(slots, buffer, kept);
}

/* `groups` times eight rounds from round r on (below k), lanes are rounds; groups * n <= SI_FASTSIM_FEW. */
SI_TARGET_AVX512 static void si_fastsim_rounds512(uint32_t *slots, const si_fastsim_lanes *l, uint32_t r,
                                                  uint32_t groups, const uint64_t *h, size_t n) {
    const __m128i tag = _mm_cvtsi32_si128(31 - l->s.tag_bits);
    uint64_t buffer[8 * SI_FASTSIM_FEW + 8];
    size_t kept = 0;
    for (; groups && r < l->s.k; groups--, r += 8) {
        const __m512i flip = _mm512_loadu_si512(si_fastsim_flip + r);
        const __m512i multiplier = _mm512_loadu_si512(si_fastsim_multiplier + r);
        const __mmask8 in = l->s.k - r >= 8 ? 0xff : (__mmask8)((1u << (l->s.k - r)) - 1);
        const __m512i number = _mm512_add_epi64(_mm512_set1_epi64((long long)r - 1),
                                                _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
        const __m512i base = _mm512_or_si512(_mm512_set1_epi64(0x80000000ll), _mm512_sll_epi64(number, tag));
        for (size_t i = 0; i < n; i++) {
            const __m512i hash = _mm512_set1_epi64((long long)h[i]);
            const __m512i mixed = _mm512_mullo_epi64(_mm512_xor_si512(hash, flip), multiplier);
            const __m512i thrown = si_fastsim_throw512(l, mixed);
            const __mmask8 hits = si_fastsim_hits512(l, thrown) & in;
            const __m512i y = si_fastsim_value512(l, thrown, base);
            _mm512_storeu_si512(buffer + kept, _mm512_maskz_compress_epi64(hits, y));
            kept += (size_t)_mm_popcnt_u32(hits);
        }
    }
    si_fastsim_take512(slots, buffer, kept);
}

/* The last round: eight slots side by side, where one of them is open. */
SI_TARGET_AVX512 static void si_fastsim_last512(uint32_t *slots, const si_fastsim_lanes *l, const uint64_t *h,
                                                size_t n) {
    const __m512i base = _mm512_set1_epi64((long long)si_fastsim_base(l->s, l->s.k));
    const __m128i shift = _mm_cvtsi32_si128(32 + l->s.tag_bits + 1);
    for (uint32_t j = 0; j < l->s.k; j += 8) {
        const __mmask8 mine = (__mmask8)(l->open[j >> 6] >> (j & 63));
        if (!mine) continue;
        const __m512i flip = _mm512_loadu_si512(si_fastsim_flip + SI_FASTSIM_MAX_K + j);
        const __m512i multiplier = _mm512_loadu_si512(si_fastsim_multiplier + SI_FASTSIM_MAX_K + j);
        __m512i least = _mm512_set1_epi64(SI_FASTSIM_OPEN - 1);
        for (size_t i = 0; i < n; i++) {
            const __m512i hash = _mm512_set1_epi64((long long)h[i]);
            const __m512i mixed = _mm512_mullo_epi64(_mm512_xor_si512(hash, flip), multiplier);
            least = _mm512_min_epu64(least, _mm512_or_si512(_mm512_srl_epi64(mixed, shift), base));
        }
        const __m256i old = _mm256_maskz_loadu_epi32(mine, slots + j);
        _mm256_mask_storeu_epi32(slots + j, mine, _mm256_min_epu32(old, _mm512_cvtepi64_epi32(least)));
    }
}

SI_TARGET_AVX512 static void si_fastsim_update_avx512(uint32_t *slots, si_fastsim_shape s, const uint64_t *h,
                                                      size_t n) {
    uint64_t open[SI_FASTSIM_MAX_K / 64] __attribute__((aligned(64)));
    si_fastsim_lanes l;
    if (!n) return;
    if (s.power >= 5) si_fastsim_round0_512(slots, s, h, n);
    else si_fastsim_round0(slots, s, h, n);
    _mm512_store_si512(open, _mm512_setzero_si512());
    l.s = s;
    l.k = _mm512_set1_epi64(s.k);
    l.shift_throw = _mm_cvtsi32_si128(32 - s.power);
    l.shift_rank = _mm_cvtsi32_si128(s.tag_bits + 1);
    l.open = open;
    for (uint32_t r = 1; r < s.k;) {
        if (!si_fastsim_open512(slots, s.k, si_fastsim_base(s, r), open)) return;
        /* Small bitmaps go through registers: a wide load of what was just stored would wait for the stores. */
        if (s.k <= 128) l.word0_7 = _mm512_zextsi128_si512(_mm_set_epi64x((long long)open[1], (long long)open[0]));
        else if (s.k <= 512) l.word0_7 = _mm512_load_si512(open);
        if (n <= SI_FASTSIM_FEW) {
            const uint32_t groups = n <= 4 ? 8 : n <= 9 ? 4 : n <= 24 ? 2 : 1;
            si_fastsim_rounds512(slots, &l, r, groups, h, n);
            r += 8 * groups;
        } else {
            si_fastsim_round512(slots, &l, r, h, n);
            r++;
        }
    }
    if (si_fastsim_open512(slots, s.k, si_fastsim_base(s, s.k), open)) si_fastsim_last512(slots, &l, h, n);
}

#endif
#endif
