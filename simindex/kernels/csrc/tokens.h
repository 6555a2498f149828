/* Tokens: the second half of the text kernel. From a cleaned piece (clean.h) to one hash per token.
 *
 * Words: the h64/1 of a token's cleaned bytes. A token that the piece's end leaves open is kept: whole 16-byte blocks
 * of it go into a hash state, the rest moves to the front of the next piece, so a token of any length needs no memory.
 * Characters: white space collapses to single blanks and is dropped at both ends; the rest is one hash a code point.
 */
#ifndef SI_TOKENS_H
#define SI_TOKENS_H

#include "clean.h"
#include "shingle.h"

typedef struct {
    uint64_t state;      /* of the open token: blocks taken so far ... */
    uint64_t taken;      /* ... and their bytes */
    uint8_t blank;       /* characters: white space since the last one */
    uint8_t any;         /* characters: something came before */
    uint32_t from[SI_PIECE_ROOM], to[SI_PIECE_ROOM];
} si_tokens;

static inline void si_tokens_begin(si_tokens *t) {
    t->state = SI_K0;
    t->taken = 0;
    t->blank = t->any = 0;
}

/* Low bytes of a word, by count. */
static const uint64_t si_low_bytes[9] = {
    0, UINT64_C(0xFF), UINT64_C(0xFFFF), UINT64_C(0xFFFFFF), UINT64_C(0xFFFFFFFF), UINT64_C(0xFFFFFFFFFF),
    UINT64_C(0xFFFFFFFFFFFF), UINT64_C(0xFFFFFFFFFFFFFF), UINT64_C(0xFFFFFFFFFFFFFFFF)};

/* The hash of the token p[0 .. n), n >= 1, with blocks already taken; p may be read 16 bytes beyond its end. */
static inline uint64_t si_token_hash(const uint8_t *p, size_t n, uint64_t state, uint64_t taken) {
    uint64_t length = n + taken;
    for (; n > 16; n -= 16, p += 16)
        state = si_hash_block(state, si_load64(p), si_load64(p + 8));
    uint64_t a = si_load64(p) & si_low_bytes[n < 8 ? n : 8];
    uint64_t b = si_load64(p + 8) & si_low_bytes[n < 8 ? 0 : n - 8];
    return si_hash_last(state, a, b, length);
}

/* Where tokens start and end in the piece's masks; returns their number. */
static inline size_t si_token_bounds(const si_clean *s, uint32_t *from, uint32_t *to) {
    size_t starts = 0, ends = 0, words = s->n / 64 + 1;
    uint64_t carry = 0;
    for (size_t w = 0; w < words; w++) {
        uint64_t m = s->word[w], f = s->start[w], before = m << 1 | carry;
        uint64_t first = m & (~before | f), after = before & (~m | f);
        carry = m >> 63;
        uint32_t base = (uint32_t)(w * 64);
        for (; first; first &= first - 1)
            from[starts++] = base + (uint32_t)__builtin_ctzll(first);
        for (; after; after &= after - 1)
            to[ends++] = base + (uint32_t)__builtin_ctzll(after);
    }
    return starts;
}

/* Hash the words of the piece into out; keep what is open unless `final`. Leaves the piece ready for the next one. */
static inline size_t si_take_words(si_clean *s, si_tokens *t, int final, uint64_t *out) {
    size_t n = s->n, count, i = 0;
    memset(s->text + n, 0, 16);
    count = si_token_bounds(s, t->from, t->to);
    int open = !final && count && t->to[count - 1] == n;
    size_t whole = count - (size_t)open;
    if (whole && t->taken) {
        out[0] = si_token_hash(s->text, t->to[0], t->state, t->taken);
        i = 1;
    }
    for (; i < whole; i++)
        out[i] = si_token_hash(s->text + t->from[i], t->to[i] - t->from[i], SI_K0, 0);
    size_t kept = 0;
    if (open) {
        size_t at = t->from[whole];
        if (whole) {
            t->state = SI_K0;
            t->taken = 0;
        }
        for (; n - at > 16; at += 16, t->taken += 16)
            t->state = si_hash_block(t->state, si_load64(s->text + at), si_load64(s->text + at + 8));
        kept = n - at;
        memmove(s->text, s->text + at, kept);
    } else {
        t->state = SI_K0;
        t->taken = 0;
    }
    size_t words = n / 64 + 2;
    memset(s->word, 0, words * 8);
    memset(s->start, 0, words * 8);
    s->word[0] = (UINT64_C(1) << kept) - 1;
    s->n = kept;
    s->last = SIZE_MAX;
    return whole;
}

/* The same for characters: one hash per code point. */
static inline size_t si_take_chars(si_clean *s, si_tokens *t, const uint64_t *ascii, uint64_t *out) {
    const uint8_t *p = s->text, *end = s->text + s->n;
    size_t count = 0;
    while (p < end) {
        uint32_t c = *p;
        uint64_t hash;
        if (c < 0x80) {
            p++;
            if (c <= 0x20 && (c == 0x20 || c - 9 < 5 || c >= 0x1C)) {
                t->blank = t->any;
                continue;
            }
            hash = ascii[c];
        } else {
            p += si_decode_own(p, &c);
            hash = si_char_hash(c);
        }
        if (t->blank) {
            out[count++] = ascii[' '];
            t->blank = 0;
        }
        t->any = 1;
        out[count++] = hash;
    }
    s->n = 0;
    s->last = SIZE_MAX;
    return count;
}

#endif
