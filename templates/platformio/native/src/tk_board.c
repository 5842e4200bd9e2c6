/* SPDX-License-Identifier: Apache-2.0 */
/* Console and timer of this computer, in standard C. */
#include "tk_board.h"

#include <stdio.h>
#include <time.h>

void tk_board_start(void)
{
}

void tk_board_print(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

/* Processor time in microseconds, whatever the unit of clock(). */
static uint32_t microseconds(void)
{
    return (uint32_t)((double)clock() * (1000000.0 / (double)CLOCKS_PER_SEC));
}

uint32_t tk_board_ticks(void)
{
    return microseconds();
}

uint32_t tk_board_elapsed(uint32_t earlier)
{
    return microseconds() - earlier;
}

uint32_t tk_board_ticks_per_microsecond(void)
{
    return 1u;
}
