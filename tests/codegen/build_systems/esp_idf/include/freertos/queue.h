#include <stdint.h>

#define pdTRUE 1

typedef struct queue *QueueHandle_t;

QueueHandle_t xQueueCreate(unsigned items, unsigned size);
int xQueueSend(QueueHandle_t queue, const void *item, unsigned ticks);
int xQueueReceive(QueueHandle_t queue, void *item, unsigned ticks);
