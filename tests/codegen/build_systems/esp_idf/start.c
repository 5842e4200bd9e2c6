/* ESP-IDF for an exported example: time passes with every question, the queue is never full, and a
 * microphone hears a sawtooth. */
#include <stdlib.h>
#include <string.h>

#include <driver/i2s_std.h>
#include <esp_timer.h>
#include <freertos/queue.h>
#include <freertos/task.h>

struct queue {
    unsigned size;
    int is_full;
    unsigned char item[256];
};

void app_main(void);

static int64_t now, due;
static void (*on_timer)(void *context);
static uint32_t rate;

int64_t esp_timer_get_time(void)
{
    return now += 7;
}

int esp_timer_create(const esp_timer_create_args_t *arguments, esp_timer_handle_t *timer)
{
    on_timer = arguments->callback;
    *timer = &due;
    return ESP_OK;
}

int esp_timer_start_once(esp_timer_handle_t timer, uint64_t microseconds)
{
    *(int64_t *)timer = now + (int64_t)microseconds;
    return ESP_OK;
}

QueueHandle_t xQueueCreate(unsigned items, unsigned size)
{
    QueueHandle_t queue = calloc(items != 0u, sizeof *queue);

    queue->size = size;
    return queue;
}

int xQueueSend(QueueHandle_t queue, const void *item, unsigned ticks)
{
    (void)ticks;
    queue->is_full = 1;
    (void)memcpy(queue->item, item, queue->size);
    return pdTRUE;
}

int xQueueReceive(QueueHandle_t queue, void *item, unsigned ticks)
{
    if (queue->is_full == 0 && ticks != 0u) { /* the next sample comes while it waits */
        now = due;
        on_timer(NULL);
    }
    if (queue->is_full == 0) {
        return 0;
    }
    queue->is_full = 0;
    (void)memcpy(item, queue->item, queue->size);
    return pdTRUE;
}

esp_err_t i2s_new_channel(const i2s_chan_config_t *config, i2s_chan_handle_t *tx, i2s_chan_handle_t *rx)
{
    *rx = NULL;
    return tx != NULL || config->is_master != I2S_ROLE_MASTER;
}

esp_err_t i2s_channel_init_std_mode(i2s_chan_handle_t handle, const i2s_std_config_t *config)
{
    (void)handle;
    rate = config->clk_cfg.sample_rate_hz;
    return config->slot_cfg.bits != 32 || config->gpio_cfg.din < 0;
}

esp_err_t i2s_channel_register_event_callback(i2s_chan_handle_t handle,
                                              const i2s_event_callbacks_t *callbacks, void *context)
{
    (void)handle;
    (void)context;
    return callbacks->on_recv_q_ovf == NULL;
}

esp_err_t i2s_channel_enable(i2s_chan_handle_t handle)
{
    (void)handle;
    return rate != 16000u;
}

esp_err_t i2s_channel_read(i2s_chan_handle_t handle, void *block, size_t size, size_t *n_read,
                           uint32_t milliseconds)
{
    static int32_t number;
    int32_t *value = block;

    (void)handle;
    (void)milliseconds;
    for (*n_read = 0; *n_read < size; *n_read += sizeof *value) {
        number++;
        *value++ = (number * 37 % 1024) * 65536 + 1;
    }
    return ESP_OK;
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
