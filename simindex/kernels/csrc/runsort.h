/* Sorting and merging of postings (u64: key bits << 32 | row) and of rows (u32). */
#ifndef SI_RUNSORT_H
#define SI_RUNSORT_H

#include <stdint.h>
#include <string.h>

#define SI_SMALL_SORT 48

static inline void si_small_sort64(uint64_t *a, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        uint64_t v = a[i];
        int64_t j = i;
        for (; j > 0 && a[j - 1] > v; j--) a[j] = a[j - 1];
        a[j] = v;
    }
}

static inline void si_small_sort32(uint32_t *a, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        uint32_t v = a[i];
        int64_t j = i;
        for (; j > 0 && a[j - 1] > v; j--) a[j] = a[j - 1];
        a[j] = v;
    }
}

/* Stable sort by the bytes first_byte..7 (0 is the lowest), least significant first; bytes that are the same in all
 * values cost one look. tmp has room for n. The result is in a. */
static void si_radix_sort64(uint64_t *a, uint64_t *tmp, int64_t n, int first_byte) {
    if (n <= SI_SMALL_SORT && first_byte == 0) {
        si_small_sort64(a, n);
        return;
    }
    uint32_t counts[8][256];
    memset(counts, 0, sizeof counts);
    for (int64_t i = 0; i < n; i++) {
        uint64_t v = a[i];
        for (int b = 0; b < 8; b++) counts[b][(v >> (8 * b)) & 255]++;
    }
    uint64_t *from = a, *to = tmp;
    for (int b = first_byte; b < 8; b++) {
        uint32_t *count = counts[b], sum = 0;
        if (n && count[(a[0] >> (8 * b)) & 255] == (uint64_t)n) continue;
        for (int d = 0; d < 256; d++) {
            uint32_t c = count[d];
            count[d] = sum;
            sum += c;
        }
        for (int64_t i = 0; i < n; i++) {
            uint64_t v = from[i];
            to[count[(v >> (8 * b)) & 255]++] = v;
        }
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != a) memcpy(a, from, (size_t)n * sizeof *a);
}

static void si_sort32(uint32_t *a, uint32_t *tmp, int64_t n) {
    if (n <= SI_SMALL_SORT) {
        si_small_sort32(a, n);
        return;
    }
    uint32_t counts[4][256];
    memset(counts, 0, sizeof counts);
    for (int64_t i = 0; i < n; i++)
        for (int b = 0; b < 4; b++) counts[b][(a[i] >> (8 * b)) & 255]++;
    uint32_t *from = a, *to = tmp;
    for (int b = 0; b < 4; b++) {
        uint32_t *count = counts[b], sum = 0;
        if (count[(a[0] >> (8 * b)) & 255] == (uint64_t)n) continue;
        for (int d = 0; d < 256; d++) {
            uint32_t c = count[d];
            count[d] = sum;
            sum += c;
        }
        for (int64_t i = 0; i < n; i++) to[count[(from[i] >> (8 * b)) & 255]++] = from[i];
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != a) memcpy(a, from, (size_t)n * sizeof *a);
}

/* Merge two sorted arrays, from both ends at once where both are long: two independent chains of loads. */
static void si_merge2(const uint64_t *a, int64_t na, const uint64_t *b, int64_t nb, uint64_t *o) {
    const uint64_t *ae = a + na, *be = b + nb;
    uint64_t *oe = o + na + nb;
    for (;;) {
        int64_t m = ((ae - a) < (be - b) ? (ae - a) : (be - b)) / 2;
        if (m < 4) break;
        for (int64_t i = 0; i < m; i++) {
            uint64_t x = *a, y = *b;
            int t = x <= y;
            *o++ = t ? x : y;
            a += t;
            b += !t;
            x = ae[-1];
            y = be[-1];
            t = x > y;
            *--oe = t ? x : y;
            ae -= t;
            be -= !t;
        }
    }
    while (a < ae && b < be) {
        uint64_t x = *a, y = *b;
        int t = x <= y;
        *o++ = t ? x : y;
        a += t;
        b += !t;
    }
    memcpy(o, a, (size_t)(ae - a) * sizeof *a);
    memcpy(o + (ae - a), b, (size_t)(be - b) * sizeof *b);
}

/* Merge k sorted pieces that lie one after the other in a (piece i ends at ends[i]); `ends` is destroyed.
 * Returns a or tmp, whichever holds the result. */
static uint64_t *si_merge_pieces(uint64_t *a, uint64_t *tmp, int64_t *ends, int64_t k) {
    while (k > 1) {
        int64_t start = 0, out = 0, i = 0;
        for (; i + 1 < k; i += 2) {
            si_merge2(a + start, ends[i] - start, a + ends[i], ends[i + 1] - ends[i], tmp + start);
            start = ends[i + 1];
            ends[out++] = start;
        }
        if (i < k) {
            memcpy(tmp + start, a + start, (size_t)(ends[i] - start) * sizeof *a);
            ends[out++] = ends[i];
        }
        k = out;
        uint64_t *swap = a;
        a = tmp;
        tmp = swap;
    }
    return a;
}

#endif
