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
    uint32_t from[SI_PIECE_ROOM + 16], to[SI_PIECE_ROOM + 16];
} si_tokens;

static inline void si_tokens_begin(si_tokens *t) {
    t->state = SI_K0;
    t->taken = 0;
    t->blank = t->any = 0;
}

/* Masks that keep the first n of 16 bytes. */
#define SI_ONES UINT64_C(0xFFFFFFFFFFFFFFFF)
static const uint64_t si_keep_a[17] = {
    0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF, UINT64_C(0xFFFFFFFFFF), UINT64_C(0xFFFFFFFFFFFF), UINT64_C(0xFFFFFFFFFFFFFF),
    SI_ONES, SI_ONES, SI_ONES, SI_ONES, SI_ONES, SI_ONES, SI_ONES, SI_ONES, SI_ONES};
static const uint64_t si_keep_b[17] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF, UINT64_C(0xFFFFFFFFFF), UINT64_C(0xFFFFFFFFFFFF),
    UINT64_C(0xFFFFFFFFFFFFFF), SI_ONES};

/* The hash of the token p[0 .. n), n >= 1, with blocks already taken; p may be read 16 bytes beyond its end. */
static inline uint64_t si_token_hash(const uint8_t *p, size_t n, uint64_t state, uint64_t taken) {
    uint64_t length = n + taken;
    for (; __builtin_expect(n > 16, 0); n -= 16, p += 16)
        state = si_hash_block(state, si_load64(p), si_load64(p + 8));
    return si_hash_last(state, si_load64(p) & si_keep_a[n], si_load64(p + 8) & si_keep_b[n], length);
}

/* The positions of the bits of m; may write SI_BITS_SLACK more than there are. */
#define SI_BITS_SLACK 16
static inline __attribute__((always_inline)) size_t si_list_bits(uint64_t m, uint32_t base, uint32_t *out) {
    size_t n = (size_t)__builtin_popcountll(m);
    if (!m)
        return 0;
    /* Twelve at once: the usual number of tokens in 64 bytes, and no loop whose end must be guessed. */
    for (int i = 0; i < 12; i++, m &= m - 1)
        out[i] = base + (m ? (uint32_t)__builtin_ctzll(m) : 0);
    for (size_t i = 12; m; i++, m &= m - 1)
        out[i] = base + (uint32_t)__builtin_ctzll(m);
    return n;
}

/* Where tokens start and end in the piece's masks; returns their number. */
static inline __attribute__((always_inline)) size_t si_token_bounds(const si_clean *s, uint32_t *from, uint32_t *to) {
    size_t starts = 0, ends = 0, words = s->n / 64 + 1;
    uint64_t carry = 0;
    for (size_t w = 0; w < words; w++) {
        uint64_t m = s->word[w], f = s->start[w], before = m << 1 | carry;
        carry = m >> 63;
        uint32_t base = (uint32_t)(w * 64);
        starts += si_list_bits(m & (~before | f), base, from + starts);
        ends += si_list_bits(before & (~m | f), base, to + ends);
    }
    return starts;
}

/* Hash the words of the piece into out; keep what is open unless `final`. Leaves the piece ready for the next one. */
static inline __attribute__((always_inline)) size_t si_words_body(si_clean *s, si_tokens *t, int final, uint64_t *out) {
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

static size_t si_words_scalar(si_clean *s, si_tokens *t, int final, uint64_t *out) {
    return si_words_body(s, t, final, out);
}

#if SI_X86
/* The same code with bit instructions. */
SI_TARGET_AVX2 static size_t si_words_avx2(si_clean *s, si_tokens *t, int final, uint64_t *out) {
    return si_words_body(s, t, final, out);
}
#endif

static size_t (*si_take_words)(si_clean *, si_tokens *, int, uint64_t *) = si_words_scalar;

static inline void si_tokens_select(int level) {
    si_take_words = si_words_scalar;
#if SI_X86
    if (level >= SI_AVX2)
        si_take_words = si_words_avx2;
#else
    (void)level;
#endif
}

/* The same for characters: one hash per code point. `ascii` has the hashes of ASCII. */
static inline size_t si_take_chars(si_clean *s, si_tokens *t, const uint64_t *ascii, uint64_t *out) {
    const uint8_t *p = s->text, *end = s->text + s->n;
    const uint64_t blank_hash = si_char_hash(' ');
    size_t count = 0, blank = t->blank, any = t->any;
    while (p < end) {
        uint32_t c = *p;
        out[count] = blank_hash;
        if (c < 0x80) { /* without a branch on white space */
            size_t solid = !(c <= 0x20 && (c == 0x20 || c - 9 < 5 || c >= 0x1C));
            p++;
            count += blank & solid;
            out[count] = ascii[c];
            count += solid;
            any |= solid;
            blank = any & (solid ^ 1);
        } else {
            p += si_decode_own(p, &c);
            count += blank;
            out[count++] = si_char_hash(c);
            any = 1;
            blank = 0;
        }
    }
    t->blank = (uint8_t)blank;
    t->any = (uint8_t)any;
    s->n = 0;
    s->last = SIZE_MAX;
    return count;
}

#endif
