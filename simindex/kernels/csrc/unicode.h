/* Code points: UTF-8 that never fails, and the frozen Unicode tables (unicode_tables.h).
 *
 * A byte that belongs to no well-formed sequence is the code point SI_BAD_BYTE + byte, beyond Unicode: it is no word
 * character, no white space, and equal only to itself. Surrogates in the three-byte form are code points of their own.
 *
 * Tables: two stages of blocks of 128. A mode's value below 256 says that the code point stands for itself, never
 * joins what stands before it, and has these flags; from 256 on it is 256 + the number of a mapping in the pool.
 */
#ifndef SI_UNICODE_H
#define SI_UNICODE_H

#include "unicode_tables.h"
#include <stddef.h>

#define SI_BAD_BYTE 0x110000u
#define SI_TABLE_LIMIT 0x40000u

enum { SI_WORD = 1, SI_UNSPACED = 2, SI_MARK = 4, SI_SPACE = 8, SI_IGNORABLE = 16 };
enum { SI_MAP_COMPLEX = 1, SI_MAP_DROPPED = 2 }; /* bits of a pool entry's first word; its length is the rest >> 2 */

/* Decode one code point at p < end. Returns its bytes, or 0 if the sequence is cut off by `end` and well-formed so
 * far (the caller may have more bytes; else the first byte is a bad one). */
static inline unsigned si_decode(const uint8_t *p, const uint8_t *end, uint32_t *c) {
    uint32_t first = p[0];
    size_t room = (size_t)(end - p);
    *c = SI_BAD_BYTE + first;
    if (first < 0x80) {
        *c = first;
        return 1;
    }
    if (first < 0xC2 || first > 0xF4)
        return 1;
    if (room < 2)
        return 0;
    uint32_t second = p[1];
    if ((second & 0xC0) != 0x80)
        return 1;
    if (first < 0xE0) {
        *c = (first & 0x1F) << 6 | (second & 0x3F);
        return 2;
    }
    if (first < 0xF0) {
        if (first == 0xE0 && second < 0xA0)
            return 1;
        if (room < 3)
            return 0;
        if ((p[2] & 0xC0) != 0x80)
            return 1;
        *c = (first & 0x0F) << 12 | (second & 0x3F) << 6 | (p[2] & 0x3Fu);
        return 3;
    }
    if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F))
        return 1;
    if (room < 3)
        return 0;
    if ((p[2] & 0xC0) != 0x80)
        return 1;
    if (room < 4)
        return 0;
    if ((p[3] & 0xC0) != 0x80)
        return 1;
    *c = (first & 0x07) << 18 | (second & 0x3F) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
    return 4;
}

/* Encode c (up to 0x1FFFFF, so bad bytes too) at p; may write 4 bytes whatever it returns. */
static inline unsigned si_encode(uint8_t *p, uint32_t c) {
    if (c < 0x80) {
        p[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        p[0] = (uint8_t)(0xC0 | c >> 6);
        p[1] = (uint8_t)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        p[0] = (uint8_t)(0xE0 | c >> 12);
        p[1] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
        p[2] = (uint8_t)(0x80 | (c & 0x3F));
        return 3;
    }
    p[0] = (uint8_t)(0xF0 | c >> 18);
    p[1] = (uint8_t)(0x80 | (c >> 12 & 0x3F));
    p[2] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
    p[3] = (uint8_t)(0x80 | (c & 0x3F));
    return 4;
}

/* Decode what si_encode wrote. */
static inline unsigned si_decode_own(const uint8_t *p, uint32_t *c) {
    uint32_t first = p[0];
    if (first < 0x80) {
        *c = first;
        return 1;
    }
    if (first < 0xE0) {
        *c = (first & 0x1F) << 6 | (p[1] & 0x3Fu);
        return 2;
    }
    if (first < 0xF0) {
        *c = (first & 0x0F) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
        return 3;
    }
    *c = (first & 0x07) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
    return 4;
}

static inline uint32_t si_table(const uint16_t *stage1, uint32_t c) {
    return si_unicode_blocks[(uint32_t)stage1[c >> 7] << 7 | (c & 127)];
}

/* The value of c in a mode's table (0 to 5: none, nfc, nfkc, each without and with case folding). */
static inline uint32_t si_mode_value(const uint16_t *stage1, uint32_t c) {
    if (c < SI_TABLE_LIMIT)
        return si_table(stage1, c);
    if (c >= 0xE0000 && c < 0xE1000)
        return (c >= 0xE0100 && c < 0xE01F0) ? SI_WORD | SI_MARK | SI_IGNORABLE : SI_IGNORABLE;
    return 0;
}

static inline const uint16_t *si_mode_stage1(int normalize, int casefold) {
    return si_unicode_modes + (size_t)(2 * normalize + casefold) * (SI_TABLE_LIMIT >> 7);
}

/* The flags of c as it stands. */
static inline uint32_t si_flags(uint32_t c) { return si_mode_value(si_unicode_modes, c); }

static inline uint8_t si_combining_class(uint32_t c) {
    return c < SI_TABLE_LIMIT ? (uint8_t)si_table(si_unicode_ccc, c) : 0;
}

static inline const uint32_t *si_pool(uint32_t value) { return si_unicode_pool + si_unicode_offsets[value - 256]; }

/* The primary composite of two code points, or 0. */
static inline uint32_t si_compose(uint32_t first, uint32_t second) {
    if (first - 0x1100u < 19 && second - 0x1161u < 21)
        return 0xAC00 + ((first - 0x1100) * 21 + (second - 0x1161)) * 28;
    if (first - 0xAC00u < 11172 && (first - 0xAC00) % 28 == 0 && second - 0x11A8u < 27)
        return first + (second - 0x11A7);
    size_t low = 0, high = SI_UNICODE_PAIRS;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const uint32_t *pair = si_unicode_pairs + 3 * middle;
        if (pair[0] < first || (pair[0] == first && pair[1] < second))
            low = middle + 1;
        else
            high = middle;
    }
    const uint32_t *pair = si_unicode_pairs + 3 * low;
    return low < SI_UNICODE_PAIRS && pair[0] == first && pair[1] == second ? pair[2] : 0;
}

#endif
