#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

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
    static int64_t now;
    return now += 7;
}

uint64_t k_ticks_to_us_floor64(uint64_t ticks)
{
    return ticks;
}

int32_t k_usleep(int32_t us)
{
    return us - us;
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
