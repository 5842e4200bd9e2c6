/* The few functions of ESP-IDF that an exported example uses. */
#include <stdint.h>

#define ESP_OK 0

typedef void *esp_timer_handle_t;
typedef struct {
    void (*callback)(void *context);
    const char *name;
} esp_timer_create_args_t;

int64_t esp_timer_get_time(void);
int esp_timer_create(const esp_timer_create_args_t *arguments, esp_timer_handle_t *timer);
int esp_timer_start_once(esp_timer_handle_t timer, uint64_t microseconds);
