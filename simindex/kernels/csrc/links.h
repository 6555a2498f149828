/* Verified links inside the buckets of one band.
 *
 * Postings (bucket << 32 | row) come ascending; a bucket may reach over several runs. Inside a bucket the rows form
 * groups: rows that are connected already, or were linked here. Each new row is compared with the leader (first row)
 * of every other group; a pair is a link if enough slots are equal and, where originals are kept, their Jaccard
 * reaches the threshold. If the leader is no link, the group's other members are tried, but only those that can pass:
 * slots that differ are a metric, so a member y at distance d(y, leader) < d(x, leader) - most_unequal cannot.
 * Both this and leaving out connected pairs lose nothing: the components are those of all verified pairs that share
 * a bucket, as long as the bucket's credit lasts. Every row brings SI_LINK_CREDIT to the SI_LINK_START that a bucket
 * begins with, a comparison costs 1, a verification SI_LINK_VERIFY. What is left out for want of credit or room is
 * counted in `cut`. So the work is linear in the size of a bucket, and its memory constant.
 *
 * A row whose set (without originals: signature) equals that of an earlier row is a copy: it has the same buckets and
 * the same links, so it is linked once, found by a hash of its signature, and then left out of everything.
 *
 * `parent` and `copies` are only read: buckets of one band share no row, so several linkers may work on disjoint runs
 * of buckets, and what they find does not depend on how the runs are divided. */
#ifndef SI_LINKS_H
#define SI_LINKS_H

#include <stdlib.h>

#include "equal.h"
#include "setmatch.h"
#include "unionfind.h"
#include "views.h"

#define SI_LINK_START 65536
#define SI_LINK_CREDIT 256
#define SI_LINK_VERIFY 8
#define SI_LINK_MEMBERS (1u << 20)
#define SI_LINK_GROUPS (1u << 16)
#define SI_LINK_QUERIES 4u
#define SI_LINK_LARGE (1u << 15) /* hashes of a set whose decoded form is not kept for long */
#define SI_LINK_NONE 0xffffffffu
#define SI_LINK_AHEAD 32 /* postings between fetching a row's signature and using it */
#define SI_LINK_FAILED_BITS 18

typedef struct { uint32_t row, next, distance; } si_member;
typedef struct { uint32_t leader, head, count, forward, place; } si_group;

/* From a 32-bit key to a 32-bit value, open addressing; a key may have several values. */
typedef struct { uint32_t *slot, bits, used; } si_map;

typedef struct {
    /* Settings. */
    uint32_t width, slot_bytes, slots, most_unequal, exact;
    double threshold;
    /* What one run reads. */
    const uint64_t *signatures;
    uint64_t blocks, n_rows;
    uint32_t rows_per_block, header;
    si_heap heap;
    const uint32_t *parent;
    const uint8_t *copies;
    /* The open bucket. */
    uint64_t bucket;
    uint32_t opened; /* not opened: all rows so far are connected, and wait in `waiting` */
    uint32_t *waiting, waiters, waiting_room;
    int64_t credit;
    si_member *member;
    si_group *group;
    uint32_t *active; /* groups still in use */
    uint32_t members, member_room, groups, group_room, actives;
    si_map roots;      /* root -> group */
    si_map contents; /* hash of a signature -> row */
    uint64_t listed; /* rows in groups */
    /* What one run found: pairs a << 32 | b, and copies. */
    uint64_t *link;
    uint32_t *copy;
    size_t links, link_room, copied, copy_room;
    /* Decoded sets, and pairs that failed (direct-mapped, a pair may be forgotten). */
    si_query query[SI_LINK_QUERIES];
    uint32_t query_row[SI_LINK_QUERIES], query_next, failed_bits;
    uint64_t *failed;
    /* Counters and the outcome. */
    uint64_t compared, candidates, verified, cut;
    int status;
    uint32_t bad_row;
} si_linker;

