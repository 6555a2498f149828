/* A scanner of JSON lines: validates each line whole (RFC 8259) and takes one string field out of it.
 *
 * It would rather refuse than guess: what parsers disagree about (lone surrogate escapes, repeated fields, numbers
 * beyond a double, deep nesting) and what is not worth code (escapes in top-level keys) is SI_JSON_REFUSED, whether
 * the rest of the line is sound or not. SI_JSON_BROKEN is certain.
 */
#ifndef SI_JSONL_H
#define SI_JSONL_H

#include "jsonspan.h"

enum {
    SI_JSON_OK,
    SI_JSON_BLANK,    /* white space only */
    SI_JSON_MISSING,  /* an object without the field */
    SI_JSON_NULL,     /* the field is null */
    SI_JSON_NOT_TEXT, /* the field is no string */
    SI_JSON_BROKEN,   /* no JSON, or no object */
    SI_JSON_REFUSED,
};
enum { SI_LABEL_ABSENT, SI_LABEL_STRING, SI_LABEL_NUMBER, SI_LABEL_OTHER };

#define SI_JSON_DEPTH 64

typedef struct {
    const uint8_t *field, *label; /* names; label may be NULL */
    size_t field_n, label_n;
    /* results of the line */
    size_t text_n;
    const uint8_t *label_from, *label_to;
    int label_kind;
} si_json;

static inline const uint8_t *si_json_blank(const uint8_t *p, const uint8_t *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n'))
        p++;
    return p;
}

static inline int si_hex4(const uint8_t *p, const uint8_t *end, uint32_t *value) {
    if (end - p < 4)
        return 0;
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t c = p[i], low = c | 0x20;
        if (c - '0' < 10)
            v = v << 4 | (c - '0');
        else if (low - 'a' < 6)
            v = v << 4 | (low - 'a' + 10);
        else
            return 0;
    }
    *value = v;
    return 1;
}

/* The escape at p (behind the backslash): its end, or NULL with *status set; the code point in *c. */
static inline const uint8_t *si_json_escape(const uint8_t *p, const uint8_t *end, uint32_t *c, int *status) {
    *status = SI_JSON_BROKEN;
    if (p >= end)
        return NULL;
    switch (*p) {
    case '"': case '\\': case '/': *c = *p; return p + 1;
    case 'b': *c = '\b'; return p + 1;
    case 'f': *c = '\f'; return p + 1;
    case 'n': *c = '\n'; return p + 1;
    case 'r': *c = '\r'; return p + 1;
    case 't': *c = '\t'; return p + 1;
    case 'u': break;
    default: return NULL;
    }
    uint32_t low;
    if (!si_hex4(p + 1, end, c))
        return NULL;
    p += 5;
    if (*c - 0xD800 >= 0x800)
        return p;
    *status = SI_JSON_REFUSED;
    if (*c >= 0xDC00 || end - p < 6 || p[0] != '\\' || p[1] != 'u' || !si_hex4(p + 2, end, &low) ||
        low - 0xDC00 >= 0x400)
        return NULL;
    *c = 0x10000 + ((*c - 0xD800) << 10 | (low - 0xDC00));
    return p + 6;
}

/* The string behind an opening quote: returns the position behind the closing one, or NULL with *status set.
 * With `out`, its characters are written there as UTF-8 (never more bytes than the string has, plus 64 of slack). */
static inline const uint8_t *si_json_string(const uint8_t *p, const uint8_t *end, uint8_t *out, size_t *out_n,
                                            int *escaped, int *status) {
    const uint8_t *from = p;
    uint64_t high = 0;
    size_t n = 0;
    *escaped = 0;
    for (;;) {
        size_t span = si_span(p, end, out ? out + n : NULL, &high);
        p += span;
        n += span;
        if (p >= end || *p < 0x20) {
            *status = SI_JSON_BROKEN;
            return NULL;
        }
        if (*p == '"')
            break;
        uint32_t c;
        *escaped = 1;
        p = si_json_escape(p + 1, end, &c, status);
        if (!p)
            return NULL;
        if (out) {
            uint8_t *o = out + n;
            if (c < 0x80) {
                *o = (uint8_t)c;
                n += 1;
            } else if (c < 0x800) {
                o[0] = (uint8_t)(0xC0 | c >> 6);
                o[1] = (uint8_t)(0x80 | (c & 0x3F));
                n += 2;
            } else if (c < 0x10000) {
                o[0] = (uint8_t)(0xE0 | c >> 12);
                o[1] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
                o[2] = (uint8_t)(0x80 | (c & 0x3F));
                n += 3;
            } else {
                o[0] = (uint8_t)(0xF0 | c >> 18);
                o[1] = (uint8_t)(0x80 | (c >> 12 & 0x3F));
                o[2] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
                o[3] = (uint8_t)(0x80 | (c & 0x3F));
                n += 4;
            }
        }
    }
    if (high && !si_utf8_is_valid(from, p)) {
        *status = SI_JSON_BROKEN;
        return NULL;
    }
    if (out_n)
        *out_n = n;
    return p + 1;
}

