/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the self-test on this computer; exit status 0 means PASS. With an argument it answers commands
 * from standard input instead. */
#include "tk_board.h"
#include "tk_protocol.h"
#include "tk_selftest.h"

int main(int count, char **arguments)
{
    (void)arguments;
    tk_board_start();
    while (count > 1) {
        (void)tk_protocol_poll();
    }
    return tk_selftest_run();
}
