/* SPDX-License-Identifier: Apache-2.0 */
/* Console and timer of Zephyr. */
#include "tk_board.h"

#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

void tk_board_start(void)
{
}

void tk_board_print(const char *text)
{
    printk("%s", text);
}

uint32_t tk_board_ticks(void)
{
    return k_cycle_get_32();
}

uint32_t tk_board_elapsed(uint32_t earlier)
{
    return k_cycle_get_32() - earlier;
}

uint32_t tk_board_ticks_per_microsecond(void)
{
    return (uint32_t)sys_clock_hw_cycles_per_sec() / 1000000u;
}
