/* Heap blocks: values of any length of consecutive rows. Header of 32 bytes (store/layout.py), then count + 1
 * offsets as u32 from the block's start, then the bytes. Frozen since format 1. */
#ifndef SI_HEAP_H
#define SI_HEAP_H

#include "load.h"

#define SI_HEAP_HEADER 32u
#define SI_HEAP_FIRST_ROW 8u
#define SI_HEAP_COUNT 12u

/* The value of `row` in the block at `block_address`; null when the block does not hold that row. The block's
 * offsets are trusted: they are checked by the store's verify, not on each read. */
static inline const uint8_t *si_heap_value(uint64_t block_address, uint32_t row, uint32_t *length) {
    const uint8_t *block = (const uint8_t *)(uintptr_t)block_address;
    uint32_t i = row - si_load32(block + SI_HEAP_FIRST_ROW);
    if (i >= si_load32(block + SI_HEAP_COUNT)) return (const uint8_t *)0;
    uint32_t start = si_load32(block + SI_HEAP_HEADER + 4ull * i);
    *length = si_load32(block + SI_HEAP_HEADER + 4ull * i + 4) - start;
    return block + start;
}

/* Index of the last of `n` blocks (ascending first rows) that starts at or before `row`; -1 when there is none. */
static inline int64_t si_heap_block(const uint32_t *first_rows, int64_t n, uint32_t row) {
    int64_t low = 0, high = n; /* first_rows[low - 1] <= row < first_rows[high] */
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (first_rows[middle] <= row) low = middle + 1;
        else high = middle;
    }
    return low - 1;
}

/* Both steps: null when no fetched block holds the row. */
static inline const uint8_t *si_heap_row(const uint32_t *first_rows, const uint64_t *addresses, int64_t n,
                                         uint32_t row, uint32_t *length) {
    int64_t b = si_heap_block(first_rows, n, row);
    if (b < 0 || !addresses[b]) return (const uint8_t *)0;
    return si_heap_value(addresses[b], row, length);
}

#endif
