/* Exact intersection of one packed set with many.
 *
 * Two sets are compared at the smaller of their widths: `inter` counts the distinct cut hashes that they share, the
 * sizes are the stored counts. The query is decoded once per width into a sorted array with a start index per bucket
 * of top bits; each value of the other set is then looked up while it is decoded, without branches. */
#ifndef SI_SETMATCH_H
#define SI_SETMATCH_H

#include <stdlib.h>

#include "cpu.h"
#include "heap.h"
#include "setcode.h"

#define SI_MATCH_PAD 8u     /* entries after the last value, so that a lookup may read a full group */
#define SI_MATCH_DENSE 4096u /* hashes up to which four buckets a hash fit in the cache */
#define SI_MATCH_WIDTHS 4u  /* widths at which a query is kept at a time */
#define SI_MATCH_LARGE (1u << 20) /* larger queries are merged: an index would cost more memory than time */
#define SI_MATCH_CHECK 8u   /* high words between two looks at the bound */
#define SI_NO_VALUE (~(uint64_t)0)

enum { SI_SETS_FINE = 0, SI_SETS_MISSING = 1, SI_SETS_CORRUPT = 2, SI_SETS_MEMORY = 3 };

/* The smallest intersection of sets of a and b hashes for which inter / union >= t holds in double arithmetic. */
static inline uint64_t si_least_inter(uint64_t a, uint64_t b, double t) {
    if (!(t > 0.0)) return 0;
    uint64_t sum = a + b, i;
    double guess = t * (double)sum / (1.0 + t);
    i = guess < (double)sum ? (uint64_t)guess : sum;
    while (i && (double)(i - 1) / (double)(sum - (i - 1)) >= t) i--;
    while (i < sum && (double)i / (double)(sum - i) < t) i++;
    return i;
}

/* A query at one width: n distinct values and, per bucket b = value >> shift, the index of its first value. For an
 * empty bucket any index will do, as no value there can be equal to one of the bucket. */
typedef struct {
    uint64_t *own;         /* memory for the values of a smaller width */
    const uint64_t *value; /* own, or the query's values */
    uint32_t *start;
    uint32_t n, width, shift, groups; /* groups of four that hold any bucket; 0: too crowded, merge instead */
} si_level;

typedef struct {
    si_set set;
    const uint8_t *bytes;
    size_t length;
    uint64_t *value; /* all values at the set's own width */
    size_t room;     /* in values, of value and of each level */
    si_level level[SI_MATCH_WIDTHS];
} si_query;

static inline void si_query_free(si_query *q) {
    free(q->value);
    for (uint32_t i = 0; i < SI_MATCH_WIDTHS; i++) { free(q->level[i].own); free(q->level[i].start); }
    memset(q, 0, sizeof *q);
}

/* Decode a packed set as the query of what follows. q must be zeroed before its first use; bytes must stay. */
static inline int si_query_set(si_query *q, const uint8_t *bytes, size_t length) {
    for (uint32_t i = 0; i < SI_MATCH_WIDTHS; i++) q->level[i].width = 0;
    q->set.n = 0;
    q->bytes = bytes;
    q->length = length;
    if (si_set_open(bytes, length, &q->set)) { q->set.n = 0; return SI_SETS_CORRUPT; }
    if (q->set.n > q->room) {
        size_t room = q->set.n < SI_MATCH_LARGE ? (size_t)q->set.n + q->set.n / 2 + 64 : q->set.n;
        si_set keep = q->set;
        si_query_free(q);
        q->set = keep;
        q->bytes = bytes;
        q->length = length;
        q->value = malloc((room + SI_MATCH_PAD) * sizeof *q->value);
        if (!q->value) { q->set.n = 0; return SI_SETS_MEMORY; }
        q->room = room;
    }
    if (q->set.n && si_set_decode(&q->set, q->value)) { q->set.n = 0; return SI_SETS_CORRUPT; }
    for (uint32_t i = 0; q->set.n && i < SI_MATCH_PAD; i++) q->value[q->set.n + i] = SI_NO_VALUE;
    return SI_SETS_FINE;
}

