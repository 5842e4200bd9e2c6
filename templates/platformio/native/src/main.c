/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the self-test on this computer. Exit status 0 is PASS. */
#include "tk_board.h"
#include "tk_selftest.h"

int main(void)
{
    tk_board_start();
    return tk_selftest_run();
}
