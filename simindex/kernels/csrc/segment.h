/* A segment: the few characters between two boundaries of normalisation, where marks are reordered and composed.
 *
 * Order of work on a segment (all characters are decomposed already): canonical order; U+0345 becomes a small iota
 * where case is folded; canonical composition. A segment is cut after SI_SEGMENT code points, so no text needs more
 * memory than that; Unicode sets no limit, but no language comes near it.
 */
#ifndef SI_SEGMENT_H
#define SI_SEGMENT_H

#include "unicode.h"

#define SI_SEGMENT 128

typedef struct {
    uint32_t point[SI_SEGMENT];
    uint8_t ccc[SI_SEGMENT];
    uint32_t n;
} si_segment;

static inline void si_segment_push(si_segment *s, uint32_t c) {
    s->point[s->n] = c;
    s->ccc[s->n] = si_combining_class(c);
    s->n++;
}

/* Append the canonical decomposition of c (at most 4 code points). */
static inline void si_segment_push_decomposed(si_segment *s, uint32_t c) {
    if (c - 0xAC00u < 11172) {
        uint32_t i = c - 0xAC00;
        si_segment_push(s, 0x1100 + i / 588);
        si_segment_push(s, 0x1161 + i % 588 / 28);
        if (i % 28)
            si_segment_push(s, 0x11A7 + i % 28);
        return;
    }
    uint32_t value = c < SI_TABLE_LIMIT ? si_table(si_unicode_nfd, c) : 0;
    if (!value) {
        si_segment_push(s, c);
        return;
    }
    const uint32_t *entry = si_pool(value);
    for (uint32_t i = 1; i <= entry[0] >> 2; i++)
        si_segment_push(s, entry[i]);
}

/* Order and compose in place; point[0 .. n) is the result. */
static inline void si_segment_finish(si_segment *s, int fold) {
    for (uint32_t i = 1; i < s->n; i++) { /* insertion sort within each run of marks: stable, and runs are short */
        uint32_t c = s->point[i], j = i;
        uint8_t k = s->ccc[i];
        if (!k)
            continue;
        for (; j > 0 && s->ccc[j - 1] > k; j--) {
            s->point[j] = s->point[j - 1];
            s->ccc[j] = s->ccc[j - 1];
        }
        s->point[j] = c;
        s->ccc[j] = k;
    }
    if (fold)
        for (uint32_t i = 0; i < s->n; i++)
            if (s->point[i] == 0x0345) {
                s->point[i] = 0x03B9;
                s->ccc[i] = 0;
            }
    uint32_t out = 0, starter = UINT32_MAX, last = 0; /* last: class of the latest character kept after the starter */
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t c = s->point[i];
        uint8_t k = s->ccc[i];
        if (starter != UINT32_MAX && (starter + 1 == out || (last < k && last != 0))) {
            uint32_t joined = si_compose(s->point[starter], c);
            if (joined) {
                s->point[starter] = joined;
                continue;
            }
        }
        if (k == 0)
            starter = out;
        last = k;
        s->point[out] = c;
        s->ccc[out++] = k;
    }
    s->n = out;
}

#endif
