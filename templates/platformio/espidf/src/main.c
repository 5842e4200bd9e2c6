/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the self-test again and again, so that it does not matter when the console is opened. */
#include <freertos/FreeRTOS.h>
#include <freertos/task.h>

#include "tk_board.h"
#include "tk_selftest.h"

void app_main(void)
{
    tk_board_start();
    for (;;) {
        (void)tk_selftest_run();
        vTaskDelay(pdMS_TO_TICKS(3000));
    }
}
