/* Console of the emulated Cortex-M boards: the UART of Arm's MPS2 (CMSDK) or of the nRF51, at the
 * address TK_UART. Replaces the console of a bare project. While nothing comes, the core sleeps: an
 * interrupt wakes it, and is never taken. */
#include "tk_board.h"

#define REGISTER(offset) (*(volatile uint32_t *)(uintptr_t)(TK_UART + (offset)))

#ifdef TK_UART_NRF51
#define START_RECEIVE  REGISTER(0x000u)
#define START_TRANSMIT REGISTER(0x008u)
#define RECEIVED       REGISTER(0x108u)
#define INTERRUPT      REGISTER(0x304u)
#define TRANSMITTED    REGISTER(0x11Cu)
#define ENABLE         REGISTER(0x500u)
#define RECEIVE_DATA   REGISTER(0x518u)
#define TRANSMIT_DATA  REGISTER(0x51Cu)
#else
#define DATA  REGISTER(0x00u)
#define STATE REGISTER(0x04u) /* bit 0: transmitter full, bit 1: something received */
#define CONTROL \
    REGISTER(0x08u) /* bit 0: transmitter on, bit 1: receiver on, bit 3: its interrupt */
#define PENDING REGISTER(0x0Cu) /* bit 1: interrupt of the receiver */
#define BAUD    REGISTER(0x10u)
#endif

#define SYSTEM(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define SYSTICK         SYSTEM(0xE000E010u)
#define ENABLED(bank)   SYSTEM(0xE000E100u + 4u * (bank))
#define CLEARED(bank)   SYSTEM(0xE000E280u + 4u * (bank))
#define CONTROL_STATE   SYSTEM(0xE000ED04u) /* bit 25 clears a pending SysTick */

/* Interrupts of the UART: 0 and 1 or, with TrustZone, 32 and 33; 2 on the nRF51. */
enum { UARTS = 7 };

/* Clock of SysTick, in Hz. */
uint32_t SystemCoreClock = TK_CLOCK;

static void start(void)
{
    static uint8_t started;

    if (started) {
        return;
    }
    started = 1u;
    __asm__ volatile("cpsid i");
    SYSTICK |= 2u; /* each wrap wakes, so that no one is missed */
    ENABLED(0u) = UARTS;
    ENABLED(1u) = UARTS;
#ifdef TK_UART_NRF51
    ENABLE = 4u;
    INTERRUPT = 4u; /* something received */
    START_RECEIVE = 1u;
    START_TRANSMIT = 1u;
#else
    BAUD = 217u; /* 25 MHz / 115200 */
    CONTROL = 11u;
#endif
}

void tk_board_print(const char *text)
{
    start();
    for (; *text != '\0'; text++) {
#ifdef TK_UART_NRF51
        TRANSMITTED = 0u;
        TRANSMIT_DATA = (uint8_t)*text;
        while (TRANSMITTED == 0u) {
        }
#else
        while ((STATE & 1u) != 0u) {
        }
        DATA = (uint8_t)*text;
#endif
    }
}

/* Sleep until something comes, or SysTick wraps. */
static void sleep(void)
{
    __asm__ volatile("wfi" ::: "memory");
    CONTROL_STATE = 1u << 25;
}

int tk_board_read(void)
{
    start();
#ifdef TK_UART_NRF51
    if (RECEIVED == 0u) {
        sleep();
        return -1;
    }
    RECEIVED = 0u;
    CLEARED(0u) = UARTS;
    return (int)(RECEIVE_DATA & 0xFFu);
#else
    if ((STATE & 2u) == 0u) {
        sleep();
        return -1;
    }
    PENDING = 2u;
    CLEARED(0u) = UARTS;
    CLEARED(1u) = UARTS;
    return (int)(DATA & 0xFFu);
#endif
}
