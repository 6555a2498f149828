/* A block of postings: `count` sorted u64, then a directory of count / 8 (rounded up, at least 1) u16 and one more.
 *
 * The range first..last of the postings is cut into as many equal buckets as the directory has entries (less one);
 * entry j is the number of postings in the buckets below j, shifted right until the count fits in 16 bits. So a
 * uniform block is searched in one step, and a skewed one never worse than by halving. Frozen since format 1. */
#ifndef SI_RUNBLOCK_H
#define SI_RUNBLOCK_H

#include "load.h"
#include "views.h"

#define SI_PER_ENTRY 8u

static inline uint64_t si_buckets(uint64_t count) { return count ? (count + SI_PER_ENTRY - 1) / SI_PER_ENTRY : 1; }

static inline int si_shift(uint64_t count) {
    int shift = 0;
    while (count >> shift > 65535) shift++;
    return shift;
}

static inline uint64_t si_mulhi(uint64_t a, uint64_t b) {
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
}

/* The factor that maps posting - first to its bucket: floor(mulhi(posting - first, scale)) < buckets. */
static inline uint64_t si_scale(uint64_t buckets, uint64_t first, uint64_t last) {
    unsigned __int128 s = ((unsigned __int128)buckets << 64) / ((unsigned __int128)(last - first) + 1);
    return s >> 64 ? UINT64_MAX : (uint64_t)s;
}

/* Bytes of a block of `count` postings. */
static inline uint64_t si_block_bytes(uint64_t count) { return 8 * count + 2 * (si_buckets(count) + 1); }

static void si_fill_directory(uint8_t *block, uint64_t count) {
    uint8_t *directory = block + 8 * count;
    uint64_t buckets = si_buckets(count), j = 0;
    int shift = si_shift(count);
    if (count) {
        uint64_t first = si_load64(block), last = si_load64(block + 8 * (count - 1));
        uint64_t scale = si_scale(buckets, first, last);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t b = si_mulhi(si_load64(block + 8 * i) - first, scale);
            if (b > buckets) b = buckets; /* postings out of order must not lead out of the block */
            for (; j <= b; j++) si_store16(directory + 2 * j, (uint16_t)(i >> shift));
        }
    }
    for (; j <= buckets; j++) si_store16(directory + 2 * j, (uint16_t)(count >> shift));
}

/* Number of postings below v among those at [lo, hi). */
static inline uint64_t si_lower(const uint8_t *block, uint64_t lo, uint64_t hi, uint64_t v) {
    while (hi - lo > 8) {
        uint64_t middle = lo + (hi - lo) / 2;
        int below = si_load64(block + 8 * middle) < v;
        lo = below ? middle + 1 : lo;
        hi = below ? hi : middle;
    }
    while (lo < hi && si_load64(block + 8 * lo) < v) lo++;
    return lo;
}

/* The same, searching forwards from lo in growing steps. */
static inline uint64_t si_gallop(const uint8_t *block, uint64_t lo, uint64_t hi, uint64_t v) {
    uint64_t step = 8;
    while (lo + step < hi && si_load64(block + 8 * (lo + step)) < v) {
        lo += step + 1;
        step *= 2;
    }
    return si_lower(block, lo, lo + step < hi ? lo + step : hi, v);
}

/* Is the row live; rows beyond the bitmap of `blocks` blocks are not. */
static inline int si_row_lives(const uint64_t *live, uint64_t blocks, uint32_t row) {
    return row / SI_LIVE_ROWS < blocks && si_is_live(live, row);
}

#endif
