/* Clean: the first half of the text kernel. UTF-8 in, normalised and case-folded UTF-8 out, a piece at a time.
 *
 * For words, two bit masks go with the cleaned bytes: `word` (the byte belongs to a token) and `start` (a token starts
 * here although the byte before belongs to one too: scripts without spaces). For characters all white space becomes a
 * blank. A piece holds about SI_PIECE cleaned bytes; what a following piece may still change (the last character, as
 * marks may follow) is held back in the segment.
 */
#ifndef SI_CLEAN_H
#define SI_CLEAN_H

#include "cpu.h"
#include "load.h"
#include "segment.h"

#define SI_PIECE 8192
/* One input step adds at most a full segment (each code point 4 bytes) and one mapping; the end adds one segment. */
#define SI_PIECE_ROOM (SI_PIECE + 8 * SI_SEGMENT + 4 * SI_UNICODE_LONGEST + 128)
#define SI_PIECE_WORDS (SI_PIECE_ROOM / 64 + 2)

typedef struct {
    /* settings */
    const uint16_t *mode;
    uint8_t words, fold, compose, drop;
    /* between pieces */
    uint8_t unspaced;  /* the token that is open began with a letter of a script without spaces */
    si_segment segment;
    /* the piece */
    size_t n;          /* cleaned bytes */
    size_t last;       /* where the last character starts, or SIZE_MAX: nothing that a mark could join */
    uint8_t text[SI_PIECE_ROOM + 64];
    uint64_t word[SI_PIECE_WORDS], start[SI_PIECE_WORDS];
} si_clean;

static inline void si_clean_begin(si_clean *s) {
    s->unspaced = 0;
    s->segment.n = 0;
    s->n = 0;
    s->last = SIZE_MAX;
    s->word[0] = s->start[0] = 0;
}

static inline void si_set_bits(uint64_t *mask, size_t at, uint64_t bits) {
    unsigned shift = at & 63;
    mask[at >> 6] |= bits << shift;
    mask[(at >> 6) + 1] |= bits >> 1 >> (63 - shift);
}

/* Write one character that nothing before it can join. */
static inline void si_emit(si_clean *s, uint32_t c, uint32_t flags) {
    if (s->drop && (flags & SI_IGNORABLE))
        return;
    size_t at = s->n;
    if (!s->words) {
        s->n += si_encode(s->text + at, (flags & SI_SPACE) ? ' ' : c);
        s->last = at;
        return;
    }
    unsigned width = si_encode(s->text + at, c);
    s->last = at;
    s->n = at + width;
    if (!(flags & SI_WORD)) {
        s->unspaced = 0;
        return;
    }
    si_set_bits(s->word, at, (UINT64_C(1) << width) - 1);
    if (flags & SI_MARK)
        return;
    if (s->unspaced | (flags & SI_UNSPACED))
        si_set_bits(s->start, at, 1);
    s->unspaced = (flags & SI_UNSPACED) != 0;
}

static inline void si_flush(si_clean *s) {
    si_segment *g = &s->segment;
    si_segment_finish(g, s->fold);
    for (uint32_t i = 0; i < g->n; i++)
        si_emit(s, g->point[i], si_flags(g->point[i]));
    g->n = 0;
}

/* Take the last character back out of the piece: a mark may join it. */
static inline void si_take_back(si_clean *s) {
    if (s->last == SIZE_MAX)
        return;
    size_t at = s->last;
    uint32_t c;
    unsigned width = si_decode_own(s->text + at, &c);
    if (s->words) {
        if (!(si_flags(c) & SI_MARK))
            s->unspaced = s->start[at >> 6] >> (at & 63) & 1;
        for (size_t i = at; i < at + width; i++) {
            s->word[i >> 6] &= ~(UINT64_C(1) << (i & 63));
            s->start[i >> 6] &= ~(UINT64_C(1) << (i & 63));
        }
    }
    s->n = at;
    s->last = SIZE_MAX;
    si_segment_push_decomposed(&s->segment, c);
}

