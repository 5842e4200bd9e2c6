/* Console and timer of the emulated AVR board: USART0 and Timer 1 of an ATmega at 16 MHz. */
#include "tk_board.h"

#include <avr/io.h>

enum { MICROSECONDS_A_TICK = 64 };

void tk_board_start(void)
{
    UBRR0 = 16; /* 115200 baud with U2X */
    UCSR0A = (uint8_t)(1u << U2X0);
    UCSR0B = (uint8_t)((1u << RXEN0) | (1u << TXEN0));
    TCCR1B = 5; /* clock / 1024 */
}

void tk_board_print(const char *text)
{
    for (; *text != '\0'; text++) {
        while ((UCSR0A & (1u << UDRE0)) == 0u) {
        }
        UDR0 = (uint8_t)*text;
    }
}

int tk_board_read(void)
{
    return (UCSR0A & (1u << RXC0)) != 0u ? UDR0 : -1;
}

uint32_t tk_board_cycles(void)
{
    return 0u;
}

/* The timer wraps after four seconds; tk_protocol_poll reads it more often. */
uint32_t tk_board_microseconds(void)
{
    static uint32_t total = 1u; /* 0 would mean that the clock is unknown */
    static uint16_t last;
    const uint16_t now = TCNT1;

    total += (uint32_t)(uint16_t)(now - last) * MICROSECONDS_A_TICK;
    last = now;
    return total;
}
