/* SPDX-License-Identifier: Apache-2.0 */
/* Answers commands. Until the first one it repeats the self-test every three seconds, or runs it once
 * if the clock is unknown. The clocks are as after reset: on most chips a slow internal oscillator.
 * To run at full speed, set up the clocks first.
 *
 * Without a console, read tk_result in the debugger: 0 is PASS, 1 is FAIL. */
#include "tk_board.h"
#include "tk_protocol.h"
#include "tk_selftest.h"

#define PERIOD_US 3000000ul

volatile int tk_result = -1;

int main(void)
{
    tk_board_start();
    tk_result = tk_selftest_run();
#ifdef TK_SEMIHOSTING
    return tk_result;
#else
    uint32_t last = tk_board_microseconds();
    for (;;) {
        if (!tk_protocol_poll() && tk_board_microseconds() - last >= PERIOD_US) {
            tk_result = tk_selftest_run();
            last = tk_board_microseconds();
        }
    }
#endif
}