static inline void si_linker_free(si_linker *L) {
    for (uint32_t i = 0; i < SI_LINK_QUERIES; i++) si_query_free(&L->query[i]);
    free(L->waiting);
    free(L->member);
    free(L->group);
    free(L->active);
    free(L->roots.slot);
    free(L->contents.slot);
    free(L->link);
    free(L->copy);
    free(L->failed);
    memset(L, 0, sizeof *L);
}

static inline int si_fail(si_linker *L, int status, uint32_t row) {
    if (!L->status) { L->status = status; L->bad_row = row; }
    return 0;
}

/* Room for one more entry of an array; 0 without memory. */
#define SI_LINK_GROW(L, array, used, room)                                                                            \
    ((used) < (room) || si_link_grow((void **)&(array), &(room), sizeof *(array)) || si_fail(L, SI_SETS_MEMORY, 0))
static inline int si_link_grow32(void **array, uint32_t *room, size_t size) {
    uint32_t more = *room ? *room * 2 : 64;
    void *p = realloc(*array, more * size);
    if (!p) return 0;
    *array = p;
    *room = more;
    return 1;
}
static inline int si_link_grow64(void **array, size_t *room, size_t size) {
    size_t more = *room ? *room * 2 : 256;
    void *p = realloc(*array, more * size);
    if (!p) return 0;
    *array = p;
    *room = more;
    return 1;
}
#define si_link_grow(array, room, size)                                                                               \
    _Generic((room), uint32_t *: si_link_grow32, size_t *: si_link_grow64)(array, room, size)

/* Groups -------------------------------------------------------------------------------------------------------- */

static inline uint32_t si_group_of(si_linker *L, uint32_t g) {
    while (L->group[g].forward != g) g = L->group[g].forward;
    return g;
}

static inline void si_map_clear(si_map *map) {
    if (map->bits > 8) { free(map->slot); map->slot = 0; map->bits = 0; } /* small buckets clear small maps */
    else if (map->used) memset(map->slot, 0xff, (size_t)8 << map->bits);
    map->used = 0;
}

/* Place of the first slot of a key, or of the free slot that ends its search. */
static inline uint32_t si_map_first(const si_map *map, uint32_t key) {
    return map->bits ? (key * 0x9E3779B1u) >> (32 - map->bits) : 0;
}

static inline void si_map_insert(si_map *map, uint32_t key, uint32_t value) {
    uint32_t mask = (1u << map->bits) - 1, at = si_map_first(map, key);
    while (map->slot[2 * at + 1] != SI_LINK_NONE) at = (at + 1) & mask;
    map->slot[2 * at] = key;
    map->slot[2 * at + 1] = value;
    map->used++;
}

/* Beyond SI_LINK_MEMBERS keys a map learns no more: that costs comparisons and loses nothing. */
static inline void si_map_put(si_linker *L, si_map *map, uint32_t key, uint32_t value) {
    if (map->used >= SI_LINK_MEMBERS) return;
    if (!map->bits || 2 * (map->used + 1) > (1u << map->bits)) {
        si_map larger = {0, map->bits ? map->bits + 1 : 5, 0};
        larger.slot = malloc((size_t)8 << larger.bits);
        if (!larger.slot) { si_fail(L, SI_SETS_MEMORY, 0); return; }
        memset(larger.slot, 0xff, (size_t)8 << larger.bits);
        for (uint32_t i = 0; map->bits && i < (1u << map->bits); i++)
            if (map->slot[2 * i + 1] != SI_LINK_NONE) si_map_insert(&larger, map->slot[2 * i], map->slot[2 * i + 1]);
        free(map->slot);
        *map = larger;
    }
    si_map_insert(map, key, value);
}

static inline uint32_t si_group_of_root(si_linker *L, uint32_t root) {
    const si_map *map = &L->roots;
    if (!map->bits) return SI_LINK_NONE;
    uint32_t mask = (1u << map->bits) - 1;
    for (uint32_t at = si_map_first(map, root);; at = (at + 1) & mask) {
        uint32_t g = map->slot[2 * at + 1];
        if (g == SI_LINK_NONE) return g;
        if (map->slot[2 * at] == root) return si_group_of(L, g);
    }
}

