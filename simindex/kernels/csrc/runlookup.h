/* Look bucket keys up in many runs at once.
 *
 * The caller flattens what it knows of the runs into one table of u64:
 *   [0] bands  [1] sources  [2] blocks  [3] 0
 *   band_start[bands + 1]   the sources of band b are band_start[b]..band_start[b + 1]
 *   source[sources][3]      lowest posting that counts, number of its first block, number of blocks
 *   first[blocks]           lowest posting of the block (or any lower value): ascending within a source
 *   block[blocks][4]        address (0: not fetched), count, first posting, scale of the directory
 * Probes are staged in groups, so that the cache misses of a group overlap: find the block, read the directory, read
 * the postings. A hit is a range of postings; one posting alone is kept as its row. */
#ifndef SI_RUNLOOKUP_H
#define SI_RUNLOOKUP_H

#include <stdlib.h>

#include "runblock.h"
#include "runcount.h"
#include "runsort.h"

#define SI_GROUP 32
#define SI_QUERIES 131072   /* the most queries of a round of a batch: dense rounds read the runs in sequence */
#define SI_RANGES (1 << 22) /* about the most ranges of a round */

typedef struct {
    int64_t bands, sources, blocks;
    const uint64_t *band_start, *source, *first, *block;
} si_runs;

typedef struct {
    uint64_t at; /* address of the first posting; the row itself if count is 1 */
    uint32_t query, count;
} si_range;

typedef struct {
    si_range *ranges;
    int64_t n_ranges, max_ranges;
    int64_t *missing;
    int64_t n_missing, max_missing;
    uint32_t *rows; /* result */
    int64_t n_rows, max_rows;
    uint32_t *gathered; /* rows of one query and room to sort them */
    int64_t max_gathered;
    int failed; /* no memory */
} si_found;

typedef struct {
    uint64_t low, high;
    int64_t block, last; /* blocks that may hold it: block..last */
    uint64_t position, stop;
    uint32_t query;
} si_probe;

static inline si_runs si_open_runs(const uint64_t *table) {
    si_runs r;
    r.bands = (int64_t)table[0];
    r.sources = (int64_t)table[1];
    r.blocks = (int64_t)table[2];
    r.band_start = table + 4;
    r.source = r.band_start + r.bands + 1;
    r.first = r.source + 3 * r.sources;
    r.block = r.first + r.blocks;
    return r;
}

static void si_free_found(si_found *f) {
    free(f->ranges);
    free(f->missing);
    free(f->rows);
    free(f->gathered);
    memset(f, 0, sizeof *f);
}

/* Make room for `need` elements of `size` bytes; returns 0 when there is no memory. */
static int si_room(void **p, int64_t *max, int64_t need, size_t size) {
    if (need <= *max) return 1;
    int64_t want = *max * 2 > need ? *max * 2 : need;
    want = want < 64 ? 64 : want;
    void *grown = realloc(*p, (size_t)want * size);
    if (!grown) return 0;
    *p = grown;
    *max = want;
    return 1;
}

static inline void si_add_range(si_found *f, const uint8_t *at, uint64_t count, uint32_t query) {
    if (f->n_ranges == f->max_ranges &&
        !si_room((void **)&f->ranges, &f->max_ranges, f->n_ranges + 1, sizeof *f->ranges)) {
        f->failed = 1;
        return;
    }
    si_range *r = &f->ranges[f->n_ranges++];
    r->at = count == 1 ? (uint32_t)si_load64(at) : (uint64_t)(uintptr_t)at;
    r->query = query;
    r->count = (uint32_t)count;
}

static inline void si_add_missing(si_found *f, int64_t block) {
    if (f->n_missing == f->max_missing &&
        !si_room((void **)&f->missing, &f->max_missing, f->n_missing + 1, sizeof *f->missing)) {
        f->failed = 1;
        return;
    }
    f->missing[f->n_missing++] = block;
}

