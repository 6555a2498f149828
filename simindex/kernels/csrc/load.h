/* Unaligned little-endian loads and stores: values inside the file have no alignment beyond two bytes. */
#ifndef SI_LOAD_H
#define SI_LOAD_H

#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define SI_LE16(x) __builtin_bswap16(x)
#define SI_LE32(x) __builtin_bswap32(x)
#define SI_LE64(x) __builtin_bswap64(x)
#else
#define SI_LE16(x) (x)
#define SI_LE32(x) (x)
#define SI_LE64(x) (x)
#endif

static inline uint16_t si_load16(const void *p) { uint16_t v; memcpy(&v, p, 2); return SI_LE16(v); }
static inline uint32_t si_load32(const void *p) { uint32_t v; memcpy(&v, p, 4); return SI_LE32(v); }
static inline uint64_t si_load64(const void *p) { uint64_t v; memcpy(&v, p, 8); return SI_LE64(v); }
static inline void si_store16(void *p, uint16_t v) { v = SI_LE16(v); memcpy(p, &v, 2); }
static inline void si_store32(void *p, uint32_t v) { v = SI_LE32(v); memcpy(p, &v, 4); }
static inline void si_store64(void *p, uint64_t v) { v = SI_LE64(v); memcpy(p, &v, 8); }

#endif