static inline const uint8_t *si_signature(si_linker *L, uint32_t row) {
    const uint8_t *p = 0;
    if (row / L->rows_per_block < L->blocks)
        p = si_fixed_row(L->signatures, L->rows_per_block, L->header, L->width, row);
    if (!p) si_fail(L, SI_SETS_MISSING, row);
    return p;
}

static inline uint32_t si_distance(si_linker *L, const uint8_t *a, uint32_t row) {
    const uint8_t *b = si_signature(L, row);
    return b ? L->slots - si_equal_pair(a, b, L->width, L->slot_bytes) : 0;
}

static inline void si_new_group(si_linker *L, uint32_t row, uint32_t root) {
    if (L->groups >= SI_LINK_GROUPS) { L->cut++; return; }
    if (L->groups == L->group_room) { /* active has the same room */
        uint32_t room = L->group_room;
        if (!si_link_grow32((void **)&L->active, &room, sizeof *L->active) ||
            !si_link_grow32((void **)&L->group, &L->group_room, sizeof *L->group)) {
            si_fail(L, SI_SETS_MEMORY, row);
            return;
        }
    }
    uint32_t g = L->groups++;
    L->group[g] = (si_group){row, SI_LINK_NONE, 1, g, L->actives};
    L->active[L->actives++] = g;
    L->listed++;
    si_map_put(L, &L->roots, root, g);
}

/* Larger groups come first, so that scarce credit goes to them. */
static inline void si_rise(si_linker *L, uint32_t g) {
    uint32_t at = L->group[g].place;
    while (at && L->group[L->active[at - 1]].count < L->group[g].count) {
        uint32_t other = L->active[at - 1];
        L->active[at] = other;
        L->group[other].place = at;
        at--;
    }
    L->active[at] = g;
    L->group[g].place = at;
}

static inline void si_add_member(si_linker *L, uint32_t g, uint32_t row, uint32_t distance) {
    if (L->members >= SI_LINK_MEMBERS) { L->cut++; return; }
    if (!SI_LINK_GROW(L, L->member, L->members, L->member_room)) return;
    L->member[L->members] = (si_member){row, L->group[g].head, distance};
    L->group[g].head = L->members++;
    L->group[g].count++;
    L->listed++;
}

/* Make one group of two; returns it. The larger keeps its leader. */
static inline uint32_t si_merge_groups(si_linker *L, uint32_t a, uint32_t b) {
    if (L->group[b].count > L->group[a].count ||
        (L->group[b].count == L->group[a].count && L->group[b].leader < L->group[a].leader)) {
        uint32_t t = a;
        a = b;
        b = t;
    }
    si_group *large = &L->group[a], *small = &L->group[b];
    const uint8_t *leader = si_signature(L, large->leader);
    if (!leader) return a;
    uint32_t last = SI_LINK_NONE;
    for (uint32_t m = small->head; m != SI_LINK_NONE; m = L->member[m].next) {
        L->member[m].distance = si_distance(L, leader, L->member[m].row);
        last = m;
    }
    if (last != SI_LINK_NONE) {
        L->member[last].next = large->head;
        large->head = small->head;
        large->count += small->count - 1;
    }
    L->listed--; /* the leader is listed again as a member */
    small->forward = a;
    for (uint32_t at = small->place; at + 1 < L->actives; at++) {
        L->active[at] = L->active[at + 1];
        L->group[L->active[at]].place = at;
    }
    L->actives--;
    si_add_member(L, a, small->leader, si_distance(L, leader, small->leader));
    return a;
}

/* Verification -------------------------------------------------------------------------------------------------- */

static inline const uint8_t *si_original(si_linker *L, uint32_t row, size_t *length) {
    const uint8_t *p = si_heap_set(&L->heap, row, length);
    if (!p) si_fail(L, SI_SETS_MISSING, row);
    else if (*length == SIZE_MAX) { si_fail(L, SI_SETS_CORRUPT, row); p = 0; }
    return p;
}

