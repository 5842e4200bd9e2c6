/* The few functions of Zephyr that an exported sample uses. */
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int64_t ticks;
} k_timeout_t;
#define K_NO_WAIT ((k_timeout_t){ 0 })
#define K_MSEC(ms) ((k_timeout_t){ 1000 * (ms) })
#define K_TIMEOUT_ABS_US(us) ((k_timeout_t){ -1 - (int64_t)(us) })

struct k_work;
struct k_work_delayable {
    void (*handler)(struct k_work *work);
};
#define K_WORK_DELAYABLE_DEFINE(name, work_handler) struct k_work_delayable name = { work_handler }

struct k_msgq {
    size_t size;
    int is_full;
    unsigned char item[256];
};
#define K_MSGQ_DEFINE(name, item_size, items, align) struct k_msgq name = { .size = item_size }

struct k_mem_slab {
    size_t size;
    int blocks;
};
#define K_MEM_SLAB_DEFINE_STATIC(name, block_size, n, align) \
    static struct k_mem_slab name = { block_size, n }

uint32_t k_cycle_get_32(void);
uint32_t k_cyc_to_us_floor32(uint32_t cycles);
int64_t k_uptime_ticks(void);
uint64_t k_ticks_to_us_floor64(uint64_t ticks);
int32_t k_msleep(int32_t ms);
int k_work_schedule(struct k_work_delayable *work, k_timeout_t delay);
int k_msgq_put(struct k_msgq *queue, const void *data, k_timeout_t timeout);
int k_msgq_get(struct k_msgq *queue, void *data, k_timeout_t timeout);
void k_mem_slab_free(struct k_mem_slab *slab, void *block);
