/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the self-test again and again, so that it does not matter when the console is opened. */
#include <Arduino.h>

#include "tk_board.h"
#include "tk_selftest.h"

void setup()
{
    tk_board_start();
}

void loop()
{
    (void)tk_selftest_run();
    delay(3000);
}