/* The query at `width`, no wider than its own; null without memory. */
static inline __attribute__((always_inline)) const si_level *si_query_level(si_query *q, uint32_t width) {
    si_level *v = &q->level[width % SI_MATCH_WIDTHS];
    if (v->width == width) return v;
    const uint32_t drop = q->set.width - width;
    uint32_t n = q->set.n;
    v->width = 0;
    v->value = q->value;
    if (drop) {
        if (!v->own && !(v->own = malloc((q->room + SI_MATCH_PAD) * sizeof *v->own))) return 0;
        n = 0;
        for (uint32_t i = 0; i < q->set.n; i++) {
            uint64_t x = q->value[i] >> drop;
            v->own[n] = x;
            n += !i || x != v->own[n - 1];
        }
        for (uint32_t i = 0; i < SI_MATCH_PAD; i++) v->own[n + i] = SI_NO_VALUE;
        v->value = v->own;
    }
    v->n = n;
    v->width = width;
    v->groups = 0;
    if (n > SI_MATCH_LARGE || width == 64) return v; /* at 64 bits padding could be a hash */
    uint32_t bits = si_bit_length64(n - 1) + (n <= SI_MATCH_DENSE ? 2 : 1); /* at most 8 n and 4 n buckets */
    if (bits > width) bits = width;
    const uint32_t shift = width - bits;
    if (!v->start) {
        size_t dense = q->room < SI_MATCH_DENSE ? q->room : SI_MATCH_DENSE, buckets = 8 * dense + 4 * q->room + 4;
        if (!(v->start = malloc(buckets * sizeof *v->start))) { v->width = 0; return 0; }
    }
    const uint64_t *value = v->value;
    uint32_t *start = v->start;
    memset(start, 0, sizeof *start << bits);
    uint64_t over4 = 0, over8 = 0; /* buckets of more than 4, 8 values; the padding's bucket is none */
    for (uint32_t i = n; i--;) {
        uint64_t bucket = value[i] >> shift;
        start[bucket] = i;
        over4 |= bucket == value[i + 4] >> shift;
        over8 |= bucket == value[i + 8] >> shift;
    }
    v->shift = shift;
    v->groups = over8 ? 0 : 1 + (uint32_t)over4;
    return v;
}

/* Shared values by a merge of two ascending lists: for crowded buckets. `drop`: bits that the set is wider. */
static inline uint32_t si_count_merging(const si_level *q, const si_set *set, uint32_t drop) {
    uint32_t inter = 0, j = 0;
    SI_SET_EACH(set, v, {
        v >>= drop;
        while (j < q->n && q->value[j] < v) j++;
        if (j < q->n && q->value[j] == v) { inter++; j++; }
    });
    return inter;
}

/* Shared values of the query and a set that is `drop` bits wider; stops with 0 once `least` is out of reach. `one`
 * value v adds to `found`; values that repeat an earlier one after the cut do not count. */
#define SI_SHARED_BODY(LOOKUP, TOTAL)                                                                                  \
    uint64_t mask = set->low_bits ? ~(uint64_t)0 >> (64 - set->low_bits) : 0, bit = 0, before = SI_NO_VALUE;          \
    const uint64_t *value = q->value;                                                                                 \
    const uint32_t *start = q->start;                                                                                 \
    uint32_t free_reads = si_set_free_reads(set), low = set->low_bits, i = 0, until = SI_MATCH_CHECK;                 \
    const uint32_t shift = q->shift;                                                                                  \
    for (size_t at = 0; at < set->high_bytes; at += 8) {                                                              \
        uint64_t word = si_set_high_word(set, at);                                                                    \
        uint32_t ones = (uint32_t)__builtin_popcountll(word);                                                         \
        uint64_t base = at * 8;                                                                                       \
        if (!drop && i + ones <= free_reads) {                                                                        \
            while (word) {                                                                                            \
                uint64_t high = base + (uint64_t)__builtin_ctzll(word) - i;                                           \
                uint64_t v = high << low | ((si_load64(set->low + (bit >> 3)) >> (bit & 7)) & mask);                  \
                const uint64_t *slot = value + start[v >> shift];                                                     \
                LOOKUP                                                                                                \
                word &= word - 1;                                                                                     \
                bit += low;                                                                                           \
                i++;                                                                                                  \
            }                                                                                                         \
        } else {                                                                                                      \
            while (word) {                                                                                            \
                uint64_t high = base + (uint64_t)__builtin_ctzll(word) - i;                                           \
                uint64_t v = (high << low | (si_set_low_careful(set, bit) & mask)) >> drop;                           \
                if (v != before) {                                                                                    \
                    const uint64_t *slot = value + start[v >> shift];                                                 \
                    LOOKUP                                                                                            \
                }                                                                                                     \
                before = v;                                                                                           \
                word &= word - 1;                                                                                     \
                bit += low;                                                                                           \
                i++;                                                                                                  \
            }                                                                                                         \
        }                                                                                                             \
        if (!--until) {                                                                                               \
            until = SI_MATCH_CHECK;                                                                                   \
            if ((TOTAL) + (set->n - i) < least) return 0;                                                             \
        }                                                                                                             \
    }                                                                                                                 \
    return (uint32_t)(TOTAL);