/* Characters that are not simple: collect decompositions until the next simple one. */
static inline void si_collect(si_clean *s, const uint32_t *entry) {
    si_segment *g = &s->segment;
    if (g->n == 0)
        si_take_back(s);
    for (uint32_t i = 1; i <= entry[0] >> 2; i++) {
        if (g->n == SI_SEGMENT) { /* the cut */
            si_flush(s);
            s->last = SIZE_MAX;
        }
        si_segment_push(g, entry[i]);
    }
}

/* One character beyond ASCII. */
static inline void si_clean_point(si_clean *s, uint32_t c) {
    uint32_t value = si_mode_value(s->mode, c);
    if (value < 256) {
        if (s->drop && (value & SI_IGNORABLE))
            return;
        if (s->segment.n)
            si_flush(s);
        si_emit(s, c, value);
        return;
    }
    const uint32_t *entry = si_pool(value);
    if (entry[0] & SI_MAP_COMPLEX) {
        si_collect(s, entry);
        return;
    }
    if (s->drop && (entry[0] & SI_MAP_DROPPED))
        return;
    if (s->segment.n)
        si_flush(s);
    for (uint32_t i = 1; i <= entry[0] >> 2; i++)
        si_emit(s, entry[i], si_flags(entry[i]));
}

/* One block of up to 64 ASCII bytes, scalar: lower it, and return the mask of its word characters. */
static inline uint64_t si_ascii_block(const uint8_t *p, size_t n, int fold, uint8_t *out) {
    uint64_t mask = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t c = p[i], low = c | 0x20;
        uint64_t letter = (uint8_t)(low - 'a') < 26;
        mask |= (letter | ((uint8_t)(c - '0') < 10) | (c == '_')) << i;
        out[i] = letter && fold ? low : c;
    }
    return mask;
}

static inline size_t si_ascii_run(const uint8_t *p, size_t n) {
    size_t i = 0;
    while (i + 8 <= n && !(si_load64(p + i) & UINT64_C(0x8080808080808080)))
        i += 8;
    while (i < n && p[i] < 0x80)
        i++;
    return i;
}

/* Write up to 64 ASCII bytes, whose word characters are `mask`. */
static inline void si_put_ascii(si_clean *s, size_t n, uint64_t mask) {
    if (s->words) {
        if (s->unspaced) {
            if (mask & 1)
                si_set_bits(s->start, s->n, 1);
            s->unspaced = 0;
        }
        si_set_bits(s->word, s->n, mask);
    }
    s->n += n;
    s->last = s->n - 1;
}

/* Clean bytes until the piece is full or the input ends; returns the bytes taken. Without `final`, a sequence that
 * the end cuts off is left. Call with s->n bytes kept from the piece before (their `word` bits set). */
static inline size_t si_clean_some(si_clean *s, const uint8_t *p, size_t n, int final) {
    const uint8_t *at = p, *end = p + n;
    while (at < end && s->n < SI_PIECE) {
        if (*at < 0x80) {
            if (s->segment.n)
                si_flush(s);
            size_t room = (size_t)(end - at) < 64 ? (size_t)(end - at) : 64;
            size_t run = si_ascii_run(at, room);
            si_put_ascii(s, run, si_ascii_block(at, run, s->fold, s->text + s->n));
            at += run;
            continue;
        }
        uint32_t c;
        unsigned width = si_decode(at, end, &c);
        if (!width) {
            if (!final)
                break;
            width = 1;
        }
        at += width;
        si_clean_point(s, c);
    }
    return (size_t)(at - p);
}

/* The piece ends here: flush what is held, or, with more to come, hold the last character back. */
static inline void si_clean_cut(si_clean *s, int final) {
    if (final) {
        if (s->segment.n)
            si_flush(s);
    } else if (s->compose && s->segment.n == 0)
        si_take_back(s);
}

#endif
