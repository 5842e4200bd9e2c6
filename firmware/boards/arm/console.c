/* Console of the emulated Cortex-M boards: the UART of Arm's MPS2 (CMSDK) or of the nRF51, at the
 * address TK_UART. Replaces the console of a bare project. */
#include "tk_board.h"

#define REGISTER(offset) (*(volatile uint32_t *)(uintptr_t)(TK_UART + (offset)))

#ifdef TK_UART_NRF51
#define START_RECEIVE  REGISTER(0x000u)
#define START_TRANSMIT REGISTER(0x008u)
#define RECEIVED       REGISTER(0x108u)
#define TRANSMITTED    REGISTER(0x11Cu)
#define ENABLE         REGISTER(0x500u)
#define RECEIVE_DATA   REGISTER(0x518u)
#define TRANSMIT_DATA  REGISTER(0x51Cu)
#else
#define DATA    REGISTER(0x00u)
#define STATE   REGISTER(0x04u) /* bit 0: transmitter full, bit 1: something received */
#define CONTROL REGISTER(0x08u) /* bit 0: transmitter on, bit 1: receiver on */
#define BAUD    REGISTER(0x10u)
#endif

/* Clock of SysTick, in Hz. */
uint32_t SystemCoreClock = TK_CLOCK;

static void start(void)
{
    static uint8_t started;

    if (started) {
        return;
    }
    started = 1u;
#ifdef TK_UART_NRF51
    ENABLE = 4u;
    START_RECEIVE = 1u;
    START_TRANSMIT = 1u;
#else
    BAUD = 217u; /* 25 MHz / 115200 */
    CONTROL = 3u;
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

int tk_board_read(void)
{
    start();
#ifdef TK_UART_NRF51
    if (RECEIVED == 0u) {
        return -1;
    }
    RECEIVED = 0u;
    return (int)(RECEIVE_DATA & 0xFFu);
#else
    return (STATE & 2u) != 0u ? (int)(DATA & 0xFFu) : -1;
#endif
}