static uint32_t si_shared_baseline(const si_level *q, const si_set *set, uint32_t drop, uint64_t least) {
    uint64_t found = 0;
    if (q->groups == 1) {
        SI_SHARED_BODY(found += (uint64_t)((slot[0] == v) | (slot[1] == v) | (slot[2] == v) | (slot[3] == v));, found)
    }
    SI_SHARED_BODY(found += (uint64_t)((slot[0] == v) | (slot[1] == v) | (slot[2] == v) | (slot[3] == v) |
                                      (slot[4] == v) | (slot[5] == v) | (slot[6] == v) | (slot[7] == v));, found)
}

#if SI_X86
#define SI_SHARED_AVX2(at) _mm256_cmpeq_epi64(_mm256_loadu_si256((const __m256i *)(slot + (at))), wanted)
#define SI_SHARED_LANES                                                                                                \
    ((uint64_t)_mm256_extract_epi64(found, 0) + (uint64_t)_mm256_extract_epi64(found, 1) +                            \
     (uint64_t)_mm256_extract_epi64(found, 2) + (uint64_t)_mm256_extract_epi64(found, 3))

SI_TARGET_AVX2 static uint32_t si_shared_avx2(const si_level *q, const si_set *set, uint32_t drop, uint64_t least) {
    __m256i found = _mm256_setzero_si256();
    if (q->groups == 1) {
        SI_SHARED_BODY(__m256i wanted = _mm256_set1_epi64x((long long)v);
                      found = _mm256_sub_epi64(found, SI_SHARED_AVX2(0));, SI_SHARED_LANES)
    }
    SI_SHARED_BODY(__m256i wanted = _mm256_set1_epi64x((long long)v); found = _mm256_sub_epi64(
                      found, _mm256_or_si256(SI_SHARED_AVX2(0), SI_SHARED_AVX2(4)));, SI_SHARED_LANES)
}
#endif

/* Intersection with the packed set in `bytes`: *inter is exact if inter / union >= t, else 0 (with t <= 0 always
 * exact); *size is its count. */
static inline __attribute__((always_inline)) int si_match_body(
    si_query *q, const uint8_t *bytes, size_t length, double t, uint32_t *inter, uint32_t *size,
    uint32_t (*count_shared)(const si_level *, const si_set *, uint32_t, uint64_t)) {
    si_set set;
    *inter = *size = 0;
    if (length && length == q->length && q->set.n && !memcmp(bytes, q->bytes, length)) {
        *inter = *size = q->set.n;
        return SI_SETS_FINE;
    }
    if (si_set_open(bytes, length, &set)) return SI_SETS_CORRUPT;
    *size = set.n;
    if (!set.n || !q->set.n) return SI_SETS_FINE;
    uint64_t least = si_least_inter(q->set.n, set.n, t);
    if (least > set.n || least > q->set.n) return SI_SETS_FINE;
    const si_level *v = si_query_level(q, set.width < q->set.width ? set.width : q->set.width);
    if (!v) return SI_SETS_MEMORY;
    uint32_t drop = set.width - v->width;
    uint32_t n = v->groups ? count_shared(v, &set, drop, least) : si_count_merging(v, &set, drop);
    *inter = n >= least ? n : 0;
    return SI_SETS_FINE;
}

static int si_match_baseline(si_query *q, const uint8_t *bytes, size_t length, double t, uint32_t *inter,
                             uint32_t *size) {
    return si_match_body(q, bytes, length, t, inter, size, si_shared_baseline);
}

#if SI_X86
SI_TARGET_AVX2 static int si_match_avx2(si_query *q, const uint8_t *bytes, size_t length, double t, uint32_t *inter,
                                        uint32_t *size) {
    return si_match_body(q, bytes, length, t, inter, size, si_shared_avx2);
}
#endif

