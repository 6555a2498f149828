/* Ascending sort and removal of repeats for arrays of 64-bit hashes.
 *
 * Hashes are uniform, so one distribution over the top bits leaves about one key a bucket and a short insertion pass
 * ends the work. Other inputs (few distinct top bits, many repeats) stay correct and n log n at worst: a crowded
 * range goes to a radix sort over all digits. */
#ifndef SI_SETSORT_H
#define SI_SETSORT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SI_SORT_SMALL 4096u  /* keys that one distribution handles in cache */
#define SI_SORT_CROWDED 24u  /* more keys than this in one bucket: not uniform */
#define SI_SORT_COUNTERS (2u * SI_SORT_SMALL + 1u)

static inline uint32_t si_bit_length64(uint64_t x) { return x ? 64u - (uint32_t)__builtin_clzll(x) : 0u; }

static inline void si_insertion_sort(uint64_t *a, size_t m) {
    for (size_t i = 1; i < m; i++) {
        uint64_t x = a[i];
        size_t j = i;
        while (j && a[j - 1] > x) { a[j] = a[j - 1]; j--; }
        a[j] = x;
    }
}

/* Least significant digit first, eight passes, digits that are all equal skipped. Result in a. */
static inline void si_radix_sort(uint64_t *a, uint64_t *spare, size_t m) {
    uint64_t *from = a, *to = spare;
    uint32_t count[256];
    for (uint32_t shift = 0; shift < 64; shift += 8) {
        memset(count, 0, sizeof count);
        for (size_t i = 0; i < m; i++) count[(from[i] >> shift) & 255]++;
        if (count[(from[0] >> shift) & 255] == m) continue;
        uint32_t sum = 0;
        for (uint32_t d = 0; d < 256; d++) { uint32_t c = count[d]; count[d] = sum; sum += c; }
        for (size_t i = 0; i < m; i++) to[count[(from[i] >> shift) & 255]++] = from[i];
        uint64_t *t = from; from = to; to = t;
    }
    if (from != a) memcpy(a, from, m * sizeof *a);
}

/* Up to SI_SORT_SMALL keys that agree in their top `skip` bits. Result in a. */
static inline void si_sort_small(uint64_t *a, uint64_t *spare, size_t m, uint32_t skip, uint32_t *counter) {
    if (m <= 12 || skip >= 64) { si_insertion_sort(a, skip >= 64 ? 0 : m); return; }
    uint32_t bits = si_bit_length64(m - 1) + 1; /* 2 to 4 buckets a key */
    if (bits > 64 - skip) bits = 64 - skip;
    uint32_t down = 64 - bits, buckets = 1u << bits, most = 0, sum = 0;
    memset(counter, 0, (size_t)buckets * sizeof *counter);
    for (size_t i = 0; i < m; i++) counter[(a[i] << skip) >> down]++;
    for (uint32_t b = 0; b < buckets; b++) {
        uint32_t c = counter[b];
        counter[b] = sum;
        sum += c;
        most = c > most ? c : most;
    }
    if (most > SI_SORT_CROWDED) { si_radix_sort(a, spare, m); return; }
    for (size_t i = 0; i < m; i++) spare[counter[(a[i] << skip) >> down]++] = a[i];
    si_insertion_sort(spare, m);
    memcpy(a, spare, m * sizeof *a);
}

/* Sort m keys that agree in their top `skip` bits; spare holds m keys, counter SI_SORT_COUNTERS. Result in a. */
static void si_sort64(uint64_t *a, uint64_t *spare, size_t m, uint32_t skip, uint32_t *counter) {
    if (m <= SI_SORT_SMALL) { si_sort_small(a, spare, m, skip, counter); return; }
    while (skip < 64) {
        size_t start[257];
        memset(start, 0, sizeof start);
        for (size_t i = 0; i < m; i++) start[((a[i] << skip) >> 56) + 1]++;
        if (start[((a[0] << skip) >> 56) + 1] == m) { skip += 8; continue; }
        size_t next[256];
        for (uint32_t d = 0; d < 256; d++) { start[d + 1] += start[d]; next[d] = start[d]; }
        for (size_t i = 0; i < m; i++) spare[next[(a[i] << skip) >> 56]++] = a[i];
        memcpy(a, spare, m * sizeof *a);
        for (uint32_t d = 0; d < 256; d++)
            if (start[d + 1] - start[d] > 1)
                si_sort64(a + start[d], spare + start[d], start[d + 1] - start[d], skip + 8, counter);
        return;
    }
}

/* Remove repeats from a sorted array; returns how many remain. */
static inline size_t si_unique64(uint64_t *a, size_t m) {
    if (!m) return 0;
    size_t k = 1;
    for (size_t i = 1; i < m; i++) {
        uint64_t x = a[i];
        a[k] = x;
        k += x != a[k - 1];
    }
    return k;
}

#endif
