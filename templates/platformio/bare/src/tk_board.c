/* SPDX-License-Identifier: Apache-2.0 */
/* Console and timer of a bare Cortex-M. The architecture defines all addresses, so no header of the
 * chip is needed.
 *
 * Timer: SysTick. Cycles: the counter of the DWT, if there is one (Armv7-M and later).
 * Console: the trace output (ITM, shown by a debugger on the SWO pin), or semihosting if TK_SEMIHOSTING
 * is defined. Define tk_board_print and tk_board_read elsewhere to use a UART. Commands need
 * tk_board_read. */
#include "tk_board.h"

#include "tk_cycles.h"

/* Clock in Hz, from CMSIS. Weak, for programs without CMSIS: they measure no time. */
extern uint32_t SystemCoreClock __attribute__((weak));

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

#define SYSTICK_CONTROL REGISTER(0xE000E010u)
#define SYSTICK_RELOAD REGISTER(0xE000E014u)
#define SYSTICK_VALUE REGISTER(0xE000E018u)
#define SYSTICK_RANGE 0x00FFFFFFu

#if TK_HAS_DWT
#define ITM_PORT REGISTER(0xE0000000u)
#define ITM_ENABLED REGISTER(0xE0000E00u)
#define ITM_CONTROL REGISTER(0xE0000E80u)
#endif

void tk_board_start(void)
{
    SYSTICK_RELOAD = SYSTICK_RANGE;
    SYSTICK_VALUE = 0u;
    SYSTICK_CONTROL = 5u; /* processor clock, no interrupt */
    tk_cycles_start();
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
#if TK_HAS_DWT
    if ((ITM_CONTROL & 1u) == 0u || (ITM_ENABLED & 1u) == 0u) {
        return; /* no debugger is connected */
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

__attribute__((weak)) int tk_board_read(void)
{
    return -1;
}

uint32_t tk_board_cycles(void)
{
    return tk_cycles();
}

/* SysTick has 24 bits and counts down; tk_protocol_poll reads it before it wraps. */
uint32_t tk_board_microseconds(void)
{
    static uint32_t total = 1u; /* 0 means that the clock is unknown */
    static uint32_t last, rest;
    const uint32_t value = SYSTICK_VALUE;
    const uint32_t rate = &SystemCoreClock != 0 ? SystemCoreClock / 1000000u : 0u;

    rest += (last - value) & SYSTICK_RANGE;
    last = value;
    if (rate == 0u) {
        return 0u;
    }
    total += rest / rate;
    rest %= rate;
    return total;
}
