/* I2S as ESP-IDF 5 has it, without the fields that no example sets. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ESP_OK 0
#define I2S_CHANNEL_DEFAULT_CONFIG(number, role) { .id = (number), .is_master = (role) }
#define I2S_STD_CLK_DEFAULT_CONFIG(rate) { .sample_rate_hz = (uint32_t)(rate) }
#define I2S_STD_PHILIPS_SLOT_DEFAULT_CONFIG(width, mode) { .bits = (width), .slots = (mode) }

typedef int esp_err_t;
typedef int gpio_num_t;
typedef struct channel *i2s_chan_handle_t;
typedef struct event i2s_event_data_t;
enum { I2S_GPIO_UNUSED = -1, I2S_NUM_AUTO, I2S_ROLE_MASTER, I2S_SLOT_MODE_MONO, I2S_STD_SLOT_LEFT };
enum { I2S_DATA_BIT_WIDTH_32BIT = 32 };

typedef struct {
    int id;
    int is_master;
    uint32_t dma_desc_num;
    uint32_t dma_frame_num;
} i2s_chan_config_t;

typedef struct {
    struct {
        uint32_t sample_rate_hz;
    } clk_cfg;
    struct {
        int bits;
        int slots;
        int slot_mask;
    } slot_cfg;
    struct {
        gpio_num_t mclk, bclk, ws, dout, din;
    } gpio_cfg;
} i2s_std_config_t;

typedef struct {
    bool (*on_recv_q_ovf)(i2s_chan_handle_t handle, i2s_event_data_t *event, void *context);
} i2s_event_callbacks_t;

esp_err_t i2s_new_channel(const i2s_chan_config_t *config, i2s_chan_handle_t *tx, i2s_chan_handle_t *rx);
esp_err_t i2s_channel_init_std_mode(i2s_chan_handle_t handle, const i2s_std_config_t *config);
esp_err_t i2s_channel_register_event_callback(i2s_chan_handle_t handle,
                                              const i2s_event_callbacks_t *callbacks, void *context);
esp_err_t i2s_channel_enable(i2s_chan_handle_t handle);
esp_err_t i2s_channel_read(i2s_chan_handle_t handle, void *block, size_t size, size_t *n_read,
                           uint32_t milliseconds);
