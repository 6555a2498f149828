/* Damaged and random packed sets in buffers of exactly their size, under the address and undefined-behaviour
 * sanitizers: any read outside a set ends the program. usage: sets_fuzz ROUNDS SEED LEVEL */
#include <stdio.h>
#include <stdlib.h>

#include "setmatch.h"

static uint64_t state;
static uint64_t next(void) {
    state += 0x9E3779B97F4A7C15u;
    uint64_t x = state;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* A set of up to `most` hashes, sometimes damaged, sometimes cut, sometimes noise. */
static uint8_t *make(size_t *length, uint32_t most, uint32_t *counter) {
    size_t m = next() % (most + 1);
    uint64_t *a = malloc((2 * m + 1) * sizeof *a);
    uint64_t kind = next() % 4, narrow = next() % 60;
    for (size_t i = 0; i < m; i++) a[i] = kind ? next() : next() >> narrow;
    uint8_t *out = malloc(SI_SET_BOUND(m));
    uint32_t n;
    *length = si_set_pack(a, a + m, m, counter, out, &n);
    if (next() % 3 == 0 && *length) {
        for (uint64_t k = next() % 4; k-- > 0;) {
            size_t at = next() % 2 ? next() % *length : next() % (*length < 8 ? *length : 8);
            out[at] ^= (uint8_t)(1u << next() % 8);
        }
        if (next() % 3 == 0) *length = next() % (*length + 1);
    } else if (next() % 5 == 0) {
        *length = next() % (*length + 1);
        for (size_t i = 0; i < *length; i++) out[i] = (uint8_t)(next() >> 20);
        if (*length) out[0] = (uint8_t)(1 + next() % 64);
    }
    uint8_t *exact = malloc(*length ? *length : 1);
    memcpy(exact, out, *length);
    free(out);
    free(a);
    return exact;
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 1000, sound = 0, corrupt = 0;
    state = argc > 2 ? (uint64_t)atol(argv[2]) : 1;
    si_sets_select(argc > 3 ? atoi(argv[3]) : si_machine_level());
    uint32_t *counter = malloc(SI_SORT_COUNTERS * sizeof *counter);
    si_query q;
    memset(&q, 0, sizeof q);
    for (long r = 0; r < rounds; r++) {
        size_t la, lb;
        uint32_t most = r % 50 ? 90 : 9000, inter, size;
        uint8_t *a = make(&la, most, counter), *b = make(&lb, most, counter);
        int status = si_query_set(&q, a, la);
        status ? corrupt++ : sound++;
        double t = next() % 2 ? 0.0 : 0.5;
        for (int again = 0; again < 2; again++) {
            if (!si_query_match(&q, b, lb, t, &inter, &size) && (inter > size && inter > q.set.n)) return 1;
            free(b);
            b = make(&lb, most, counter);
        }
        free(a);
        free(b);
    }
    si_query_free(&q);
    free(counter);
    printf("%ld sound %ld corrupt\n", sound, corrupt);
    return sound && corrupt ? 0 : 1;
}
