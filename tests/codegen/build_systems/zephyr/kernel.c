#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zephyr/device.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include "audio/zephyr/audio/dmic.h"

const struct device stub_dmic_dev = { 1 };
static int64_t now, due;
static struct k_work_delayable *waiting;
static struct k_mem_slab *slab;

uint32_t k_cycle_get_32(void)
{
    static uint32_t now;
    return now += 700u;
}

uint32_t k_cyc_to_us_floor32(uint32_t cycles)
{
    return cycles / 100u;
}

int64_t k_uptime_ticks(void)
{
    return now += 7;
}

uint64_t k_ticks_to_us_floor64(uint64_t ticks)
{
    return ticks;
}

int k_work_schedule(struct k_work_delayable *work, k_timeout_t delay)
{
    waiting = work;
    due = -1 - delay.ticks;
    return 0;
}

int k_msgq_put(struct k_msgq *queue, const void *data, k_timeout_t timeout)
{
    queue->is_full = timeout.ticks == 0;
    (void)memcpy(queue->item, data, queue->size);
    return 0;
}

int k_msgq_get(struct k_msgq *queue, void *data, k_timeout_t timeout)
{
    if (queue->is_full == 0 && timeout.ticks != 0) { /* the next sample comes while it waits */
        now = due;
        waiting->handler(NULL);
    }
    if (queue->is_full == 0) {
        return -1;
    }
    queue->is_full = 0;
    (void)memcpy(data, queue->item, queue->size);
    return 0;
}

bool device_is_ready(const struct device *dev)
{
    return dev->is_ready != 0;
}

uint32_t dmic_build_channel_map(uint8_t channel, uint8_t pdm, enum pdm_lr lr)
{
    return (uint32_t)(lr << ((pdm * 2) + channel));
}

int dmic_configure(const struct device *dev, struct dmic_cfg *cfg)
{
    slab = cfg->streams->mem_slab;
    return dev->is_ready != 0 && cfg->streams->pcm_rate == 16000u && cfg->streams->block_size == slab->size ? 0 : -1;
}

int dmic_trigger(const struct device *dev, enum dmic_trigger cmd)
{
    return dev->is_ready != 0 && cmd == DMIC_TRIGGER_START ? 0 : -1;
}

int dmic_read(const struct device *dev, uint8_t stream, void **buffer, uint32_t *size, int32_t timeout)
{
    static int number;
    int16_t *value = malloc(slab->size);
    size_t i;

    if (dev->is_ready == 0 || stream != 0u || timeout == 0 || slab->blocks == 0) {
        return -1;
    }
    slab->blocks--;
    *buffer = value;
    *size = (uint32_t)slab->size;
    for (i = 0; i < slab->size / sizeof *value; i++) {
        number++;
        *value++ = (int16_t)(number * 37 % 1024);
    }
    return 0;
}

void k_mem_slab_free(struct k_mem_slab *from, void *block)
{
    from->blocks++;
    free(block);
}

int32_t k_msleep(int32_t ms)
{
    exit(ms == 0);
}

void printk(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vprintf(format, arguments);
    va_end(arguments);
}
