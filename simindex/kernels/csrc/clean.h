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

/* Copy the ASCII bytes at the head of a block of n (1 to 64) to out, lowered if `fold`; the mask of those that are
 * word characters goes to *mask. Returns their number; out has room for 64. */
static inline size_t si_block_scalar(const uint8_t *p, size_t n, int fold, uint8_t *out, uint64_t *mask) {
    uint64_t word = 0;
    size_t i = 0;
    for (; i < n && p[i] < 0x80; i++) {
        uint8_t c = p[i], low = c | 0x20;
        uint64_t letter = (uint8_t)(low - 'a') < 26;
        word |= (letter | ((uint8_t)(c - '0') < 10) | (c == '_')) << i;
        out[i] = letter && fold ? low : c;
    }
    *mask = word;
    return i;
}

#if SI_X86
SI_TARGET_AVX2 static inline __m256i si_below_avx2(__m256i x, uint8_t limit) {
    __m256i top = _mm256_set1_epi8((char)(limit - 1));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(x, top), x);
}

SI_TARGET_AVX2 static inline uint32_t si_half_avx2(const uint8_t *p, int fold, uint8_t *out, uint32_t *high) {
    const __m256i bit = _mm256_set1_epi8(0x20);
    __m256i x = _mm256_loadu_si256((const __m256i *)p), low = _mm256_or_si256(x, bit);
    __m256i letter = si_below_avx2(_mm256_sub_epi8(low, _mm256_set1_epi8('a')), 26);
    __m256i digit = si_below_avx2(_mm256_sub_epi8(x, _mm256_set1_epi8('0')), 10);
    __m256i line = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('_'));
    if (fold)
        x = _mm256_or_si256(x, _mm256_and_si256(letter, bit));
    _mm256_storeu_si256((__m256i *)out, x);
    *high = (uint32_t)_mm256_movemask_epi8(x);
    return (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(_mm256_or_si256(letter, digit), line));
}

SI_TARGET_AVX2 static inline size_t si_block_avx2(const uint8_t *p, size_t n, int fold, uint8_t *out, uint64_t *mask) {
    uint8_t padded[64];
    if (n < 64) {
        memset(padded, 0x80, 64);
        memcpy(padded, p, n);
        p = padded;
    }
    uint32_t high0, high1;
    uint64_t word = si_half_avx2(p, fold, out, &high0);
    word |= (uint64_t)si_half_avx2(p + 32, fold, out + 32, &high1) << 32;
    uint64_t high = high0 | (uint64_t)high1 << 32;
    *mask = word & (high ? (high & (0 - high)) - 1 : ~UINT64_C(0));
    return high ? (size_t)__builtin_ctzll(high) : 64;
}

SI_TARGET_AVX512 static inline size_t si_block_avx512(const uint8_t *p, size_t n, int fold, uint8_t *out,
                                                      uint64_t *mask) {
    uint64_t live = n < 64 ? (UINT64_C(1) << n) - 1 : ~UINT64_C(0);
    __m512i x = _mm512_mask_loadu_epi8(_mm512_set1_epi8((char)0x80), live, p);
    __m512i bit = _mm512_set1_epi8(0x20);
    __m512i low = _mm512_or_si512(x, bit);
    uint64_t letter = _mm512_cmplt_epu8_mask(_mm512_sub_epi8(low, _mm512_set1_epi8('a')), _mm512_set1_epi8(26));
    uint64_t digit = _mm512_cmplt_epu8_mask(_mm512_sub_epi8(x, _mm512_set1_epi8('0')), _mm512_set1_epi8(10));
    uint64_t line = _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8('_'));
    _mm512_storeu_si512(out, fold ? _mm512_mask_blend_epi8(letter, x, low) : x);
    uint64_t high = _mm512_movepi8_mask(x);
    *mask = (letter | digit | line) & (high ? (high & (0 - high)) - 1 : ~UINT64_C(0));
    return high ? (size_t)__builtin_ctzll(high) : 64;
}
#endif

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

typedef size_t (*si_block)(const uint8_t *, size_t, int, uint8_t *, uint64_t *);

/* Clean bytes until the piece is full or the input ends; returns the bytes taken. Without `final`, a sequence that
 * the end cuts off is left. Call with s->n bytes kept from the piece before (their `word` bits set). */
static inline __attribute__((always_inline)) size_t si_clean_body(si_clean *s, const uint8_t *p, size_t n, int final,
                                                                  si_block block) {
    const uint8_t *at = p, *end = p + n;
    while (at < end && s->n < SI_PIECE) {
        if (*at < 0x80) {
            if (s->segment.n)
                si_flush(s);
            size_t room = (size_t)(end - at) < 64 ? (size_t)(end - at) : 64;
            uint64_t mask;
            size_t run = block(at, room, s->fold, s->text + s->n, &mask);
            si_put_ascii(s, run, mask);
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
        if (s->segment.n == 0 && c < SI_TABLE_LIMIT && end - at >= 4) {
            /* The common case without a branch: a character that stands for itself. */
            uint32_t value = si_table(s->mode, c);
            if (value < SI_SPACE) {
                size_t to = s->n;
                memcpy(s->text + to, at, 4);
                at += width;
                s->last = to;
                s->n = to + width;
                if (s->words) {
                    uint32_t is_word = value & SI_WORD, is_mark = (value & SI_MARK) != 0;
                    uint32_t unspaced = (value & SI_UNSPACED) != 0;
                    si_set_bits(s->word, to, is_word * ((1u << width) - 1));
                    si_set_bits(s->start, to, is_word & ~is_mark & (s->unspaced | unspaced));
                    s->unspaced = (uint8_t)(is_mark ? s->unspaced : unspaced);
                }
                continue;
            }
        }
        at += width;
        si_clean_point(s, c);
    }
    return (size_t)(at - p);
}

static size_t si_clean_scalar(si_clean *s, const uint8_t *p, size_t n, int final) {
    return si_clean_body(s, p, n, final, si_block_scalar);
}

#if SI_X86
SI_TARGET_AVX2 static size_t si_clean_avx2(si_clean *s, const uint8_t *p, size_t n, int final) {
    return si_clean_body(s, p, n, final, si_block_avx2);
}

SI_TARGET_AVX512 static size_t si_clean_avx512(si_clean *s, const uint8_t *p, size_t n, int final) {
    return si_clean_body(s, p, n, final, si_block_avx512);
}
#endif

static size_t (*si_clean_some)(si_clean *, const uint8_t *, size_t, int) = si_clean_scalar;

static inline void si_clean_select(int level) {
    si_clean_some = si_clean_scalar;
#if SI_X86
    if (level >= SI_AVX2)
        si_clean_some = si_clean_avx2;
    if (level >= SI_AVX512)
        si_clean_some = si_clean_avx512;
#else
    (void)level;
#endif
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
