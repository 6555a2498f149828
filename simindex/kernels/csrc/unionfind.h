/* Union-find over rows. parent[i] <= i always and the smaller root wins, so a component's root is its first row and
 * one ascending pass flattens every path. */
#ifndef SI_UNIONFIND_H
#define SI_UNIONFIND_H

#include <stdint.h>

/* Without writing: several threads may look while nobody joins. */
static inline uint32_t si_root(const uint32_t *parent, uint32_t row) {
    while (parent[row] != row) row = parent[row];
    return row;
}

/* Returns 1 if the two rows were in different components. */
static inline int si_join(uint32_t *parent, uint32_t a, uint32_t b) {
    while (parent[a] != a) { parent[a] = parent[parent[a]]; a = parent[a]; }
    while (parent[b] != b) { parent[b] = parent[parent[b]]; b = parent[b]; }
    if (a == b) return 0;
    if (a < b) parent[b] = a;
    else parent[a] = b;
    return 1;
}

static inline void si_flatten(uint32_t *parent, int64_t n) {
    for (int64_t i = 0; i < n; i++) parent[i] = parent[parent[i]];
}

#endif