static int (*si_query_match)(si_query *, const uint8_t *, size_t, double, uint32_t *, uint32_t *) = si_match_baseline;

static inline void si_sets_select(int level) {
    si_query_match = si_match_baseline;
    si_set_decode = si_set_decode_baseline;
#if SI_X86
    if (level >= SI_AVX2) {
        si_query_match = si_match_avx2;
        si_set_decode = si_set_decode_avx2;
    }
#else
    (void)level;
#endif
}

/* Where packed sets of rows lie: heap blocks. */
typedef struct {
    const uint32_t *first_rows;
    const uint64_t *addresses;
    int64_t n;
} si_heap;

/* The bytes of a row's set; null when no block holds the row. A broken offset gives an impossible length. */
static inline const uint8_t *si_heap_set(const si_heap *heap, uint32_t row, size_t *length) {
    int64_t b = si_heap_block(heap->first_rows, heap->n, row);
    if (b < 0 || !heap->addresses[b]) return 0;
    const uint8_t *block = (const uint8_t *)(uintptr_t)heap->addresses[b];
    uint32_t size, count = si_load32(block + SI_HEAP_COUNT);
    const uint8_t *value = si_heap_value(heap->addresses[b], row, &size);
    if (!value) return 0;
    uint64_t stop = si_load32(block + SI_HEAP_HEADER + 4ull * count), at = (uint64_t)(value - block);
    *length = at >= SI_HEAP_HEADER + 4ull * (count + 1ull) && at + size <= stop ? size : SIZE_MAX;
    return value;
}

#define SI_MATCH_AHEAD 8

/* Who asks about rows[i]: the set that is decoded already; packed set of[i] of (data, offsets); or stored row a[i].
 * Neighbours with the same asker decode it once. */
typedef struct {
    const uint8_t *data;
    const int64_t *offsets, *of;
    const uint32_t *a;
} si_askers;

static inline int si_next_asker(si_query *q, const si_askers *by, const si_heap *heap, int64_t i) {
    if (by->of) {
        if (i && by->of[i] == by->of[i - 1]) return SI_SETS_FINE;
        const int64_t *at = by->offsets + by->of[i];
        return si_query_set(q, by->data + at[0], (size_t)(at[1] - at[0]));
    }
    if (!by->a || (i && by->a[i] == by->a[i - 1])) return SI_SETS_FINE;
    size_t length;
    const uint8_t *bytes = si_heap_set(heap, by->a[i], &length);
    if (!bytes) return SI_SETS_MISSING;
    return length == SIZE_MAX ? SI_SETS_CORRUPT : si_query_set(q, bytes, length);
}

/* Rows against their askers. Returns a status; *bad is the index of the pair at fault, *side 1 if it is rows[*bad].
 * sizes_q may be null. */
static inline int si_match_rows(si_query *q, const si_askers *by, const si_heap *heap, const uint32_t *rows, int64_t m,
                                double t, uint32_t *inter, uint32_t *sizes_q, uint32_t *sizes, int64_t *bad,
                                int *side) {
    const uint8_t *ahead[SI_MATCH_AHEAD];
    size_t length[SI_MATCH_AHEAD];
    for (int64_t i = 0; i < m + SI_MATCH_AHEAD; i++) {
        int64_t done = i - SI_MATCH_AHEAD;
        int slot = (int)(i % SI_MATCH_AHEAD);
        if (done >= 0) {
            *bad = done;
            *side = 0;
            int status = si_next_asker(q, by, heap, done);
            if (status) return status;
            *side = 1;
            if (!ahead[slot]) return SI_SETS_MISSING;
            if (length[slot] == SIZE_MAX) return SI_SETS_CORRUPT;
            status = si_query_match(q, ahead[slot], length[slot], t, inter + done, sizes + done);
            if (status) return status;
            if (sizes_q) sizes_q[done] = q->set.n;
        }
        if (i < m) {
            ahead[slot] = si_heap_set(heap, rows[i], &length[slot]);
            if (ahead[slot] && length[slot] != SIZE_MAX)
                for (size_t at = 0; at < length[slot] && at < 512; at += 64) __builtin_prefetch(ahead[slot] + at);
        }
    }
    return SI_SETS_FINE;
}

#endif