static inline const uint8_t *si_json_digits(const uint8_t *p, const uint8_t *end) {
    while (p < end && (uint8_t)(*p - '0') < 10)
        p++;
    return p;
}

static inline const uint8_t *si_json_number(const uint8_t *p, const uint8_t *end, int *status) {
    *status = SI_JSON_BROKEN;
    if (p < end && *p == '-')
        p++;
    const uint8_t *first = p;
    if (p >= end || (uint8_t)(*p - '0') >= 10)
        return NULL;
    p = *p == '0' ? p + 1 : si_json_digits(p, end);
    int large = p - first > 300;
    if (p < end && *p == '.') {
        first = ++p;
        p = si_json_digits(p, end);
        if (p == first)
            return NULL;
    }
    if (p < end && (*p | 0x20) == 'e') {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        first = p;
        p = si_json_digits(p, end);
        if (p == first)
            return NULL;
        large |= p - first > 2;
    }
    if (large) {
        *status = SI_JSON_REFUSED;
        return NULL;
    }
    return p;
}

static inline const uint8_t *si_json_literal(const uint8_t *p, const uint8_t *end, int *status) {
    size_t room = (size_t)(end - p);
    if (room >= 4 && (!memcmp(p, "true", 4) || !memcmp(p, "null", 4)))
        return p + 4;
    if (room >= 5 && !memcmp(p, "false", 5))
        return p + 5;
    *status = SI_JSON_BROKEN;
    return NULL;
}

/* Any value at p: the position behind it, or NULL with *status set. */
static inline const uint8_t *si_json_value(const uint8_t *p, const uint8_t *end, int *status) {
    uint64_t objects = 0; /* one bit a level, the innermost lowest */
    int depth = 0, escaped;
value:
    p = si_json_blank(p, end);
    if (p >= end)
        goto broken;
    if (*p == '"') {
        p = si_json_string(p + 1, end, NULL, NULL, &escaped, status);
    } else if (*p == '{' || *p == '[') {
        int object = *p == '{';
        if (depth == SI_JSON_DEPTH) {
            *status = SI_JSON_REFUSED;
            return NULL;
        }
        depth++;
        objects = objects << 1 | (uint64_t)object;
        p = si_json_blank(p + 1, end);
        if (p < end && *p == (object ? '}' : ']'))
            goto close;
        if (object)
            goto key;
        goto value;
    } else if (*p == '-' || (uint8_t)(*p - '0') < 10) {
        p = si_json_number(p, end, status);
    } else {
        p = si_json_literal(p, end, status);
    }
    if (!p)
        return NULL;
after:
    if (!depth)
        return p;
    p = si_json_blank(p, end);
    if (p >= end)
        goto broken;
    if (*p == ',') {
        p++;
        if (!(objects & 1))
            goto value;
        p = si_json_blank(p, end);
        goto key;
    }
    if (*p != ((objects & 1) ? '}' : ']'))
        goto broken;
close:
    p++;
    depth--;
    objects >>= 1;
    goto after;
key:
    if (p >= end || *p != '"')
        goto broken;
    p = si_json_string(p + 1, end, NULL, NULL, &escaped, status);
    if (!p)
        return NULL;
    p = si_json_blank(p, end);
    if (p >= end || *p != ':')
        goto broken;
    p++;
    goto value;
broken:
    *status = SI_JSON_BROKEN;
    return NULL;
}