/* Stage 1: which block of the source; returns 0 if there is nothing to look for. *hint: block of the last probe of
 * this source when keys ascend, else -1. */
static inline int si_aim(const si_runs *r, int64_t source, uint64_t key, si_probe *p, si_found *f) {
    const uint64_t *s = r->source + 3 * source;
    uint64_t low = key & 0xFFFFFFFF00000000u, high = key | 0xFFFFFFFFu;
    if (high < s[0] || !s[2]) return 0;
    low = low < s[0] ? s[0] : low;
    const uint64_t *first = r->first + s[1];
    int64_t n = (int64_t)s[2], at = 0;
    for (int64_t m = n; m > 1;) { /* the last block that begins at or below low */
        int64_t half = m / 2;
        at = first[at + half] <= low ? at + half : at;
        m -= half;
    }
    if (first[at] > high) return 0;
    int64_t last = at;
    while (last + 1 < n && first[last + 1] <= high) last++;
    p->low = low;
    p->high = high;
    p->block = (int64_t)s[1] + at;
    p->last = (int64_t)s[1] + last;
    int absent = 0;
    for (int64_t b = p->block; b <= p->last; b++)
        if (!r->block[4 * b]) {
            si_add_missing(f, b);
            absent = 1;
        }
    if (absent) return 0;
    const uint64_t *block = r->block + 4 * p->block;
    if (!block[1]) return p->last > p->block;
    uint64_t j = low > block[2] ? si_mulhi(low - block[2], block[3]) : 0;
    __builtin_prefetch((const uint8_t *)(uintptr_t)block[0] + 8 * block[1] + 2 * j);
    p->position = j;
    return 1;
}

/* Stage 2: the directory's answer. */
static inline void si_narrow(const si_runs *r, si_probe *p) {
    const uint64_t *block = r->block + 4 * p->block;
    const uint8_t *postings = (const uint8_t *)(uintptr_t)block[0];
    uint64_t count = block[1], buckets = si_buckets(count), j = p->position;
    if (!count || j >= buckets) { /* above the last posting */
        p->position = p->stop = count;
        return;
    }
    const uint8_t *entry = postings + 8 * count + 2 * j;
    int shift = si_shift(count);
    p->position = (uint64_t)si_load16(entry) << shift;
    p->stop = ((uint64_t)(si_load16(entry + 2) + 1) << shift) - 1;
    p->stop = p->stop < count ? p->stop : count;
    p->position = p->position < p->stop ? p->position : p->stop;
    __builtin_prefetch(postings + 8 * p->position);
    __builtin_prefetch(postings + 8 * p->stop);
}

/* Stage 3: the postings themselves, in this block and those that follow. */
static inline void si_take(const si_runs *r, si_probe *p, si_found *f) {
    const uint64_t *block = r->block + 4 * p->block;
    const uint8_t *postings = (const uint8_t *)(uintptr_t)block[0];
    uint64_t count = block[1], at = si_lower(postings, p->position, p->stop, p->low);
    uint64_t end = at;
    if (at < count && si_load64(postings + 8 * at) <= p->high) {
        end = p->high == UINT64_MAX ? count : si_gallop(postings, at + 1, count, p->high + 1);
        si_add_range(f, postings + 8 * at, end - at, p->query);
    }
    for (int64_t b = p->block + 1; b <= p->last; b++) {
        block = r->block + 4 * b;
        postings = (const uint8_t *)(uintptr_t)block[0];
        end = p->high == UINT64_MAX ? block[1] : si_lower(postings, 0, block[1], p->high + 1);
        if (end) si_add_range(f, postings, end, p->query);
    }
}

