/* Signature scans over the blocks of a store: by threshold and by top-k, several queries in one pass. */
#ifndef SI_SCAN_H
#define SI_SCAN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "equal.h"
#include "views.h"

#define SI_STATES_OFFSET 48u /* 2-bit states of a signature block's rows */
#define SI_STATE_PRESENT 2u

typedef struct {
    const uint64_t *address;
    uint64_t n_blocks;
    uint32_t rows_per_block, header, width, slot_bytes;
} si_signatures;

static inline int si_is_present(uint64_t block, uint32_t i) {
    const uint8_t *states = (const uint8_t *)(uintptr_t)block + SI_STATES_OFFSET;
    return ((states[i >> 2] >> (2 * (i & 3))) & 3) >= SI_STATE_PRESENT;
}

/* row / rows_per_block by multiplication: exact for 32-bit rows with inverse = 2^64 / rows_per_block rounded up. */
static inline uint64_t si_inverse(uint32_t rows_per_block) { return ~0ull / rows_per_block + 1; }

static inline const uint8_t *si_row(const si_signatures *t, uint64_t inverse, uint32_t row) {
    const uint64_t product = (inverse >> 32) * row + (((inverse & 0xffffffffu) * row) >> 32);
    const uint64_t block = t->rows_per_block == 1 ? row : product >> 32;
    const uint64_t a = t->address[block];
    const uint32_t i = row - (uint32_t)block * t->rows_per_block;
    return a ? (const uint8_t *)(uintptr_t)a + t->header + (uint64_t)i * t->width : (const uint8_t *)0;
}

/* The row's address, with its first lines on their way to the cache. */
static inline const uint8_t *si_fetch_row(const si_signatures *t, uint64_t inverse, uint32_t row) {
    const uint8_t *x = si_row(t, inverse, row);
    if (!x) return x;
    const uint32_t near = t->width < 256 ? t->width : 256;
    for (uint32_t c = 0; c < near; c += 64) __builtin_prefetch(x + c);
    __builtin_prefetch(x + near - 1);
    return x;
}

#define SI_AHEAD 16 /* rows fetched before they are read */

/* Equal slots of stored row pairs; a row of an absent block counts 0. */
static void si_pair_equal(si_signatures t, const uint32_t *a, const uint32_t *b, int64_t m, uint16_t *out) {
    const uint64_t inverse = si_inverse(t.rows_per_block);
    const uint8_t *xs[SI_AHEAD], *ys[SI_AHEAD];
    for (int64_t i = 0; i < m + SI_AHEAD; i++) {
        const int at = (int)(i % SI_AHEAD);
        if (i >= SI_AHEAD) {
            const uint8_t *x = xs[at], *y = ys[at];
            out[i - SI_AHEAD] = x && y ? (uint16_t)si_equal_pair(x, y, t.width, t.slot_bytes) : 0;
        }
        if (i < m) {
            xs[at] = si_fetch_row(&t, inverse, a[i]);
            ys[at] = si_fetch_row(&t, inverse, b[i]);
        }
    }
}

static void si_gather_equal(si_signatures t, const uint8_t *queries, const uint32_t *query_of, const uint32_t *rows,
                            int64_t m, uint16_t *out) {
    const uint64_t inverse = si_inverse(t.rows_per_block);
    const uint8_t *xs[SI_AHEAD];
    for (int64_t i = 0; i < m + SI_AHEAD; i++) {
        const int at = (int)(i % SI_AHEAD);
        const int64_t done = i - SI_AHEAD;
        if (done >= 0) {
            const uint8_t *query = queries + (size_t)query_of[done] * t.width;
            out[done] = xs[at] ? (uint16_t)si_equal_pair(xs[at], query, t.width, t.slot_bytes) : 0;
        }
        if (i < m) xs[at] = si_fetch_row(&t, inverse, rows[i]);
    }
}

/* The first i with rows[i] >= limit, or -1. */
static int64_t si_first_beyond(const uint32_t *rows, int64_t m, uint64_t limit) {
    for (int64_t i = 0; i < m; i++)
        if (rows[i] >= limit) return i;
    return -1;
}