/* Have two rows of equal signature the same set? Equal sets are equal bytes. */
static inline int si_is_copy(si_linker *L, uint32_t a, uint32_t b) {
    if (!L->exact) return 1;
    size_t la = 0, lb = 0;
    const uint8_t *pa = si_original(L, a, &la), *pb = si_original(L, b, &lb);
    return pa && pb && la == lb && !memcmp(pa, pb, la);
}

static inline int si_is_link(si_linker *L, uint32_t x, uint32_t y) {
    L->candidates++;
    L->credit -= SI_LINK_VERIFY;
    if (!L->exact) return 1;
    uint64_t pair = x < y ? (uint64_t)x << 32 | y : (uint64_t)y << 32 | x;
    uint64_t *slot = &L->failed[(pair * 0x9E3779B97F4A7C15u) >> (64 - L->failed_bits)];
    if (*slot == pair) return 0; /* no row pairs with itself, so 0 is no pair */
    L->verified++;
    uint32_t at = SI_LINK_QUERIES, inter, size;
    for (uint32_t i = 0; i < SI_LINK_QUERIES; i++)
        if (L->query[i].set.n && (L->query_row[i] == y || L->query_row[i] == x)) at = i;
    size_t length;
    const uint8_t *bytes;
    if (at == SI_LINK_QUERIES) { /* few groups: the next rows will ask for y again; many: x goes on to the others */
        uint32_t decode = L->actives <= SI_LINK_QUERIES ? y : x;
        if (!(bytes = si_original(L, decode, &length))) return 0;
        at = L->query_next++ % SI_LINK_QUERIES;
        int status = si_query_set(&L->query[at], bytes, length);
        if (status) return si_fail(L, status, decode);
        L->query_row[at] = decode;
        /* One large set at a time. */
        for (uint32_t i = 0; i < SI_LINK_QUERIES && L->query[at].room > SI_LINK_LARGE; i++)
            if (i != at && L->query[i].room > SI_LINK_LARGE) si_query_free(&L->query[i]);
    }
    uint32_t other = L->query_row[at] == y ? x : y;
    if (!(bytes = si_original(L, other, &length))) return 0;
    int status = si_query_match(&L->query[at], bytes, length, L->threshold, &inter, &size);
    if (status) return si_fail(L, status, other);
    if (inter) return 1;
    *slot = pair;
    return 0;
}

static inline void si_put_link(si_linker *L, uint32_t a, uint32_t b) {
    if (SI_LINK_GROW(L, L->link, L->links, L->link_room)) L->link[L->links++] = (uint64_t)a << 32 | b;
}

static inline void si_put_copy(si_linker *L, uint32_t row) {
    if (SI_LINK_GROW(L, L->copy, L->copied, L->copy_room)) L->copy[L->copied++] = row;
}

/* Buckets ------------------------------------------------------------------------------------------------------- */

/* An earlier row of the bucket with the same set as x; SI_LINK_NONE if there is none, and then x is remembered. */
static inline uint32_t si_find_copy(si_linker *L, uint32_t x, const uint8_t *signature) {
    uint64_t h = 0;
    uint32_t i = 0;
    for (; i + 8 <= L->width && i < 64; i += 8) h = (h ^ si_load64(signature + i)) * 0x9E3779B97F4A7C15u;
    for (; i < L->width && i < 64; i++) h = (h ^ signature[i]) * 0x9E3779B97F4A7C15u;
    uint32_t key = (uint32_t)(h >> 32), tried = 0;
    const si_map *map = &L->contents;
    if (map->bits) {
        uint32_t mask = (1u << map->bits) - 1;
        for (uint32_t at = si_map_first(map, key); tried < 8; at = (at + 1) & mask) {
            uint32_t y = map->slot[2 * at + 1];
            if (y == SI_LINK_NONE) break;
            if (map->slot[2 * at] != key) continue;
            tried++; /* rows of equal signature and different sets: a few, or the search would be quadratic */
            if (!si_distance(L, signature, y) && si_is_copy(L, x, y)) return y;
        }
    }
    if (tried < 8) si_map_put(L, &L->contents, key, x);
    return SI_LINK_NONE;
}

