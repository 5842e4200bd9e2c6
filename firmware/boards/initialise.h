/* Initialises static data before main; shared by the start-up codes. */
#ifndef TK_INITIALISE_H
#define TK_INITIALISE_H

#include <stdint.h>

extern uint32_t tk_data_start[];
extern uint32_t tk_data_end[];
extern const uint32_t tk_data_source[];
extern uint32_t tk_bss_start[];
extern uint32_t tk_bss_end[];

void tk_initialise(void)
{
    volatile uint32_t *to = tk_data_start;
    const volatile uint32_t *from = tk_data_source;
    while (to != tk_data_end) {
        *to++ = *from++;
    }
    for (to = tk_bss_start; to != tk_bss_end;) {
        *to++ = 0u;
    }
}

#endif