static inline int si_json_label_kind(const uint8_t *from, int escaped) {
    if (*from == '"')
        return escaped ? SI_LABEL_OTHER : SI_LABEL_STRING;
    return *from == '-' || (uint8_t)(*from - '0') < 10 ? SI_LABEL_NUMBER : SI_LABEL_OTHER;
}

/* One line; the field's text goes to out (room for the line and 64 bytes). Returns the status. */
static inline int si_json_line(si_json *s, const uint8_t *p, const uint8_t *end, uint8_t *out) {
    int status = SI_JSON_BROKEN, result = SI_JSON_MISSING, escaped;
    s->text_n = 0;
    s->label_kind = SI_LABEL_ABSENT;
    p = si_json_blank(p, end);
    if (p == end)
        return SI_JSON_BLANK;
    if (*p != '{')
        return SI_JSON_BROKEN;
    p = si_json_blank(p + 1, end);
    if (p < end && *p == '}') {
        p++;
        goto done;
    }
    for (;;) {
        if (p >= end || *p != '"')
            return SI_JSON_BROKEN;
        const uint8_t *key = p + 1;
        p = si_json_string(key, end, NULL, NULL, &escaped, &status);
        if (!p)
            return status;
        if (escaped)
            return SI_JSON_REFUSED;
        size_t key_n = (size_t)(p - 1 - key);
        int is_field = key_n == s->field_n && !memcmp(key, s->field, key_n);
        int is_label = s->label && key_n == s->label_n && !memcmp(key, s->label, key_n);
        p = si_json_blank(p, end);
        if (p >= end || *p != ':')
            return SI_JSON_BROKEN;
        p = si_json_blank(p + 1, end);
        if (p >= end)
            return SI_JSON_BROKEN;
        if ((is_field && result != SI_JSON_MISSING) || (is_label && s->label_kind != SI_LABEL_ABSENT))
            return SI_JSON_REFUSED;
        const uint8_t *from = p;
        escaped = 0;
        if (*p == '"') {
            p = si_json_string(p + 1, end, is_field ? out : NULL, is_field ? &s->text_n : NULL, &escaped, &status);
            result = is_field ? SI_JSON_OK : result;
        } else {
            p = si_json_value(p, end, &status);
            if (is_field)
                result = *from == 'n' ? SI_JSON_NULL : SI_JSON_NOT_TEXT;
        }
        if (!p)
            return status;
        if (is_label) {
            s->label_from = from;
            s->label_to = p;
            s->label_kind = si_json_label_kind(from, escaped);
        }
        p = si_json_blank(p, end);
        if (p >= end)
            return SI_JSON_BROKEN;
        if (*p == '}') {
            p++;
            break;
        }
        if (*p != ',')
            return SI_JSON_BROKEN;
        p = si_json_blank(p + 1, end);
    }
done:
    return si_json_blank(p, end) == end ? result : SI_JSON_BROKEN;
}

static inline int64_t si_count_lines(const uint8_t *p, const uint8_t *end) {
    int64_t n = 0;
    while (p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        n++;
        p++;
    }
    return n;
}

/* n lines of data[at ..]; every array has n rows (offsets n + 1); `size` ends the last line if it has no newline.
 * Returns the position behind the last line. */
static inline int64_t si_json_lines(si_json *s, const uint8_t *data, int64_t at, int64_t size, int64_t n,
                                    int64_t *start, int64_t *stop, uint8_t *status, uint8_t *text, int64_t *offsets,
                                    int64_t *label_start, int64_t *label_stop, uint8_t *label_kind) {
    int64_t used = 0;
    offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *p = data + at, *end = memchr(p, '\n', (size_t)(size - at));
        if (!end)
            end = data + size;
        int found = si_json_line(s, p, end, text + used);
        start[i] = at;
        stop[i] = end - data;
        status[i] = (uint8_t)found;
        if (found == SI_JSON_OK)
            used += (int64_t)s->text_n;
        offsets[i + 1] = used;
        if (found >= SI_JSON_BROKEN || s->label_kind == SI_LABEL_ABSENT) {
            label_kind[i] = SI_LABEL_ABSENT;
            label_start[i] = label_stop[i] = -1;
        } else {
            label_kind[i] = (uint8_t)s->label_kind;
            label_start[i] = s->label_from - data;
            label_stop[i] = s->label_to - data;
        }
        at = end - data + 1;
    }
    return at < size ? at : size;
}

#endif