static inline void si_open_groups(si_linker *L) {
    const uint32_t first = L->waiting[0];
    si_map_clear(&L->roots);
    si_map_clear(&L->contents);
    L->members = L->groups = L->actives = 0;
    L->listed = 0;
    L->credit = SI_LINK_START;
    L->opened = 1;
    const uint8_t *signature = si_signature(L, first);
    if (!signature) return;
    si_find_copy(L, first, signature);
    si_new_group(L, first, si_root(L->parent, first));
}

/* Is x linked to any row of group g? Sets *distance to the leader and *with to the row found. */
static inline int si_meets_group(si_linker *L, uint32_t x, const uint8_t *signature, uint32_t g, uint32_t *distance,
                                 uint32_t *with) {
    const si_group *group = &L->group[g];
    uint32_t d = si_distance(L, signature, group->leader);
    *distance = d;
    *with = group->leader;
    L->compared++;
    L->credit--;
    if (d <= L->most_unequal && si_is_link(L, x, group->leader)) return 1;
    uint64_t tried = 1;
    for (uint32_t m = group->head; m != SI_LINK_NONE && !L->status; m = L->member[m].next) {
        if (L->credit <= 0) { L->cut += group->count - tried; return 0; }
        tried++;
        if (L->member[m].distance + L->most_unequal < d) continue;
        *with = L->member[m].row;
        uint32_t e = si_distance(L, signature, *with);
        L->compared++;
        L->credit--;
        if (e <= L->most_unequal && si_is_link(L, x, *with)) return 1;
    }
    return 0;
}

static inline void si_link_row(si_linker *L, uint32_t x) {
    const uint8_t *signature = si_signature(L, x);
    if (!signature) return;
    L->credit += SI_LINK_CREDIT;
    uint32_t root = si_root(L->parent, x), mine = si_group_of_root(L, root);
    uint32_t same = si_find_copy(L, x, signature), distance = 0;
    const int known = mine != SI_LINK_NONE;
    if (same != SI_LINK_NONE) {
        uint32_t other = si_root(L->parent, same), theirs = si_group_of_root(L, other);
        si_put_copy(L, x);
        if (other == root) return;
        si_put_link(L, same, x);
        if (theirs == SI_LINK_NONE) return; /* forgotten for want of room */
        if (!known) si_map_put(L, &L->roots, root, theirs);
        else if (mine != theirs) si_rise(L, si_merge_groups(L, mine, theirs));
        return;
    }
    if (known) distance = si_distance(L, signature, L->group[mine].leader);
    uint64_t seen = known ? L->group[mine].count : 0;
    for (uint32_t i = 0; i < L->actives && !L->status; i++) {
        uint32_t g = L->active[i], d, with = 0;
        if (g == mine) continue;
        if (L->credit <= 0) { L->cut += L->listed > seen ? L->listed - seen : 0; break; }
        seen += L->group[g].count;
        if (!si_meets_group(L, x, signature, g, &d, &with)) continue;
        si_put_link(L, with, x);
        if (mine == SI_LINK_NONE) {
            mine = g;
            distance = d;
        } else {
            uint32_t leader = L->group[mine].leader;
            mine = si_merge_groups(L, mine, g);
            if (L->group[mine].leader != leader) distance = d;
            i--; /* one place is gone; a place seen twice is `mine` */
        }
    }
    if (L->status) return;
    if (mine == SI_LINK_NONE) { si_new_group(L, x, root); return; }
    if (!known) si_map_put(L, &L->roots, root, mine);
    si_add_member(L, mine, x, distance);
    si_rise(L, mine);
}

