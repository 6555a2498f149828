/* How far a JSON string goes before its next quote, backslash or control character. */
#ifndef SI_JSONSPAN_H
#define SI_JSONSPAN_H

#include "cpu.h"
#include "load.h"
#include <stddef.h>

/* Bytes of [p, end) before the first special one. *high becomes non-zero if a byte beyond ASCII was seen (also among
 * those just behind the special one: it only asks for a check). With `out`, bytes are copied there; up to 64 more may
 * be written. */
static inline size_t si_span_plain(const uint8_t *p, const uint8_t *end, uint8_t *out, uint64_t *high) {
    size_t i = 0, n = (size_t)(end - p);
    for (; i < n; i++) {
        uint8_t c = p[i];
        if (c == '"' || c == '\\' || c < 0x20)
            break;
        *high |= c & 0x80;
        if (out)
            out[i] = c;
    }
    return i;
}

static size_t si_span_scalar(const uint8_t *p, const uint8_t *end, uint8_t *out, uint64_t *high) {
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = UINT64_C(0x8080808080808080);
    const uint8_t *from = p;
    for (; end - p >= 8; p += 8) {
        uint64_t x = si_load64(p), q = x ^ ones * '"', b = x ^ ones * '\\';
        uint64_t found = ((q - ones) & ~q) | ((b - ones) & ~b) | ((x - ones * 0x20) & ~x);
        if (found & tops)
            break; /* may be a false alarm beside a true one: the plain loop decides */
        *high |= x & tops;
        if (out)
            si_store64(out + (p - from), x);
    }
    return (size_t)(p - from) + si_span_plain(p, end, out ? out + (p - from) : out, high);
}

#if SI_X86
SI_TARGET_AVX2 static size_t si_span_avx2(const uint8_t *p, const uint8_t *end, uint8_t *out, uint64_t *high) {
    const __m256i quote = _mm256_set1_epi8('"'), slash = _mm256_set1_epi8('\\'), control = _mm256_set1_epi8(0x1f);
    const uint8_t *from = p;
    for (; end - p >= 32; p += 32) {
        __m256i x = _mm256_loadu_si256((const __m256i *)p);
        __m256i found = _mm256_or_si256(_mm256_or_si256(_mm256_cmpeq_epi8(x, quote), _mm256_cmpeq_epi8(x, slash)),
                                        _mm256_cmpeq_epi8(_mm256_min_epu8(x, control), x));
        uint32_t mask = (uint32_t)_mm256_movemask_epi8(found);
        *high |= (uint32_t)_mm256_movemask_epi8(x);
        if (out)
            _mm256_storeu_si256((__m256i *)(out + (p - from)), x);
        if (mask)
            return (size_t)(p - from) + (size_t)__builtin_ctz(mask);
    }
    return (size_t)(p - from) + si_span_plain(p, end, out ? out + (p - from) : out, high);
}

SI_TARGET_AVX512 static size_t si_span_avx512(const uint8_t *p, const uint8_t *end, uint8_t *out, uint64_t *high) {
    const __m512i quote = _mm512_set1_epi8('"'), slash = _mm512_set1_epi8('\\'), space = _mm512_set1_epi8(0x20);
    const uint8_t *from = p;
    while (p < end) {
        size_t room = (size_t)(end - p);
        __mmask64 live = room >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << room) - 1;
        __m512i x = _mm512_maskz_loadu_epi8(live, p);
        uint64_t mask = (_mm512_cmpeq_epi8_mask(x, quote) | _mm512_cmpeq_epi8_mask(x, slash) |
                         _mm512_cmplt_epu8_mask(x, space)) & live;
        *high |= _mm512_movepi8_mask(x);
        if (out)
            _mm512_storeu_si512(out + (p - from), x);
        if (mask)
            return (size_t)(p - from) + (size_t)__builtin_ctzll(mask);
        p += room < 64 ? room : 64;
    }
    return (size_t)(p - from);
}
#endif

static size_t (*si_span)(const uint8_t *, const uint8_t *, uint8_t *, uint64_t *) = si_span_scalar;

static inline void si_span_select(int level) {
    si_span = si_span_scalar;
#if SI_X86
    if (level >= SI_AVX2)
        si_span = si_span_avx2;
    if (level >= SI_AVX512)
        si_span = si_span_avx512;
#else
    (void)level;
#endif
}

/* Whether bytes are well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms). */
static inline int si_utf8_is_valid(const uint8_t *p, const uint8_t *end) {
    while (p < end) {
        if (*p < 0x80) {
            if (end - p >= 8 && !(si_load64(p) & UINT64_C(0x8080808080808080)))
                p += 8;
            else
                p++;
            continue;
        }
        size_t room = (size_t)(end - p);
        if (*p >= 0xC2 && *p <= 0xDF && room >= 2 && (p[1] & 0xC0) == 0x80) {
            p += 2;
        } else if ((*p & 0xF0) == 0xE0 && room >= 3 && (p[1] & 0xC0) == 0x80 && (p[2] & 0xC0) == 0x80 &&
                   !(*p == 0xE0 && p[1] < 0xA0) && !(*p == 0xED && p[1] > 0x9F)) {
            p += 3;
        } else if (*p >= 0xF0 && *p <= 0xF4 && room >= 4 && (p[1] & 0xC0) == 0x80 && (p[2] & 0xC0) == 0x80 &&
                   (p[3] & 0xC0) == 0x80 && !(*p == 0xF0 && p[1] < 0x90) && !(*p == 0xF4 && p[1] > 0x8F)) {
            p += 4;
        } else
            return 0;
    }
    return 1;
}

#endif
