/* Console and timer of the emulated RISC-V board: a 16550 UART. While nothing comes, the core
 * sleeps: an interrupt wakes it, and is never taken. */
#include "tk_board.h"

#define UART(offset)  (*(volatile uint8_t *)(uintptr_t)(0x10000000u + (offset)))
#define DATA          UART(0u)
#define STATUS        UART(5u) /* bit 0: something received, bit 5: transmitter empty */
#define INTERRUPT     UART(1u) /* bit 0: something received */
#define WORD(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define TIME          WORD(0x0200BFF8u) /* 10 MHz */
#define TIME_HIGH     WORD(0x0200BFFCu)
#define WAKE          WORD(0x02004000u)
#define WAKE_HIGH     WORD(0x02004004u)
#define PRIORITY      WORD(0x0C000028u) /* of interrupt 10, the UART */
#define ENABLED       WORD(0x0C002000u)
#define CLAIMED       WORD(0x0C200004u)

enum { TICKS_A_MICROSECOND = 10, LONGEST_SLEEP = 5000000 };

void tk_board_start(void)
{
    PRIORITY = 1u;
    ENABLED = 1u << 10;
    INTERRUPT = 1u;
    /* The word is "csrs mie, t0", which assemblers for RV32IMC without Zicsr refuse. */
    __asm__ volatile("mv t0, %0\n .word 0x3042a073" : : "r"(0x880u) : "t0"); /* timer and UART */
}

void tk_board_print(const char *text)
{
    for (; *text != '\0'; text++) {
        while ((STATUS & 0x20u) == 0u) {
        }
        DATA = (uint8_t)*text;
    }
}

/* Sleep until something comes; for half a second at most. */
static void sleep(void)
{
    const uint64_t wake = (((uint64_t)TIME_HIGH << 32) | TIME) + LONGEST_SLEEP;

    WAKE_HIGH = 0xffffffffu;
    WAKE = (uint32_t)wake;
    WAKE_HIGH = (uint32_t)(wake >> 32);
    __asm__ volatile("wfi" ::: "memory");
    CLAIMED = CLAIMED;
}

int tk_board_read(void)
{
    if ((STATUS & 1u) != 0u) {
        return (int)DATA;
    }
    sleep();
    return -1;
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
