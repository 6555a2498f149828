/* CRC-32C (Castagnoli, reflected polynomial 0x82F63B78, initial value and final xor 0xFFFFFFFF), as in RFC 3720.
 * It is on the disk in every block header: frozen since format 1. Chosen over CRC-32 because x86 and ARM have an
 * instruction for it. */
#ifndef SI_CRC32C_H
#define SI_CRC32C_H

#include "cpu.h"
#include "load.h"

static uint32_t si_crc32c_table[8][256];

static void si_crc32c_fill(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = (c >> 1) ^ (0x82F63B78u & (0u - (c & 1)));
        si_crc32c_table[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int t = 1; t < 8; t++) {
            uint32_t c = si_crc32c_table[t - 1][i];
            si_crc32c_table[t][i] = (c >> 8) ^ si_crc32c_table[0][c & 255];
        }
}

/* Eight bytes a step, one table per byte of the step. */
static uint32_t si_crc32c_scalar(uint32_t crc, const uint8_t *p, uint64_t n) {
    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v = si_load64(p) ^ crc;
        crc = si_crc32c_table[7][v & 255] ^ si_crc32c_table[6][(v >> 8) & 255] ^
              si_crc32c_table[5][(v >> 16) & 255] ^ si_crc32c_table[4][(v >> 24) & 255] ^
              si_crc32c_table[3][(v >> 32) & 255] ^ si_crc32c_table[2][(v >> 40) & 255] ^
              si_crc32c_table[1][(v >> 48) & 255] ^ si_crc32c_table[0][v >> 56];
    }
    for (; n; n--, p++) crc = (crc >> 8) ^ si_crc32c_table[0][(crc ^ *p) & 255];
    return ~crc;
}

#if SI_X86
__attribute__((target("sse4.2"))) static uint32_t si_crc32c_sse42(uint32_t crc, const uint8_t *p, uint64_t n) {
    uint64_t c = ~crc;
    for (; n >= 8; n -= 8, p += 8) c = _mm_crc32_u64(c, si_load64(p));
    for (; n; n--, p++) c = _mm_crc32_u8((uint32_t)c, *p);
    return ~(uint32_t)c;
}
#endif

static uint32_t (*si_crc32c)(uint32_t crc, const uint8_t *p, uint64_t n) = si_crc32c_scalar;

static void si_crc32c_select(int level) {
    if (!si_crc32c_table[0][1]) si_crc32c_fill();
    si_crc32c = si_crc32c_scalar;
#if SI_X86
    if (level >= SI_AVX2) si_crc32c = si_crc32c_sse42; /* every AVX2 machine has SSE 4.2 */
#else
    (void)level;
#endif
}

#endif
