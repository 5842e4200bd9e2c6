/* The few functions of Zephyr that an exported sample uses. */
#include <stdint.h>

uint32_t k_cycle_get_32(void);
uint32_t k_cyc_to_us_floor32(uint32_t cycles);
