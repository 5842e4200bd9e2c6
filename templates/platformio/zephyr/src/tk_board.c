/* SPDX-License-Identifier: Apache-2.0 */
/* Console and timer of Zephyr. */
#include "tk_board.h"

#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include "tk_cycles.h"

void tk_board_start(void)
{
    tk_cycles_start();
}

void tk_board_print(const char *text)
{
    printk("%s", text);
}

int tk_board_read(void)
{
    unsigned char sign;

    return uart_poll_in(DEVICE_DT_GET(DT_CHOSEN(zephyr_console)), &sign) == 0 ? sign : -1;
}

uint32_t tk_board_cycles(void)
{
    return tk_cycles();
}

uint32_t tk_board_microseconds(void)
{
    return (uint32_t)k_ticks_to_us_floor64(k_uptime_ticks());
}
