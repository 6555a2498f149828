/* "h64/1": the 64-bit hash of byte strings that every stored feature comes from. Frozen: changing it breaks stores.
 *
 * The string is read as 16-byte blocks of two little-endian words, the last one (1 to 16 bytes) padded with zeros.
 *     state = seed ^ K0;   all blocks but the last:  state = fold(a ^ K1 ^ state, b ^ K2)  + K3
 *     h = fold(a ^ K1 ^ state, b ^ K2 ^ length * K3);   h64 = finish(h)
 * fold(x, y) is the 128-bit product's high half xor its low half; the empty string has one block of zeros.
 * The constants are the first 64 fractional bits of square roots of primes (17, 19, ...), made odd.
 */
#ifndef SI_HASH64_H
#define SI_HASH64_H

#include "load.h"
#include <stddef.h>

#define SI_K0 UINT64_C(0x1f83d9abfb41bd6b)
#define SI_K1 UINT64_C(0x5be0cd19137e2179)
#define SI_K2 UINT64_C(0xcbbb9d5dc1059ed9)
#define SI_K3 UINT64_C(0x629a292a367cd507)

static inline uint64_t si_fold128(uint64_t x, uint64_t y) {
#if defined(__SIZEOF_INT128__)
    __extension__ unsigned __int128 product = (unsigned __int128)x * y;
    return (uint64_t)(product >> 64) ^ (uint64_t)product;
#else
    uint64_t xl = (uint32_t)x, xh = x >> 32, yl = (uint32_t)y, yh = y >> 32;
    uint64_t low = xl * yl, middle = xh * yl + (low >> 32), other = xl * yh + (uint32_t)middle;
    return (xh * yh + (middle >> 32) + (other >> 32)) ^ ((other << 32) | (uint32_t)low);
#endif
}

/* A bijection of 64 bits in which every input bit reaches every output bit. Frozen. */
static inline uint64_t si_mix64(uint64_t x) {
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 29;
    x *= UINT64_C(0x94d049bb133111eb);
    x ^= x >> 32;
    return x;
}

static inline uint64_t si_hash_finish(uint64_t h) {
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    return h ^ (h >> 29);
}

/* Take one block that is not the last into the state. */
static inline uint64_t si_hash_block(uint64_t state, uint64_t a, uint64_t b) {
    return si_fold128(a ^ SI_K1 ^ state, b ^ SI_K2) + SI_K3;
}

/* The hash, from the state before the last block, its words and the whole length in bytes. */
static inline uint64_t si_hash_last(uint64_t state, uint64_t a, uint64_t b, uint64_t length) {
    return si_hash_finish(si_fold128(a ^ SI_K1 ^ state, b ^ SI_K2 ^ (length * SI_K3)));
}

/* The last block's two words when only its own bytes may be read. */
static inline void si_hash_tail(const uint8_t *p, size_t n, uint64_t *a, uint64_t *b) {
    uint8_t block[16] = {0};
    if (n)
        memcpy(block, p, n);
    *a = si_load64(block);
    *b = si_load64(block + 8);
}

static inline uint64_t si_hash64(const uint8_t *p, size_t n, uint64_t seed) {
    uint64_t state = seed ^ SI_K0, a, b;
    size_t left = n;
    for (; left > 16; left -= 16, p += 16)
        state = si_hash_block(state, si_load64(p), si_load64(p + 8));
    if (left == 16)
        return si_hash_last(state, si_load64(p), si_load64(p + 8), n);
    si_hash_tail(p, left, &a, &b);
    return si_hash_last(state, a, b, n);
}

#endif
