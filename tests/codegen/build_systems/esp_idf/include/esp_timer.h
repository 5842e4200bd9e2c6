/* The few functions of ESP-IDF that an exported example uses. */
#include <stdint.h>

int64_t esp_timer_get_time(void);
