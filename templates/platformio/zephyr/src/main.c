/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the self-test again and again, so that it does not matter when the console is opened. */
#include <zephyr/kernel.h>

#include "tk_board.h"
#include "tk_selftest.h"

int main(void)
{
    tk_board_start();
    for (;;) {
        (void)tk_selftest_run();
        k_msleep(3000);
    }
    return 0;
}
