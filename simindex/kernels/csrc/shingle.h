/* Shingles: from hashes of tokens (or characters) t[0], t[1], ... to one hash per window of n of them. Frozen (text/1).
 *
 *     shingle i = mix64(t[i] P^(n-1) + t[i+1] P^(n-2) + ... + t[i+n-1])   modulo 2^64
 *
 * so the order counts, every bit of every token reaches every bit, and a window rolls: next = (sum - t[i] P^(n-1)) P +
 * t[i+n]. Content of fewer than n tokens is one shingle of all of them.
 */
#ifndef SI_SHINGLE_H
#define SI_SHINGLE_H

#include "cpu.h"
#include "hash64.h"

#define SI_SHINGLE_MAX 64
#define SI_P UINT64_C(0x152fecd8f70e593b)

/* The hash of one code point as a token of chars:n (bad bytes included). Frozen. */
static inline uint64_t si_char_hash(uint32_t c) { return si_mix64(c + SI_K1); }

/* One shingle of all n tokens. */
static inline uint64_t si_shingle_whole(const uint64_t *t, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum = sum * SI_P + t[i];
    return si_mix64(sum);
}

/* Windows 0 .. count-1 over t[0 .. count + n - 2]. */
static inline __attribute__((always_inline)) void si_shingles_body(const uint64_t *restrict t, size_t count, int n,
                                                                   uint64_t *restrict out) {
    if (n == 1) {
        for (size_t i = 0; i < count; i++)
            out[i] = si_mix64(t[i]);
    } else if (n == 2) {
        for (size_t i = 0; i < count; i++)
            out[i] = si_mix64(t[i] * SI_P + t[i + 1]);
    } else if (n == 3) {
        for (size_t i = 0; i < count; i++)
            out[i] = si_mix64(t[i] * (SI_P * SI_P) + t[i + 1] * SI_P + t[i + 2]);
    } else if (n == 5) {
        const uint64_t p2 = SI_P * SI_P, p3 = p2 * SI_P, p4 = p3 * SI_P;
        for (size_t i = 0; i < count; i++)
            out[i] = si_mix64(t[i] * p4 + t[i + 1] * p3 + t[i + 2] * p2 + t[i + 3] * SI_P + t[i + 4]);
    } else {
        uint64_t power = 1, sum = 0;
        for (int i = 1; i < n; i++)
            power *= SI_P;
        for (int i = 0; i < n - 1; i++)
            sum = sum * SI_P + t[i];
        for (size_t i = 0; i < count; i++) {
            sum = sum * SI_P + t[i + (size_t)n - 1];
            out[i] = sum;
            sum -= t[i] * power;
        }
        for (size_t i = 0; i < count; i++)
            out[i] = si_mix64(out[i]);
    }
}

static void si_shingles_scalar(const uint64_t *t, size_t count, int n, uint64_t *out) {
    si_shingles_body(t, count, n, out);
}

#if SI_X86
/* The plain loops, compiled for vectors of 64-bit products. */
__attribute__((optimize("O3"))) SI_TARGET_AVX512 static void si_shingles_avx512(const uint64_t *t, size_t count, int n,
                                                                                uint64_t *out) {
    si_shingles_body(t, count, n, out);
}
#endif

static void (*si_shingles)(const uint64_t *, size_t, int, uint64_t *) = si_shingles_scalar;

static inline void si_shingle_select(int level) {
    si_shingles = si_shingles_scalar;
#if SI_X86
    if (level >= SI_AVX512)
        si_shingles = si_shingles_avx512;
#else
    (void)level;
#endif
}

#endif
