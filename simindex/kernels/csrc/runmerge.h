/* Merge many sorted blocks of postings, dropping those of dead rows.
 *
 * Work goes in chunks of the value range that hold about SI_CHUNK postings: the pieces of all inputs that fall into
 * the range are gathered and merged pairwise inside the cache. The range adapts, so neither many small inputs beside
 * a large one nor hot buckets make it slow. */
#ifndef SI_RUNMERGE_H
#define SI_RUNMERGE_H

#include <stdlib.h>

#include "runblock.h"
#include "runsort.h"

#define SI_CHUNK 16384

typedef struct {
    uint64_t next;    /* where the next call goes on */
    int64_t written;  /* postings stored in out */
    int64_t read;     /* postings looked at, dead ones too */
    int done;         /* all blocks and all that follow them are used up */
} si_merged;

/* Merge the postings >= start of k blocks into out, at most `capacity`. more[i]: block i is followed by another one
 * that is not here, so nothing above its last posting may be taken. live is NULL when every row lives.
 * Returns 0, or -1 without memory, or -2 when a block with more[i] ends below start (the caller forgot to advance). */
static int si_merge_blocks(const uint64_t *addresses, const uint64_t *counts, const uint8_t *more, int64_t k,
                           uint64_t start, const uint64_t *live, uint64_t live_blocks, uint8_t *out,
                           int64_t capacity, si_merged *result) {
    int64_t room = SI_CHUNK > k ? SI_CHUNK : k, total = 0, written = 0, read = 0;
    uint64_t limit = UINT64_MAX, low = UINT64_MAX, high = 0;
    int open = 0;
    result->next = start;
    result->written = result->read = 0;
    result->done = 0;
    for (int64_t i = 0; i < k; i++)
        if (more[i]) {
            uint64_t last = counts[i] ? si_load64((const uint8_t *)(uintptr_t)addresses[i] + 8 * (counts[i] - 1)) : 0;
            if (last < start) return -2;
            limit = last < limit ? last : limit;
            open = 1;
        }
    uint64_t *a = malloc((size_t)(2 * room) * sizeof *a), *b = a + room;
    int64_t *position = malloc((size_t)(3 * k + 1) * sizeof *position), *stop = position + k, *ends = stop + k;
    if (!a || !position) {
        free(a);
        free(position);
        return -1;
    }
    for (int64_t i = 0; i < k; i++) {
        const uint8_t *block = (const uint8_t *)(uintptr_t)addresses[i];
        position[i] = (int64_t)si_lower(block, 0, counts[i], start);
        stop[i] = limit == UINT64_MAX ? (int64_t)counts[i]
                                      : (int64_t)si_lower(block, (uint64_t)position[i], counts[i], limit + 1);
        if (position[i] < stop[i]) {
            uint64_t head = si_load64(block + 8 * position[i]), tail = si_load64(block + 8 * (stop[i] - 1));
            low = head < low ? head : low;
            high = tail > high ? tail : high;
        }
        total += stop[i] - position[i];
    }
    uint64_t span = total > room ? (high - low) / ((uint64_t)total / (uint64_t)room + 1) : UINT64_MAX;
    int full = 0;
    while (total > 0 && !full) {
        uint64_t to = high - low > span ? low + span : high;
        int64_t n = 0, pieces = 0;
        for (int64_t i = 0; i < k && n <= room; i++) {
            if (position[i] == stop[i]) continue;
            const uint8_t *block = (const uint8_t *)(uintptr_t)addresses[i];
            int64_t end = to == UINT64_MAX ? stop[i]
                                           : (int64_t)si_gallop(block, (uint64_t)position[i], (uint64_t)stop[i], to + 1);
            int64_t m = end - position[i];
            if (!m) continue;
            if (n + m <= room)
                for (int64_t j = 0; j < m; j++) a[n + j] = si_load64(block + 8 * (position[i] + j));
            n += m;
            ends[pieces++] = n;
        }
        if (n > room) { /* too wide a range: a hot bucket, or a dense part */
            span = (to - low) / 2;
            continue;
        }
        if (n < room / 2) span = span > UINT64_MAX / 2 ? UINT64_MAX : 2 * span + 1;
        uint64_t *sorted = si_merge_pieces(a, b, ends, pieces);
        int64_t used = 0;
        if (live) {
            for (; used < n && written < capacity; used++) {
                si_store64(out + 8 * written, sorted[used]);
                written += si_row_lives(live, live_blocks, (uint32_t)sorted[used]);
            }
        } else {
            used = n < capacity - written ? n : capacity - written;
            for (int64_t j = 0; j < used; j++) si_store64(out + 8 * (written + j), sorted[j]);
            written += used;
        }
        read += used;
        if (used < n) {
            low = sorted[used];
            full = 1;
            break;
        }
        total -= n;
        low = UINT64_MAX;
        for (int64_t i = 0; i < k; i++) { /* go on behind `to`, at the lowest head */
            if (position[i] == stop[i]) continue;
            const uint8_t *block = (const uint8_t *)(uintptr_t)addresses[i];
            if (to != UINT64_MAX)
                position[i] = (int64_t)si_gallop(block, (uint64_t)position[i], (uint64_t)stop[i], to + 1);
            else
                position[i] = stop[i];
            if (position[i] < stop[i]) {
                uint64_t head = si_load64(block + 8 * position[i]);
                low = head < low ? head : low;
            }
        }
        if (total > 0 && written == capacity) full = 1;
    }
    free(a);
    free(position);
    result->written = written;
    result->read = read;
    if (full || total > 0)
        result->next = low;
    else if (open)
        result->next = limit + 1;
    else
        result->done = 1;
    return 0;
}

#endif
