/* SPDX-License-Identifier: Apache-2.0 */
/* Console and timer of a bare Cortex-M. All addresses are the architecture's own, so this file needs
 * no header of the chip.
 *
 * Timer: the cycle counter of the DWT where there is one (Armv7-M and later), else SysTick.
 * Console: the trace output (ITM, seen by a debugger on the SWO pin), or the debugger itself when
 * TK_SEMIHOSTING is defined. Define tk_board_print elsewhere to send the text to a UART instead. */
#include "tk_board.h"

/* The clock in hertz; CMSIS keeps it. Weak: a program without CMSIS prints cycles only. */
extern uint32_t SystemCoreClock __attribute__((weak));

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

#define SYSTICK_CONTROL REGISTER(0xE000E010u)
#define SYSTICK_RELOAD REGISTER(0xE000E014u)
#define SYSTICK_VALUE REGISTER(0xE000E018u)
#define SYSTICK_RANGE 0x00FFFFFFu

#if defined(__ARM_ARCH_6M__) || defined(__ARM_ARCH_8M_BASE__)
#define HAS_TRACE 0
#else
#define HAS_TRACE 1
#define DEBUG_CONTROL REGISTER(0xE000EDFCu) /* DEMCR; bit 24 switches DWT and ITM on */
#define DWT_CONTROL REGISTER(0xE0001000u)
#define DWT_CYCLES REGISTER(0xE0001004u)
#define ITM_PORT REGISTER(0xE0000000u)
#define ITM_ENABLED REGISTER(0xE0000E00u)
#define ITM_CONTROL REGISTER(0xE0000E80u)
static int counts_cycles;
#endif

void tk_board_start(void)
{
    SYSTICK_RELOAD = SYSTICK_RANGE;
    SYSTICK_VALUE = 0u;
    SYSTICK_CONTROL = 5u; /* processor clock, no interrupt */
#if HAS_TRACE
    DEBUG_CONTROL |= 1u << 24;
    DWT_CONTROL |= 1u;
    /* Some chips and all emulators leave the counter out: it then stands still. */
    {
        volatile int wait;
        uint32_t before = DWT_CYCLES;
        for (wait = 0; wait < 16; wait++) {
        }
        counts_cycles = DWT_CYCLES != before;
    }
#endif
}

#ifdef TK_SEMIHOSTING
__attribute__((weak)) void tk_board_print(const char *text)
{
    /* Semihosting call 4, SYS_WRITE0. */
    __asm__ volatile("mov r1, %0\n movs r0, #4\n bkpt 0xab" : : "r"(text) : "r0", "r1", "memory");
}
#else
__attribute__((weak)) void tk_board_print(const char *text)
{
#if HAS_TRACE
    if ((ITM_CONTROL & 1u) == 0u || (ITM_ENABLED & 1u) == 0u) {
        return; /* nobody listens */
    }
    for (; *text != '\0'; text++) {
        while (ITM_PORT == 0u) {
        }
        *(volatile uint8_t *)(uintptr_t)0xE0000000u = (uint8_t)*text;
    }
#else
    (void)text;
#endif
}
#endif

uint32_t tk_board_ticks(void)
{
#if HAS_TRACE
    if (counts_cycles) {
        return DWT_CYCLES;
    }
#endif
    return SYSTICK_VALUE;
}

uint32_t tk_board_elapsed(uint32_t earlier)
{
#if HAS_TRACE
    if (counts_cycles) {
        return DWT_CYCLES - earlier;
    }
#endif
    return (earlier - SYSTICK_VALUE) & SYSTICK_RANGE; /* it counts down */
}

uint32_t tk_board_ticks_per_microsecond(void)
{
    return &SystemCoreClock != 0 ? SystemCoreClock / 1000000u : 0u;
}
