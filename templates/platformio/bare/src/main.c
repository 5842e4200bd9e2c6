/* SPDX-License-Identifier: Apache-2.0 */
/* Answers commands. Until the first one it runs the self-test every three seconds, or once where
 * nobody knows the clock. The framework's start-up code calls main with the
 * clocks as reset leaves them, on most chips a slow internal oscillator: to run at full speed, set
 * up the clocks first.
 *
 * Without a console look at tk_result in the debugger: 0 is PASS, 1 is FAIL. */
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
