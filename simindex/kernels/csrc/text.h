/* The text kernel: UTF-8 to shingle hashes, document by document or as a stream, in memory that does not grow. */
#ifndef SI_TEXT_H
#define SI_TEXT_H

#include "tokens.h"
#include <stdlib.h>

enum { SI_WORDS = 0, SI_CHARS = 1 };
enum { SI_TEXT_EMPTY = 1, SI_TEXT_PRESENT = 2, SI_TEXT_SHORTENED = 3 }; /* types.py */

typedef struct {
    uint64_t *hash;
    size_t n, room;
} si_hashes;

typedef struct {
    int kind, n;         /* what a shingle is */
    size_t held;         /* token hashes kept at the front of `token`: fewer than n */
    int any;             /* a shingle was written */
    uint64_t ascii[128]; /* si_char_hash of ASCII */
    si_clean clean;
    si_tokens tokens;
    uint64_t token[SI_SHINGLE_MAX + SI_PIECE_ROOM + 2];
} si_text;

static inline void si_text_begin(si_text *s) {
    s->held = 0;
    s->any = 0;
    si_clean_begin(&s->clean);
    si_tokens_begin(&s->tokens);
}

/* One kernel that finished its work is kept for the next call: fresh pages would cost more than a short text. */
static si_text *si_text_spare = NULL;

static inline void si_text_keep(si_text *s) { free(__atomic_exchange_n(&si_text_spare, s, __ATOMIC_ACQ_REL)); }

/* A text kernel, or NULL without memory. normalize: 0 none, 1 nfc, 2 nfkc. */
static inline si_text *si_text_new(int kind, int n, int normalize, int casefold) {
    si_text *s = __atomic_exchange_n(&si_text_spare, NULL, __ATOMIC_ACQ_REL);
    if (!s) {
        s = malloc(sizeof *s);
        if (!s)
            return NULL;
        for (uint32_t c = 0; c < 128; c++)
            s->ascii[c] = si_char_hash(c);
        memset(s->clean.word, 0, sizeof s->clean.word);
        memset(s->clean.start, 0, sizeof s->clean.start);
    }
    s->kind = kind;
    s->n = n;
    s->clean.mode = si_mode_stage1(normalize, casefold);
    s->clean.words = kind == SI_WORDS;
    s->clean.fold = (uint8_t)casefold;
    s->clean.compose = normalize != 0;
    s->clean.drop = kind == SI_WORDS && normalize != 0;
    si_text_begin(s);
    return s;
}

static inline int si_hashes_need(si_hashes *out, size_t more) {
    if (out->n + more <= out->room)
        return 0;
    size_t room = out->room + out->room / 2;
    if (room < out->n + more)
        room = out->n + more;
    uint64_t *hash = realloc(out->hash, room * sizeof *hash);
    if (!hash)
        return -1;
    out->hash = hash;
    out->room = room;
    return 0;
}

/* Feed bytes; returns those taken (all of them when `final`), or -1 without memory. */
static inline int64_t si_text_feed(si_text *s, const uint8_t *p, size_t n, int final, si_hashes *out) {
    size_t at = 0;
    do {
        size_t took = si_clean_some(&s->clean, p + at, n - at, final);
        at += took;
        int ends = s->clean.n < SI_PIECE || at == n; /* nothing more that could be taken now */
        int last = final && at == n;
        si_clean_cut(&s->clean, last);
        size_t fresh = s->kind == SI_WORDS
                           ? si_take_words(&s->clean, &s->tokens, last, s->token + s->held)
                           : si_take_chars(&s->clean, &s->tokens, s->ascii, s->token + s->held);
        size_t tokens = s->held + fresh, window = (size_t)s->n;
        if (tokens >= window) {
            size_t count = tokens - window + 1;
            if (si_hashes_need(out, count))
                return -1;
            si_shingles(s->token, count, s->n, out->hash + out->n);
            out->n += count;
            s->any = 1;
            s->held = window - 1;
            memmove(s->token, s->token + count, s->held * sizeof *s->token);
        } else
            s->held = tokens;
        if (ends)
            break;
    } while (1);
    return (int64_t)at;
}

/* After the last bytes: write the one shingle of short content; returns the state, or -1 without memory. */
static inline int si_text_end(si_text *s, si_hashes *out) {
    if (s->any)
        return SI_TEXT_PRESENT;
    if (!s->held)
        return SI_TEXT_EMPTY;
    if (si_hashes_need(out, 1))
        return -1;
    out->hash[out->n++] = si_shingle_whole(s->token, s->held);
    return SI_TEXT_SHORTENED;
}

/* n documents; ptr[n + 1] and state[n] are written. Returns 0, or -1 without memory. */
static inline int si_text_batch(si_text *s, const uint8_t *data, const int64_t *offsets, int64_t n, si_hashes *out,
                                int64_t *ptr, uint8_t *state) {
    ptr[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        si_text_begin(s);
        if (si_text_feed(s, data + offsets[i], (size_t)(offsets[i + 1] - offsets[i]), 1, out) < 0)
            return -1;
        int found = si_text_end(s, out);
        if (found < 0)
            return -1;
        state[i] = (uint8_t)found;
        ptr[i + 1] = (int64_t)out->n;
    }
    return 0;
}

static inline void si_text_select(int level) {
    si_clean_select(level);
    si_tokens_select(level);
    si_shingle_select(level);
}

#endif
