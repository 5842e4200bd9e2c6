/* The few functions of Zephyr that an exported sample uses. */
#include <stdint.h>

uint32_t k_cycle_get_32(void);
uint32_t k_cyc_to_us_floor32(uint32_t cycles);
int64_t k_uptime_ticks(void);
uint64_t k_ticks_to_us_floor64(uint64_t ticks);
int32_t k_msleep(int32_t ms);
int32_t k_usleep(int32_t us);
