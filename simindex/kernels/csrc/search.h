/* One query from its features to verified rows, without an object on the way: sign, bucket keys, lookup, compare, verify.
 *
 * Only what is fetched already is read. Where a block is not, nothing is answered (SI_SEARCH_MISSING) and the caller goes
 * the long way, which fetches it. The steps are those of kernels fastsim, band_keys, lookup_runs, gather_equal and
 * intersect_sets. */
#ifndef SI_SEARCH_H
#define SI_SEARCH_H

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include "bands.h"
#include "equal.h"
#include "fastsim.h"
#include "records.h"
/* Both of the next two have a si_count_avx2 and a si_count_avx512 of their own. */
#define si_count_avx2 si_runs_count_avx2
#define si_count_avx512 si_runs_count_avx512
#include "runlookup.h"
#undef si_count_avx2
#undef si_count_avx512
#include "setmatch.h"
#pragma GCC diagnostic pop

#define SI_SEARCH_FINE 0
#define SI_SEARCH_MISSING 1
#define SI_SEARCH_MEMORY 2
#define SI_SEARCH_CORRUPT 3

/* A field of a table, as its transaction sees it. */
typedef struct {
    const uint64_t *runs; /* csrc/runlookup.h */
    const uint64_t *live;
    uint64_t live_blocks;
    const uint64_t *blocks; /* of signatures */
    uint64_t n_blocks;
    uint32_t rows_per_block, header, width, slot_bytes, k, bands, rows;
    int is_exact;
    si_heap originals;
} si_field;

typedef struct {
    uint32_t row, equal;
    double score; /* true Jaccard where the field is exact, else 0 */
} si_hit;

/* Pack the query's set and compare it with the candidates' in hits[0..n]; returns how many reach the threshold. */
static int64_t si_verify_hits(const si_field *f, const uint64_t *hashes, size_t m, double threshold, si_hit *hits,
                              int64_t n, int *status) {
    si_query q;
    uint64_t *values = malloc(2 * m * sizeof *values);
    uint32_t *counter = malloc(SI_SORT_COUNTERS * sizeof *counter);
    uint8_t *packed = malloc(SI_SET_BOUND(m));
    uint32_t *numbers = malloc(3 * (size_t)n * sizeof *numbers);
    si_askers asked;
    int64_t bad = 0, kept = 0;
    int side = 0;
    memset(&asked, 0, sizeof asked);
    memset(&q, 0, sizeof q);
    *status = SI_SEARCH_MEMORY;
    if (values && counter && packed && numbers) {
        uint32_t count, *rows = numbers, *inter = numbers + n, *sizes = inter + n;
        memcpy(values, hashes, m * sizeof *values);
        size_t length = si_set_pack(values, values + m, m, counter, packed, &count);
        for (int64_t i = 0; i < n; i++) rows[i] = hits[i].row, inter[i] = sizes[i] = 0;
        int found = si_query_set(&q, packed, length);
        if (!found) found = si_match_rows(&q, &asked, &f->originals, rows, n, threshold, inter, NULL, sizes, &bad, &side);
        *status = !found                        ? SI_SEARCH_FINE
                  : found == SI_SETS_MISSING ? SI_SEARCH_MISSING
                  : found == SI_SETS_MEMORY  ? SI_SEARCH_MEMORY
                                             : SI_SEARCH_CORRUPT;
        for (int64_t i = 0; !found && i < n; i++) {
            uint64_t united = (uint64_t)q.set.n + sizes[i] - inter[i];
            double score = (double)inter[i] / (double)(united ? united : 1);
            if (score >= threshold) {
                hits[kept] = hits[i];
                hits[kept++].score = score;
            }
        }
    }
    si_query_free(&q);
    free(values);
    free(counter);
    free(packed);
    free(numbers);
    return kept;
}

/* Find the rows that share a bucket with the query, at least `least` slots, and (exact fields) reach the threshold.
 * signature: ready, or NULL: made of the hashes. *out is the caller's to free. */
static int si_find(const si_field *f, const uint64_t *hashes, size_t m, const uint8_t *signature, uint32_t least,
                   double threshold, si_hit **out, int64_t *n_out) {
    uint8_t *own = malloc(f->width + (size_t)f->bands * 8 + 64);
    uint64_t *keys = own ? (uint64_t *)(void *)(own + ((f->width + 7u) & ~7u)) : NULL;
    int64_t ptr[2] = {0, 0};
    si_found found;
    int status = SI_SEARCH_FINE;
    *out = NULL;
    *n_out = 0;
    if (!own) return SI_SEARCH_MEMORY;
    if (!signature) {
        ptr[1] = (int64_t)m;
        si_fastsim_batch_packed(hashes, ptr, 1, f->k, (int)(8 * f->slot_bytes), own);
        signature = own;
    }
    si_band_keys(signature, 1, f->width, f->bands, f->rows * f->slot_bytes, keys);
    memset(&found, 0, sizeof found);
    si_lookup(f->runs, keys, 1, f->live, f->live_blocks, ptr, &found);
    if (found.failed) status = SI_SEARCH_MEMORY;
    else if (found.n_missing) status = SI_SEARCH_MISSING;
    else if (found.n_rows) {
        si_hit *hits = malloc((size_t)found.n_rows * sizeof *hits);
        int64_t n = 0;
        if (!hits) status = SI_SEARCH_MEMORY;
        for (int64_t i = 0; hits && i < found.n_rows; i++) {
            uint32_t row = found.rows[i], block = row / f->rows_per_block;
            if (block >= f->n_blocks || !f->blocks[block]) {
                status = SI_SEARCH_MISSING;
                break;
            }
            const uint8_t *stored = (const uint8_t *)(uintptr_t)f->blocks[block] + f->header +
                                    (uint64_t)(row % f->rows_per_block) * f->width;
            uint32_t equal = si_equal_pair(stored, signature, f->width, f->slot_bytes);
            if (equal >= least) hits[n++] = (si_hit){row, equal, 0.0};
        }
        if (n && !status && f->is_exact) n = si_verify_hits(f, hashes, m, threshold, hits, n, &status);
        if (status) free(hits);
        else *out = hits, *n_out = n;
    }
    si_free_found(&found);
    free(own);
    return status;
}

static inline void si_search_select(int level) {
    si_equal_select(level);
    si_runs_select(level);
    si_fastsim_select(level);
    si_sets_select(level);
}

#endif
