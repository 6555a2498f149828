/* Classic MinHash: slot j of a set is the least value of hash function j over the set. Frozen as minhash/1.
 *
 * Four schemes. With f = first[j] and s = second[j]:
 *     simindex   (h ^ f) * s                            64-bit; constants from si_minhash_constants
 *     affine32   f * fmix32(h) + s  mod 2^32            datasketch 2.x; h is a 32-bit hash of the token
 *     affine64   f * fmix64(h) + s  mod 2^64            datasketch 2.x; h is a 64-bit hash of the token
 *     legacy     ((f * h + s mod 2^64) mod 2^61 - 1) mod 2^32      datasketch before 2.0; h is a 32-bit hash
 * Minima are kept in 64 bits, so that ties between different elements do not matter at any size of set. */
#ifndef SI_MINHASH_H
#define SI_MINHASH_H

#include <stdint.h>
#include <string.h>

#include "cpu.h"
#include "load.h"

#define SI_MINHASH_MAX_K 4096
#define SI_MINHASH_SIMINDEX 0
#define SI_MINHASH_AFFINE32 1
#define SI_MINHASH_AFFINE64 2
#define SI_MINHASH_LEGACY 3

static inline uint64_t si_minhash_splitmix(uint64_t i) {
    uint64_t x = i * 0x9e3779b97f4a7c15ull + 0x6d696e68617368ull; /* "minhash" */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static void si_minhash_constants(uint32_t k, uint64_t *first, uint64_t *second) {
    for (uint64_t j = 0; j < k; j++) {
        first[j] = si_minhash_splitmix(2 * j + 1);
        second[j] = si_minhash_splitmix(2 * j + 2) | 1;
    }
}

/* MurmurHash3's finalizers (Appleby, public domain): what datasketch applies to a token's hash before the slots. */
static inline uint32_t si_fmix32(uint32_t x) {
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

static inline uint64_t si_fmix64(uint64_t x) {
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
}

static inline uint64_t si_mod_mersenne61(uint64_t x) {
    const uint64_t p = (1ull << 61) - 1;
    x = (x & p) + (x >> 61);
    return x >= p ? x - p : x;
}

static inline uint64_t si_minhash_largest(int scheme) {
    return scheme == SI_MINHASH_AFFINE32 || scheme == SI_MINHASH_LEGACY ? 0xffffffffull : ~0ull;
}

static inline uint64_t si_minhash_value(int scheme, uint64_t h, uint64_t first, uint64_t second) {
    switch (scheme) {
    case SI_MINHASH_AFFINE32: return (uint32_t)(first * h + second);
    case SI_MINHASH_AFFINE64: return first * h + second;
    case SI_MINHASH_LEGACY: return si_mod_mersenne61(first * h + second) & 0xffffffffull;
    default: return (h ^ first) * second;
    }
}

/* What is done once to an input hash. */
static inline uint64_t si_minhash_input(int scheme, uint64_t h) {
    if (scheme == SI_MINHASH_AFFINE32) return si_fmix32((uint32_t)h);
    if (scheme == SI_MINHASH_LEGACY) return (uint32_t)h;
    return scheme == SI_MINHASH_AFFINE64 ? si_fmix64(h) : h;
}

#define SI_MINHASH_CHUNK 512

/* Lower the k minima by m <= SI_MINHASH_CHUNK prepared hashes. */
static void si_minhash_lower_baseline(int scheme, const uint64_t *h, size_t m, const uint64_t *first,
                                      const uint64_t *second, uint32_t k, uint64_t *minima) {
    for (uint32_t j = 0; j < k; j++) {
        uint64_t least = minima[j];
        const uint64_t f = first[j], s = second[j];
        for (size_t i = 0; i < m; i++) {
            const uint64_t v = si_minhash_value(scheme, h[i], f, s);
            least = v < least ? v : least;
        }
        minima[j] = least;
    }
}

#include "minhash_simd.h"

static void (*si_minhash_lower)(int, const uint64_t *, size_t, const uint64_t *, const uint64_t *, uint32_t,
                                uint64_t *) = si_minhash_lower_baseline;

static void si_minhash_select(int level) {
    si_minhash_lower = si_minhash_lower_baseline;
#if SI_X86
    if (level >= SI_AVX512) si_minhash_lower = si_minhash_lower_avx512;
    else if (level >= SI_AVX2) si_minhash_lower = si_minhash_lower_avx2;
#else
    (void)level;
#endif
}

static void si_minhash_item(int scheme, const uint64_t *h, size_t n, const uint64_t *first, const uint64_t *second,
                            uint32_t k, uint64_t *minima) {
    uint64_t chunk[SI_MINHASH_CHUNK];
    const uint64_t largest = si_minhash_largest(scheme);
    for (uint32_t j = 0; j < k; j++) minima[j] = largest;
    while (n) {
        const size_t m = n < SI_MINHASH_CHUNK ? n : SI_MINHASH_CHUNK;
        for (size_t i = 0; i < m; i++) chunk[i] = si_minhash_input(scheme, h[i]);
        si_minhash_lower(scheme, chunk, m, first, second, k, minima);
        h += m;
        n -= m;
    }
}

/* Slots of the width that the scheme's values have are stored as they are. Narrower ones are the low bits of a
 * bijective mix of the value (low bits alone would depend on few bits of the element), so unequal slots agree with
 * probability 2^-bits. */
static inline uint64_t si_minhash_stored(int scheme, int bits, uint64_t v) {
    const int own = scheme == SI_MINHASH_AFFINE64 ? 64 : scheme == SI_MINHASH_SIMINDEX ? 0 : 32;
    return bits == own ? v : si_fmix64(v + 0x9e3779b97f4a7c15ull);
}

static void si_minhash_pack(int scheme, int bits, const uint64_t *minima, uint32_t k, uint8_t *out) {
    for (uint32_t j = 0; j < k; j++) {
        const uint64_t v = si_minhash_stored(scheme, bits, minima[j]);
        if (bits == 8) out[j] = (uint8_t)v;
        else if (bits == 16) si_store16(out + 2 * j, (uint16_t)v);
        else if (bits == 32) si_store32(out + 4 * j, (uint32_t)v);
        else si_store64(out + 8 * j, v);
    }
}

static void si_minhash_batch(int scheme, const uint64_t *h, const int64_t *ptr, int64_t n, const uint64_t *first,
                             const uint64_t *second, uint32_t k, uint64_t *out) {
    for (int64_t i = 0; i < n; i++, out += k)
        si_minhash_item(scheme, h + ptr[i], (size_t)(ptr[i + 1] - ptr[i]), first, second, k, out);
}

static void si_minhash_batch_packed(int scheme, const uint64_t *h, const int64_t *ptr, int64_t n,
                                    const uint64_t *first, const uint64_t *second, uint32_t k, int bits,
                                    uint8_t *out) {
    const size_t width = (size_t)k * (size_t)bits / 8;
    uint64_t minima[SI_MINHASH_MAX_K];
    for (int64_t i = 0; i < n; i++, out += width) {
        const size_t m = (size_t)(ptr[i + 1] - ptr[i]);
        if (!m) {
            memset(out, 0, width);
            continue;
        }
        si_minhash_item(scheme, h + ptr[i], m, first, second, k, minima);
        si_minhash_pack(scheme, bits, minima, k, out);
    }
}

static void si_minhash_pack_batch(int scheme, int bits, const uint64_t *minima, int64_t n, uint32_t k, uint8_t *out) {
    const size_t width = (size_t)k * (size_t)bits / 8;
    for (int64_t i = 0; i < n; i++, minima += k, out += width) si_minhash_pack(scheme, bits, minima, k, out);
}

#endif
