/* Bucket keys of bands and sorted postings. The key is frozen as bands/1: it is stored and recomputed by `check`. */
#ifndef SI_BANDS_H
#define SI_BANDS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

static inline uint64_t si_band_mix(uint64_t x) {
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
    return x ^ (x >> 32);
}

/* Key of the `bytes` bytes of band number `band`: little-endian words, the last one filled with zeros, each taken in
 * by xor and the mix; the start is the mixed band number. Bands of up to eight bytes never collide. */
static inline uint64_t si_band_key(const uint8_t *p, uint32_t bytes, uint32_t band) {
    uint64_t x = si_band_mix(((uint64_t)band + 1) * 0x9e3779b97f4a7c15ull);
    for (; bytes >= 8; p += 8, bytes -= 8) x = si_band_mix(x ^ si_load64(p));
    if (bytes) {
        uint8_t last[8] = {0};
        memcpy(last, p, bytes);
        x = si_band_mix(x ^ si_load64(last));
    }
    return x;
}

/* keys[i * bands + j]; band_bytes = rows a band * bytes a slot. */
static void si_band_keys(const uint8_t *signatures, int64_t n, uint64_t width, uint32_t bands, uint32_t band_bytes,
                         uint64_t *keys) {
    for (int64_t i = 0; i < n; i++, signatures += width, keys += bands)
        for (uint32_t j = 0; j < bands; j++) keys[j] = si_band_key(signatures + (size_t)j * band_bytes, band_bytes, j);
}

static int64_t si_count_present(const uint8_t *states, int64_t n) {
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++) m += states[i] >= 2;
    return m;
}

/* Sort postings whose row ids (low 32 bits) rise, by their upper 32 bits: three stable passes of 11, 11 and 10 bits,
 * so the order is that of the full posting. `spare` holds n more; the result is in `postings`. */
static void si_sort_by_key(uint64_t *postings, uint64_t *spare, int64_t n) {
    if (n < 64) {
        for (int64_t i = 1; i < n; i++) {
            const uint64_t p = postings[i];
            int64_t j = i;
            for (; j > 0 && postings[j - 1] > p; j--) postings[j] = postings[j - 1];
            postings[j] = p;
        }
        return;
    }
    uint64_t *count = spare + n; /* 3 * 2048 words, see si_sort_spare */
    memset(count, 0, 3 * 2048 * sizeof *count);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t p = postings[i];
        count[(p >> 32) & 2047]++;
        count[2048 + ((p >> 43) & 2047)]++;
        count[4096 + (p >> 54)]++;
    }
    for (int d = 0; d < 3; d++) {
        uint64_t sum = 0, *c = count + 2048 * d;
        for (int i = 0; i < 2048; i++) {
            const uint64_t here = c[i];
            c[i] = sum;
            sum += here;
        }
    }
    for (int64_t i = 0; i < n; i++) spare[count[(postings[i] >> 32) & 2047]++] = postings[i];
    for (int64_t i = 0; i < n; i++) postings[count[2048 + ((spare[i] >> 43) & 2047)]++] = spare[i];
    for (int64_t i = 0; i < n; i++) spare[count[4096 + (postings[i] >> 54)]++] = postings[i];
    memcpy(postings, spare, (size_t)n * sizeof *postings);
}

static inline size_t si_sort_spare(int64_t n) { return ((size_t)n + 3 * 2048) * sizeof(uint64_t); }

/* Postings of every band from keys (n rows of `bands`), only rows with state >= PRESENT, each band sorted; out has
 * bands * m words. Returns -1 without memory. */
static int si_key_postings(const uint64_t *keys, int64_t n, uint32_t bands, const uint8_t *states, uint32_t first_row,
                           int64_t m, uint64_t *out) {
    uint64_t *spare = (uint64_t *)malloc(si_sort_spare(m));
    if (!spare) return -1;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++, keys += bands) {
        if (states[i] < 2) continue;
        const uint64_t row = (uint32_t)(first_row + (uint64_t)i);
        for (uint32_t j = 0; j < bands; j++)
            out[(size_t)j * (size_t)m + (size_t)at] = (keys[j] & 0xffffffff00000000ull) | row;
        at++;
    }
    for (uint32_t j = 0; j < bands; j++) si_sort_by_key(out + (size_t)j * (size_t)m, spare, m);
    free(spare);
    return 0;
}

static int si_band_postings(const uint8_t *signatures, int64_t n, uint64_t width, uint32_t bands, uint32_t band_bytes,
                            const uint8_t *states, uint32_t first_row, int64_t m, uint64_t *out) {
    uint64_t *spare = (uint64_t *)malloc(si_sort_spare(m));
    if (!spare) return -1;
    for (uint32_t j = 0; j < bands; j++, out += m) {
        int64_t at = 0;
        for (int64_t i = 0; i < n; i++) {
            if (states[i] < 2) continue;
            const uint64_t key = si_band_key(signatures + (size_t)i * width + (size_t)j * band_bytes, band_bytes, j);
            out[at++] = (key & 0xffffffff00000000ull) | (uint32_t)(first_row + (uint64_t)i);
        }
        si_sort_by_key(out, spare, m);
    }
    free(spare);
    return 0;
}

#endif