/* Components have changed since the open bucket's groups were made: ask anew, and join groups that are one now. */
static inline void si_refresh_groups(si_linker *L) {
    if (!L->opened) return;
    si_map_clear(&L->roots);
    for (uint32_t i = 0; i < L->actives && !L->status;) {
        uint32_t g = L->active[i], root = si_root(L->parent, L->group[g].leader), other = si_group_of_root(L, root);
        if (other == SI_LINK_NONE) { si_map_put(L, &L->roots, root, g); i++; }
        else si_merge_groups(L, other, g); /* an earlier place or this one is gone: the next is at i, or seen again */
    }
}

/* Rows on the way: first where they belong, later, unless that shows them connected, their signatures. */
static inline void si_fetch_ahead(const si_linker *L, const uint64_t *posting, int64_t i, int64_t n) {
    int64_t at = i + 2 * SI_LINK_AHEAD;
    if (at + 1 >= n) return;
    uint64_t bucket = posting[at] >> 32;
    uint32_t row = (uint32_t)posting[at];
    if ((posting[at - 1] >> 32 == bucket || posting[at + 1] >> 32 == bucket) && row < L->n_rows)
        __builtin_prefetch(L->parent + row);
    at -= SI_LINK_AHEAD;
    bucket = posting[at] >> 32;
    row = (uint32_t)posting[at];
    int64_t other = posting[at + 1] >> 32 == bucket ? at + 1 : posting[at - 1] >> 32 == bucket ? at - 1 : -1;
    if (other < 0 || row >= L->n_rows || (uint32_t)posting[other] >= L->n_rows) return;
    if (row / L->rows_per_block >= L->blocks || L->parent[row] == L->parent[(uint32_t)posting[other]]) return;
    const uint8_t *p = si_fixed_row(L->signatures, L->rows_per_block, L->header, L->width, row);
    for (uint32_t c = 0; p && c < L->width && c < 256; c += 64) __builtin_prefetch(p + c);
}

/* The next row of the open bucket. Rows that are connected need no comparison until one comes that is not. */
static inline void si_take_row(si_linker *L, uint32_t row) {
    if (L->opened) { si_link_row(L, row); return; }
    if (L->waiters) {
        uint32_t first = L->waiting[0];
        if (L->waiters == SI_LINK_MEMBERS ||
            (L->parent[row] != L->parent[first] && si_root(L->parent, row) != si_root(L->parent, first))) {
            si_open_groups(L);
            for (uint32_t k = 1; k < L->waiters && !L->status; k++) si_link_row(L, L->waiting[k]);
            if (!L->status) si_link_row(L, row);
            return;
        }
    }
    if (SI_LINK_GROW(L, L->waiting, L->waiters, L->waiting_room)) L->waiting[L->waiters++] = row;
}

/* No bucket is open: a band begins. */
static inline void si_link_begin(si_linker *L) {
    L->bucket = ~(uint64_t)0;
    L->waiters = L->opened = 0;
}

/* Take the next postings of the band. Returns a status; after it, link and copy hold what was found. */
static int si_link_run(si_linker *L, const uint64_t *posting, int64_t n) {
    L->links = L->copied = 0;
    for (uint32_t i = 0; i < SI_LINK_QUERIES; i++) {
        L->query[i].set.n = 0;
        if (L->query[i].room > SI_LINK_LARGE) si_query_free(&L->query[i]);
    }
    si_refresh_groups(L);
    for (int64_t i = 0; i < n && !L->status; i++) {
        uint64_t bucket = posting[i] >> 32;
        uint32_t row = (uint32_t)posting[i];
        if (row >= L->n_rows) { si_fail(L, SI_SETS_CORRUPT, row); break; }
        si_fetch_ahead(L, posting, i, n);
        if (bucket != L->bucket) {
            L->bucket = bucket;
            L->waiters = L->opened = 0;
            if (i + 1 < n && posting[i + 1] >> 32 != bucket) continue; /* alone in its bucket */
        }
        if (!((L->copies[row >> 3] >> (row & 7)) & 1)) si_take_row(L, row);
    }
    return L->status;
}

#endif
