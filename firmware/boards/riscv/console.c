/* Console and timer of the emulated RISC-V board: a 16550 UART. */
#include "tk_board.h"

#define UART(offset) (*(volatile uint8_t *)(uintptr_t)(0x10000000u + (offset)))
#define DATA         UART(0u)
#define STATUS       UART(5u) /* bit 0: something received, bit 5: transmitter empty */
#define TIME         (*(volatile uint32_t *)(uintptr_t)0x0200BFF8u) /* 10 MHz */

enum { TICKS_A_MICROSECOND = 10 };

void tk_board_start(void)
{
}

void tk_board_print(const char *text)
{
    for (; *text != '\0'; text++) {
        while ((STATUS & 0x20u) == 0u) {
        }
        DATA = (uint8_t)*text;
    }
}

int tk_board_read(void)
{
    return (STATUS & 1u) != 0u ? (int)DATA : -1;
}

/* The emulated cycle counter follows the time of the host, so it is not used. */
uint32_t tk_board_cycles(void)
{
    return 0u;
}

uint32_t tk_board_microseconds(void)
{
    static uint32_t total = 1u; /* 0 would mean that the clock is unknown */
    static uint32_t last, rest;
    const uint32_t time = TIME;

    rest += time - last;
    last = time;
    total += rest / TICKS_A_MICROSECOND;
    rest %= TICKS_A_MICROSECOND;
    return total;
}
