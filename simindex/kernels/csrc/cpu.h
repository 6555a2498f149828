/* Instruction-set levels. Each kernel header has one function per level it earns its place at; all levels give
 * equal results to the bit. Level numbers are an internal matter and reach neither the disk nor a signature. */
#ifndef SI_CPU_H
#define SI_CPU_H

#define SI_BASELINE 0
#define SI_AVX2 1
#define SI_AVX512 2

/* SI_FORCE_PORTABLE (CFLAGS=-DSI_FORCE_PORTABLE) builds what other machines get: tested by .ci/run. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(SI_FORCE_PORTABLE)
#define SI_X86 1
#include <immintrin.h>
/* No fma: contraction would change floating-point results between levels. */
#define SI_TARGET_AVX2 __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#define SI_TARGET_AVX512                                                                                              \
    __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vpopcntdq")))
#else
#define SI_X86 0
#endif

static inline int si_machine_level(void) {
#if SI_X86
    __builtin_cpu_init();
    if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
          __builtin_cpu_supports("popcnt")))
        return SI_BASELINE;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vpopcntdq"))
        return SI_AVX512;
    return SI_AVX2;
#else
    return SI_BASELINE;
#endif
}

#endif
