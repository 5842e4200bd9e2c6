/* SPDX-License-Identifier: Apache-2.0 */
/* Answers commands. Until the first one it repeats the self-test every three seconds, so that you can
 * open the console at any time. */
#include <freertos/FreeRTOS.h>
#include <freertos/task.h>

#include "tk_board.h"
#include "tk_protocol.h"
#include "tk_selftest.h"

enum { PERIOD_MS = 3000 };

void app_main(void)
{
    TickType_t last = xTaskGetTickCount() - pdMS_TO_TICKS(PERIOD_MS);

    tk_board_start();
    for (;;) {
        if (!tk_protocol_poll() && xTaskGetTickCount() - last >= pdMS_TO_TICKS(PERIOD_MS)) {
            (void)tk_selftest_run();
            last = xTaskGetTickCount();
        }
        vTaskDelay(1);
    }
}
