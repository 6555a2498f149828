/* Union-find over rows. parent[i] <= i always and the smaller root wins, so a component's root is its first row and
 * one ascending pass flattens every path. */
#ifndef SI_UNIONFIND_H
#define SI_UNIONFIND_H

#include <stdint.h>

/* Without writing: several threads may look while nobody joins. */
static inline uint32_t si_root(const uint32_t *parent, uint32_t row) {
    while (parent[row] < row) row = parent[row]; /* a parent above its row is not followed */
    return row;
}

/* Go from *a to its root, halving the way; 0 when a parent is above its row, which would leave the array. */
static inline int si_climb(uint32_t *parent, uint32_t *a) {
    uint32_t here = *a, up;
    while ((up = parent[here]) != here) {
        if (up > here || parent[up] > up) return 0;
        here = parent[here] = parent[up];
    }
    *a = here;
    return 1;
}

/* Returns 1 if the two rows were in different components, -1 when a parent is above its row. */
static inline int si_join(uint32_t *parent, uint32_t a, uint32_t b) {
    if (!si_climb(parent, &a) || !si_climb(parent, &b)) return -1;
    if (a == b) return 0;
    if (a < b) parent[b] = a;
    else parent[a] = b;
    return 1;
}

/* Returns the first row whose parent is above it, -1 when there is none. */
static inline int64_t si_flatten(uint32_t *parent, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (parent[i] > i) return i;
        parent[i] = parent[parent[i]];
    }
    return -1;
}

#endif
