void vTaskDelay(unsigned ticks);