static inline void si_take_group(const si_runs *r, si_probe *group, int n, si_found *f) {
    if (!si_room((void **)&f->ranges, &f->max_ranges, f->n_ranges + n, sizeof *f->ranges)) {
        f->failed = 1;
        return;
    }
    for (int i = 0; i < n; i++) {
        si_probe *p = &group[i];
        const uint64_t *block = r->block + 4 * p->block;
        const uint8_t *at = (const uint8_t *)(uintptr_t)block[0] + 8 * p->position;
        if (p->stop - p->position <= SI_WINDOW && p->position + SI_WINDOW <= block[1] && p->last == p->block) {
            /* Nearly always: without a branch on whether it is a hit, which nobody can predict. */
            uint32_t counts = si_count_window(at, p->low, p->high), below = counts & 255, upto = counts >> 8;
            if (upto < SI_WINDOW) {
                if (f->n_ranges == f->max_ranges) { /* others took more than one */
                    si_take(r, p, f);
                    continue;
                }
                si_range *range = &f->ranges[f->n_ranges];
                at += 8 * below;
                range->at = upto - below == 1 ? (uint32_t)si_load64(at) : (uint64_t)(uintptr_t)at;
                range->query = p->query;
                range->count = upto - below;
                f->n_ranges += upto > below;
                continue;
            }
        }
        si_take(r, p, f);
    }
}

/* Three groups under way: one is filled, one waits for its directories, one for its postings. */
typedef struct {
    si_probe group[3][SI_GROUP];
    int count[3], filling;
} si_pipe;

static inline void si_pipe_turn(const si_runs *r, si_pipe *pipe, si_found *f) {
    int aimed = pipe->filling, narrowed = (aimed + 2) % 3, next = (aimed + 1) % 3;
    for (int i = 0; i < pipe->count[narrowed]; i++) si_narrow(r, &pipe->group[narrowed][i]);
    si_take_group(r, pipe->group[next], pipe->count[next], f);
    pipe->count[next] = 0;
    pipe->filling = next;
}

static inline void si_pipe_add(const si_runs *r, si_pipe *pipe, int64_t source, uint64_t key, uint32_t query,
                               si_found *f) {
    int *n = &pipe->count[pipe->filling];
    si_probe *probe = &pipe->group[pipe->filling][*n];
    probe->query = query;
    *n += si_aim(r, source, key, probe, f);
    if (*n == SI_GROUP) si_pipe_turn(r, pipe, f);
}

static inline void si_pipe_end(const si_runs *r, si_pipe *pipe, si_found *f) {
    for (int i = 0; i < 3; i++) si_pipe_turn(r, pipe, f);
}

/* Ranges of one query: every source of every band. */
static void si_probe_one(const si_runs *r, const uint64_t *keys, si_found *f) {
    si_pipe pipe;
    pipe.count[0] = pipe.count[1] = pipe.count[2] = pipe.filling = 0;
    for (int64_t band = 0; band < r->bands; band++)
        for (int64_t s = (int64_t)r->band_start[band]; s < (int64_t)r->band_start[band + 1]; s++)
            si_pipe_add(r, &pipe, s, keys[band], 0, f);
    si_pipe_end(r, &pipe, f);
}

/* Ranges of n_queries queries (row i of keys), band by band, in the order of their keys. work: 2 * n. */
static void si_probe_many(const si_runs *r, const uint64_t *keys, int64_t n_queries, uint64_t *work, si_found *f) {
    si_pipe pipe;
    pipe.count[0] = pipe.count[1] = pipe.count[2] = pipe.filling = 0;
    for (int64_t band = 0; band < r->bands; band++) {
        for (int64_t q = 0; q < n_queries; q++)
            work[q] = (keys[q * r->bands + band] & 0xFFFFFFFF00000000u) | (uint64_t)q;
        si_radix_sort64(work, work + n_queries, n_queries, n_queries <= SI_SMALL_SORT ? 0 : 4);
        for (int64_t s = (int64_t)r->band_start[band]; s < (int64_t)r->band_start[band + 1]; s++)
            for (int64_t q = 0; q < n_queries; q++) si_pipe_add(r, &pipe, s, work[q], (uint32_t)work[q], f);
    }
    si_pipe_end(r, &pipe, f);
}

