/* SPDX-License-Identifier: Apache-2.0 */
/* Cycle counter of a Cortex-M. The architecture defines the addresses, so no header of the chip is
 * needed. */
#ifndef TK_CYCLES_H
#define TK_CYCLES_H

#include <stdint.h>

/* Whether the architecture has a DWT. A chip may still omit its counter, which then reads as 0. */
#if defined(__ARM_ARCH_7M__) || defined(__ARM_ARCH_7EM__) || defined(__ARM_ARCH_8M_MAIN__) || \
    defined(__ARM_ARCH_8_1M_MAIN__)
#define TK_HAS_DWT 1
#else
#define TK_HAS_DWT 0
#endif

/* Enable the counter. */
static inline void tk_cycles_start(void)
{
#if TK_HAS_DWT
    *(volatile uint32_t *)(uintptr_t)0xE000EDFCu |= 1u << 24; /* DEMCR: DWT and ITM */
    *(volatile uint32_t *)(uintptr_t)0xE0001000u |= 1u;       /* DWT_CTRL */
#endif
}

/* Read the counter; 0 if there is none. */
static inline uint32_t tk_cycles(void)
{
#if TK_HAS_DWT
    return *(volatile uint32_t *)(uintptr_t)0xE0001004u;
#else
    return 0u;
#endif
}

#endif
