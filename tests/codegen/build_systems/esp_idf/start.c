#include <stdlib.h>

#include <esp_timer.h>
#include <freertos/task.h>

void app_main(void);

int64_t esp_timer_get_time(void)
{
    static int64_t now;
    return now += 7;
}

void vTaskDelay(unsigned ticks)
{
    if (ticks > 100u) { /* what waits between two self-tests has passed one */
        exit(0);
    }
}

int main(void)
{
    app_main();
    return 0;
}
