/* SPDX-License-Identifier: Apache-2.0 */
/* Answers commands. Until the first one it repeats the self-test every three seconds, so that you can
 * open the console at any time. */
#include <zephyr/kernel.h>

#include "tk_board.h"
#include "tk_protocol.h"
#include "tk_selftest.h"

enum { PERIOD_MS = 3000 };

int main(void)
{
    int64_t last = -PERIOD_MS;

    tk_board_start();
    for (;;) {
        if (!tk_protocol_poll() && k_uptime_get() - last >= PERIOD_MS) {
            (void)tk_selftest_run();
            last = k_uptime_get();
        }
    }
    return 0;
}
