/* How kernels see rows that live in the file: tables of addresses, one per block. An address of 0 is a block that
 * does not exist (all its rows are dead) or that was not fetched; callers fetch what they are going to read first. */
#ifndef SI_VIEWS_H
#define SI_VIEWS_H

#include <stdint.h>

/* Fixed-width rows: block number = row / rows_per_block, rows start `header` bytes into the block. */
static inline const uint8_t *si_fixed_row(const uint64_t *address, uint32_t rows_per_block, uint32_t header,
                                          uint32_t width, uint32_t row) {
    uint64_t a = address[row / rows_per_block];
    return a ? (const uint8_t *)(uintptr_t)a + header + (uint64_t)(row % rows_per_block) * width : (const uint8_t *)0;
}

/* The live bitmap: blocks of SI_LIVE_ROWS rows, bit i%8 of byte i/8, SI_LIVE_HEADER bytes before the bits. */
#define SI_LIVE_HEADER 16u
#define SI_LIVE_ROWS 32512u
static inline int si_is_live(const uint64_t *address, uint32_t row) {
    uint64_t a = address[row / SI_LIVE_ROWS];
    uint32_t i = row % SI_LIVE_ROWS;
    return a ? (((const uint8_t *)(uintptr_t)a)[SI_LIVE_HEADER + (i >> 3)] >> (i & 7)) & 1 : 0;
}

#endif
