/* A camera of the ESP32 whose bytes are counted: three frames, and then the program ends. */
#ifndef ESP_CAMERA_H
#define ESP_CAMERA_H

#include <stddef.h>
#include <stdint.h>

enum { ESP_OK = 0 };
typedef enum { LEDC_TIMER_0 } ledc_timer_t;
typedef enum { LEDC_CHANNEL_0 } ledc_channel_t;
typedef enum { PIXFORMAT_RGB565, PIXFORMAT_YUV422, PIXFORMAT_GRAYSCALE } pixformat_t;
typedef enum { FRAMESIZE_96X96, FRAMESIZE_QQVGA } framesize_t;
typedef enum { CAMERA_FB_IN_PSRAM, CAMERA_FB_IN_DRAM } camera_fb_location_t;
typedef enum { CAMERA_GRAB_WHEN_EMPTY, CAMERA_GRAB_LATEST } camera_grab_mode_t;

typedef struct {
    int pin_pwdn, pin_reset, pin_xclk, pin_sccb_sda, pin_sccb_scl;
    int pin_d7, pin_d6, pin_d5, pin_d4, pin_d3, pin_d2, pin_d1, pin_d0;
    int pin_vsync, pin_href, pin_pclk, xclk_freq_hz;
    ledc_timer_t ledc_timer;
    ledc_channel_t ledc_channel;
    pixformat_t pixel_format;
    framesize_t frame_size;
    int jpeg_quality;
    size_t fb_count;
    camera_fb_location_t fb_location;
    camera_grab_mode_t grab_mode;
} camera_config_t;

typedef struct {
    uint8_t *buf;
    size_t len, width, height;
    pixformat_t format;
} camera_fb_t;

static camera_fb_t camera_frame;
static uint8_t camera_bytes[160 * 120 * 2];

static inline int esp_camera_init(const camera_config_t *config)
{
    const size_t pixels = config->frame_size == FRAMESIZE_QQVGA ? 160 * 120 : 96 * 96;

    camera_frame.buf = camera_bytes;
    camera_frame.len = pixels * (config->pixel_format == PIXFORMAT_GRAYSCALE ? 1 : 2);
    return config->fb_count == 1 ? ESP_OK : -1;
}

static inline camera_fb_t *esp_camera_fb_get(void)
{
    static unsigned frames;

    if (frames == 3) {
        delay(0);
    }
    for (size_t i = 0; i < camera_frame.len; i++) {
        camera_bytes[i] = (uint8_t)((i * i >> 7) + i * frames);
    }
    frames++;
    return &camera_frame;
}

static inline void esp_camera_fb_return(camera_fb_t *)
{
}

#endif
