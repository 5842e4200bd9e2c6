/* SPDX-License-Identifier: Apache-2.0 */
/* Console and timer of this computer, in standard C. */
#include "tk_board.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void tk_board_start(void)
{
}

void tk_board_print(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

/* Waits for a character; here that does no harm. The end of the input ends the program. */
int tk_board_read(void)
{
    const int sign = getchar();

    if (sign == EOF) {
        exit(EXIT_SUCCESS);
    }
    return sign;
}

uint32_t tk_board_cycles(void)
{
    return 0u;
}

/* Processor time; clock() counts in units of its own. */
uint32_t tk_board_microseconds(void)
{
    return (uint32_t)((double)clock() * (1000000.0 / (double)CLOCKS_PER_SEC));
}
