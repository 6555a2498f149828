/* Building and reading the row-indexed blocks: live bitmaps, signatures, heaps. */
#ifndef SI_BLOCKS_H
#define SI_BLOCKS_H

#include "crc32c.h"
#include "heap.h"
#include "views.h"

#define SI_BLOCK_CRC 4u      /* every block: magic u32, CRC-32C u32 of all that follows */
#define SI_BLOCK_CHECKED 8u
#define SI_SIGNATURE_STATES 48u

static inline void si_seal(uint8_t *block, uint64_t size) {
    si_store32(block + SI_BLOCK_CRC, si_crc32c(0, block + SI_BLOCK_CHECKED, size - SI_BLOCK_CHECKED));
}

static inline int si_is_sealed(const uint8_t *block, uint64_t size) {
    return size >= SI_BLOCK_CHECKED &&
           si_load32(block + SI_BLOCK_CRC) == si_crc32c(0, block + SI_BLOCK_CHECKED, size - SI_BLOCK_CHECKED);
}

/* Live rows in [start, stop), both inside one live block whose bits begin at `bits`. */
static inline uint64_t si_count_bits(const uint8_t *bits, uint32_t start, uint32_t stop) {
    uint64_t n = 0;
    uint32_t i = start;
    for (; i < stop && (i & 7); i++) n += (bits[i >> 3] >> (i & 7)) & 1;
    for (; i + 64 <= stop; i += 64) n += (uint64_t)__builtin_popcountll(si_load64(bits + (i >> 3)));
    for (; i < stop; i++) n += (bits[i >> 3] >> (i & 7)) & 1;
    return n;
}

static uint64_t si_count_live(const uint64_t *address, uint64_t start, uint64_t stop) {
    uint64_t n = 0;
    while (start < stop) {
        uint64_t block = start / SI_LIVE_ROWS, base = block * SI_LIVE_ROWS;
        uint64_t end = base + SI_LIVE_ROWS < stop ? base + SI_LIVE_ROWS : stop;
        if (address[block])
            n += si_count_bits((const uint8_t *)(uintptr_t)address[block] + SI_LIVE_HEADER,
                               (uint32_t)(start - base), (uint32_t)(end - base));
        start = end;
    }
    return n;
}

/* Writes the live rows of [start, stop) to `out` (room for stop - start) and returns how many there are. */
static uint64_t si_list_live(const uint64_t *address, uint64_t start, uint64_t stop, uint32_t *out) {
    uint64_t n = 0;
    while (start < stop) {
        uint64_t block = start / SI_LIVE_ROWS, base = block * SI_LIVE_ROWS;
        uint64_t end = base + SI_LIVE_ROWS < stop ? base + SI_LIVE_ROWS : stop;
        if (address[block]) {
            const uint8_t *bits = (const uint8_t *)(uintptr_t)address[block] + SI_LIVE_HEADER;
            uint32_t i = (uint32_t)(start - base), last = (uint32_t)(end - base);
            while (i < last) {
                if (!(i & 63) && i + 64 <= last) {
                    uint64_t word = si_load64(bits + (i >> 3));
                    for (; word; word &= word - 1)
                        out[n++] = (uint32_t)(base + i + (uint32_t)__builtin_ctzll(word));
                    i += 64;
                } else {
                    if ((bits[i >> 3] >> (i & 7)) & 1) out[n++] = (uint32_t)(base + i);
                    i++;
                }
            }
        }
        start = end;
    }
    return n;
}

/* Sets the bits of rows [start, stop) in writable live blocks. */
static void si_set_live(const uint64_t *address, uint64_t start, uint64_t stop) {
    for (; start < stop; start++) {
        uint8_t *bits = (uint8_t *)(uintptr_t)address[start / SI_LIVE_ROWS] + SI_LIVE_HEADER;
        uint32_t i = (uint32_t)(start % SI_LIVE_ROWS);
        if (!(i & 7) && start + 8 <= stop && i + 8 <= SI_LIVE_ROWS) {
            bits[i >> 3] = 0xFF;
            start += 7;
        } else
            bits[i >> 3] |= (uint8_t)(1u << (i & 7));
    }
}

static void si_clear_live(const uint64_t *address, const uint32_t *rows, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        uint32_t i = rows[k] % SI_LIVE_ROWS;
        uint8_t *bits = (uint8_t *)(uintptr_t)address[rows[k] / SI_LIVE_ROWS] + SI_LIVE_HEADER;
        bits[i >> 3] &= (uint8_t)~(1u << (i & 7));
    }
}

/* Two-bit states of rows at .. at + n of a signature block. */
static void si_put_states(uint8_t *block, uint32_t at, const uint8_t *states, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        uint64_t i = at + (uint64_t)k;
        uint8_t *byte = block + SI_SIGNATURE_STATES + (i >> 2);
        uint32_t shift = 2 * (uint32_t)(i & 3);
        *byte = (uint8_t)((*byte & ~(3u << shift)) | ((uint32_t)(states[k] & 3) << shift));
    }
}

static inline uint8_t si_row_state(uint64_t block_address, uint32_t at) {
    const uint8_t *states = (const uint8_t *)(uintptr_t)block_address + SI_SIGNATURE_STATES;
    return (states[at >> 2] >> (2 * (at & 3))) & 3;
}

/* Writes the offsets and bytes of values [start, stop) of (data, offsets) after the header of `block`. */
static void si_fill_heap(uint8_t *block, const uint8_t *data, const int64_t *offsets, int64_t start,
                         int64_t stop) {
    uint64_t count = (uint64_t)(stop - start), first = SI_HEAP_HEADER + 4 * (count + 1);
    for (uint64_t i = 0; i <= count; i++)
        si_store32(block + SI_HEAP_HEADER + 4 * i,
                   (uint32_t)(first + (uint64_t)(offsets[start + (int64_t)i] - offsets[start])));
    if (offsets[stop] > offsets[start])
        memcpy(block + first, data + offsets[start], (size_t)(offsets[stop] - offsets[start]));
}

/* Is every offset of a heap block of `size` bytes ascending, inside the block, and without gaps? */
static int si_heap_is_sound(const uint8_t *block, uint64_t size) {
    if (size < SI_HEAP_HEADER + 4) return 0;
    uint64_t count = si_load32(block + SI_HEAP_COUNT), first = SI_HEAP_HEADER + 4 * (count + 1);
    if (!count || first > size || si_load32(block + SI_HEAP_HEADER) != first) return 0;
    for (uint64_t i = 0; i < count; i++)
        if (si_load32(block + SI_HEAP_HEADER + 4 * i) > si_load32(block + SI_HEAP_HEADER + 4 * i + 4)) return 0;
    return si_load32(block + SI_HEAP_HEADER + 4 * count) == size;
}

#endif
