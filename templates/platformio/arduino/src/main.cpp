/* SPDX-License-Identifier: Apache-2.0 */
/* Answers commands. Until the first one it repeats the self-test every three seconds, so that you can
 * open the console at any time. */
#include <Arduino.h>

#include "tk_board.h"
#include "tk_protocol.h"
#include "tk_selftest.h"

void setup()
{
    tk_board_start();
}

void loop()
{
    static unsigned long last;

    if (!tk_protocol_poll() && (last == 0 || millis() - last >= 3000)) {
        (void)tk_selftest_run();
        last = millis();
    }
}
