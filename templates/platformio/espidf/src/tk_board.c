/* SPDX-License-Identifier: Apache-2.0 */
/* Console and timer of ESP-IDF. */
#include "tk_board.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <esp_cpu.h>
#include <esp_timer.h>

void tk_board_start(void)
{
    (void)fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
}

void tk_board_print(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

int tk_board_read(void)
{
    unsigned char sign;

    return read(STDIN_FILENO, &sign, 1) == 1 ? sign : -1;
}

uint32_t tk_board_cycles(void)
{
    return (uint32_t)esp_cpu_get_cycle_count();
}

uint32_t tk_board_microseconds(void)
{
    return (uint32_t)esp_timer_get_time();
}
