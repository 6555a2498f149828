/* Checks of compressed-row offsets, shared by the signing kernels. */
#ifndef SI_ROWS_H
#define SI_ROWS_H

#include <stdint.h>

/* The first i at which ptr (n + 1 values over m elements) is wrong, or -1: ptr[0] = 0, not decreasing, ptr[n] = m. */
static inline int64_t si_bad_offset(const int64_t *ptr, int64_t n, int64_t m) {
    if (ptr[0] != 0) return 0;
    for (int64_t i = 0; i < n; i++)
        if (ptr[i + 1] < ptr[i]) return i + 1;
    return ptr[n] == m ? -1 : n;
}

#endif
