/* Records: msgpack [key, sequence, attributes] with fixed-width heads, so that C can read and stamp them:
 *   0x93 | key: 0xcf + 8 bytes (int), 0xdb + 4-byte length + UTF-8 (str), 0xc6 + 4-byte length + bytes
 *        | sequence: 0xcf + 8 bytes | attributes: any msgpack value, 0xc0 (nil) for none.
 * Numbers are big-endian, as in all of msgpack. Frozen since format 1. */
#ifndef SI_RECORDS_H
#define SI_RECORDS_H

#include "heap.h"

#define SI_RECORD_ARRAY 0x93u
#define SI_RECORD_U64 0xcfu
#define SI_RECORD_STR 0xdbu
#define SI_RECORD_BIN 0xc6u
#define SI_RECORD_NIL 0xc0u

static inline uint32_t si_load_be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
static inline uint64_t si_load_be64(const uint8_t *p) {
    return (uint64_t)si_load_be32(p) << 32 | si_load_be32(p + 4);
}
static inline void si_store_be32(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)(v >> 24), p[1] = (uint8_t)(v >> 16), p[2] = (uint8_t)(v >> 8), p[3] = (uint8_t)v;
}
static inline void si_store_be64(uint8_t *p, uint64_t v) {
    si_store_be32(p, (uint32_t)(v >> 32));
    si_store_be32(p + 4, (uint32_t)v);
}

/* The parts of one record. */
typedef struct {
    uint8_t mark;         /* SI_RECORD_U64, _STR or _BIN */
    const uint8_t *key;   /* 8 big-endian bytes, or the key's own */
    uint32_t key_length;
    const uint8_t *sequence; /* its 8 bytes */
    const uint8_t *attributes;
    uint32_t attributes_length;
} si_record;

/* Take a record apart; 0 when its bytes are not one. */
static inline int si_read_record(const uint8_t *p, uint32_t length, si_record *out) {
    uint64_t at;
    if (length < 2 || p[0] != SI_RECORD_ARRAY) return 0;
    out->mark = p[1];
    if (p[1] == SI_RECORD_U64) {
        out->key = p + 2, out->key_length = 8, at = 10;
    } else if ((p[1] == SI_RECORD_STR || p[1] == SI_RECORD_BIN) && length >= 6) {
        out->key = p + 6, out->key_length = si_load_be32(p + 2), at = 6 + (uint64_t)out->key_length;
    } else {
        return 0;
    }
    if (at + 10 > length || p[at] != SI_RECORD_U64) return 0;
    out->sequence = p + at + 1;
    out->attributes = p + at + 9;
    out->attributes_length = (uint32_t)(length - at - 9);
    return 1;
}

static inline int si_stored_record(const uint32_t *first_rows, const uint64_t *addresses, int64_t blocks, uint32_t row,
                                   si_record *out) {
    uint32_t length = 0;
    const uint8_t *p = si_heap_row(first_rows, addresses, blocks, row, &length);
    return p && si_read_record(p, length, out);
}

/* Write a record with sequence 0; the return value is its size. key: 8 bytes in native order for an int. */
static inline uint64_t si_write_record(uint8_t *p, uint8_t mark, uint64_t number, const uint8_t *key,
                                       uint32_t key_length, const uint8_t *attributes, uint64_t attributes_length) {
    uint8_t *start = p;
    *p++ = SI_RECORD_ARRAY;
    *p++ = mark;
    if (mark == SI_RECORD_U64) {
        si_store_be64(p, number);
        p += 8;
    } else {
        si_store_be32(p, key_length);
        p += 4;
        if (key_length) memcpy(p, key, key_length);
        p += key_length;
    }
    *p++ = SI_RECORD_U64;
    si_store_be64(p, 0);
    p += 8;
    if (attributes_length) {
        memcpy(p, attributes, attributes_length);
        p += attributes_length;
    } else {
        *p++ = SI_RECORD_NIL;
    }
    return (uint64_t)(p - start);
}

#endif