/* Append the live rows of some ranges of one query to f->rows: ascending, each once. */
static void si_gather_rows(const si_range *ranges, int64_t n, const uint64_t *live, uint64_t live_blocks,
                           si_found *f) {
    int64_t total = 0, m = 0;
    for (int64_t i = 0; i < n; i++) total += ranges[i].count;
    if (!total) return;
    if (!si_room((void **)&f->gathered, &f->max_gathered, 2 * total, sizeof *f->gathered)) {
        f->failed = 1;
        return;
    }
    uint32_t *rows = f->gathered;
    for (int64_t i = 0; i < n; i++) {
        if (ranges[i].count == 1) {
            uint32_t row = (uint32_t)ranges[i].at;
            rows[m] = row;
            m += si_row_lives(live, live_blocks, row);
            continue;
        }
        const uint8_t *at = (const uint8_t *)(uintptr_t)ranges[i].at;
        for (uint32_t j = 0; j < ranges[i].count; j++) {
            uint32_t row = (uint32_t)si_load64(at + 8 * (uint64_t)j);
            rows[m] = row;
            m += si_row_lives(live, live_blocks, row);
        }
    }
    if (n > 1) si_sort32(rows, rows + m, m);
    if (!si_room((void **)&f->rows, &f->max_rows, f->n_rows + m, sizeof *f->rows)) {
        f->failed = 1;
        return;
    }
    uint32_t *out = f->rows + f->n_rows;
    int64_t unique = 0;
    for (int64_t i = 0; i < m; i++)
        if (!i || rows[i] != rows[i - 1]) out[unique++] = rows[i];
    f->n_rows += unique;
}

/* Answer n_queries queries: ptr[0..n_queries], rows in f->rows. Stops early when blocks are missing or memory is. */
static void si_lookup(const uint64_t *table, const uint64_t *keys, int64_t n_queries, const uint64_t *live,
                      uint64_t live_blocks, int64_t *ptr, si_found *f) {
    si_runs r = si_open_runs(table);
    ptr[0] = 0;
    if (n_queries == 1) {
        si_probe_one(&r, keys, f);
        if (f->failed || f->n_missing) return;
        si_gather_rows(f->ranges, f->n_ranges, live, live_blocks, f);
        ptr[1] = f->n_rows;
        return;
    }
    int64_t round = SI_RANGES / (r.sources + 1), max_sorted = 0;
    round = round < 1024 ? 1024 : round > SI_QUERIES ? SI_QUERIES : round;
    round = round < n_queries ? round : n_queries;
    uint64_t *work = malloc((size_t)(2 * round + 1) * sizeof *work);
    int64_t *starts = malloc((size_t)(round + 2) * sizeof *starts);
    si_range *sorted = NULL;
    if (!work || !starts) f->failed = 1;
    for (int64_t done = 0; done < n_queries && !f->failed; done += round) {
        int64_t n = n_queries - done < round ? n_queries - done : round;
        f->n_ranges = 0;
        si_probe_many(&r, keys + done * r.bands, n, work, f);
        if (f->failed || f->n_missing) break;
        if (!si_room((void **)&sorted, &max_sorted, f->n_ranges + 1, sizeof *sorted)) {
            f->failed = 1;
            break;
        }
        memset(starts, 0, (size_t)(n + 2) * sizeof *starts);
        for (int64_t i = 0; i < f->n_ranges; i++) starts[f->ranges[i].query + 2]++;
        for (int64_t q = 2; q < n + 2; q++) starts[q] += starts[q - 1];
        for (int64_t i = 0; i < f->n_ranges; i++) sorted[starts[f->ranges[i].query + 1]++] = f->ranges[i];
        for (int64_t q = 0; q < n && !f->failed; q++) {
            si_gather_rows(sorted + starts[q], starts[q + 1] - starts[q], live, live_blocks, f);
            ptr[done + q + 1] = f->n_rows;
        }
    }
    free(work);
    free(starts);
    free(sorted);
}

#endif
