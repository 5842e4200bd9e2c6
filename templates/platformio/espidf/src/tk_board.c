/* SPDX-License-Identifier: Apache-2.0 */
/* Console and timer of ESP-IDF. */
#include "tk_board.h"

#include <stdio.h>

#include <esp_timer.h>

void tk_board_start(void)
{
}

void tk_board_print(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

uint32_t tk_board_ticks(void)
{
    return (uint32_t)esp_timer_get_time();
}

uint32_t tk_board_elapsed(uint32_t earlier)
{
    return (uint32_t)esp_timer_get_time() - earlier;
}

uint32_t tk_board_ticks_per_microsecond(void)
{
    return 1u;
}