/* What one query has found. Top-k: `least` rises so that all kept counts can still be among the k largest or tied
 * with the k-th; `histogram` counts what is kept. */
typedef struct {
    uint32_t *rows;
    uint16_t *equal;
    uint64_t size, room, at_least; /* at_least: number of kept hits with equal >= least (top-k) */
    uint32_t least;
    uint64_t *histogram;
} si_found;

static void si_found_free(si_found *f, uint32_t n) {
    if (!f) return;
    for (uint32_t i = 0; i < n; i++) {
        free(f[i].rows);
        free(f[i].equal);
        free(f[i].histogram);
    }
    free(f);
}

static si_found *si_found_new(uint32_t n, const uint16_t *min_equal, uint32_t slots) {
    si_found *f = (si_found *)calloc(n ? n : 1, sizeof *f);
    if (!f) return 0;
    for (uint32_t i = 0; i < n; i++) {
        if (min_equal) {
            f[i].least = min_equal[i];
        } else if (!(f[i].histogram = (uint64_t *)calloc(slots + 1, sizeof(uint64_t)))) {
            si_found_free(f, n);
            return 0;
        }
    }
    return f;
}

static void si_found_drop_below(si_found *f) {
    uint64_t kept = 0;
    for (uint64_t i = 0; i < f->size; i++)
        if (f->equal[i] >= f->least) {
            f->rows[kept] = f->rows[i];
            f->equal[kept++] = f->equal[i];
        }
    f->size = kept;
}

static int si_found_push(si_found *f, uint32_t row, uint16_t equal, uint64_t k) {
    if (f->size == f->room) {
        if (f->histogram) si_found_drop_below(f);
        if (f->size * 4 >= f->room * 3) {
            const uint64_t room = f->room ? f->room * 2 : 256;
            uint32_t *rows = (uint32_t *)realloc(f->rows, room * sizeof *rows);
            if (rows) f->rows = rows;
            uint16_t *counts = (uint16_t *)realloc(f->equal, room * sizeof *counts);
            if (counts) f->equal = counts;
            if (!rows || !counts) return -1;
            f->room = room;
        }
    }
    f->rows[f->size] = row;
    f->equal[f->size++] = equal;
    if (f->histogram) {
        f->histogram[equal]++;
        f->at_least++;
        while (f->at_least - f->histogram[f->least] >= k) f->at_least -= f->histogram[f->least++];
    }
    return 0;
}

/* Scan rows 0 .. n_rows-1 for n_queries queries. k = 0: keep counts >= found->least. Returns -1 without memory. */
static int si_scan_equal(si_signatures t, const uint8_t *queries, uint32_t n_queries, uint64_t n_rows,
                         const uint64_t *live, uint64_t k, si_found *found) {
    uint16_t *counts = (uint16_t *)malloc((size_t)t.rows_per_block * sizeof *counts);
    if (!counts) return -1;
    for (uint64_t block = 0; block < t.n_blocks && block * t.rows_per_block < n_rows; block++) {
        const uint64_t address = t.address[block], first = block * t.rows_per_block;
        const uint32_t n = n_rows - first < t.rows_per_block ? (uint32_t)(n_rows - first) : t.rows_per_block;
        if (!address) continue;
        const uint8_t *rows = (const uint8_t *)(uintptr_t)address + t.header;
        for (uint32_t q = 0; q < n_queries; q++) {
            si_found *f = found + q;
            const uint8_t *query = queries + (size_t)q * t.width;
            const uint32_t largest = si_equal_rows(rows, n, query, t.width, t.slot_bytes, counts);
            if (largest < f->least) continue;
            for (uint32_t i = 0; i < n; i++) {
                const uint32_t row = (uint32_t)(first + i);
                if (counts[i] < f->least || !si_is_present(address, i) || !si_is_live(live, row)) continue;
                if (si_found_push(f, row, counts[i], k)) {
                    free(counts);
                    return -1;
                }
            }
        }
    }
    if (k)
        for (uint32_t q = 0; q < n_queries; q++) si_found_drop_below(found + q);
    free(counts);
    return 0;
}

#endif
