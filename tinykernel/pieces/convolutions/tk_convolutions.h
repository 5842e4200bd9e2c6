/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "convolutions": chains of 3 x 3 kernels on an image of levels, one channel after the other.
 *
 * Levels and maps are 16-bit values in rows of equal stride. The first layer writes from the image
 * to the maps behind it. The other layers work in place: an output row overwrites the first of its
 * three input rows, which no later row needs. A few responses are computed at a time; those beyond
 * the end of a row have no meaning.
 *
 * codes[] has for each channel, and in it for each layer: nine taps of 8 bits, or of 4 bits with
 * the first tap in the low half of a byte; then the bias, most significant byte first. */
#ifndef TK_CONVOLUTIONS_H
#define TK_CONVOLUTIONS_H

#include "tk_levels.h"

struct tk_convolutions {
    uint32_t rows;       /* of the image, including padding */
    uint32_t columns;    /* of the image, including padding */
    uint32_t padding;    /* zeros around the image: 0 or 1 */
    uint32_t stride;     /* values from row to row, enough for whole groups of responses */
    uint32_t layers;     /* number of layers, 1..8 */
    uint32_t pools;      /* bit l: 2 x 2 max pooling after layer l */
    uint32_t shifts;     /* right shifts of responses, 4 bits per layer from the bottom */
    uint32_t channels;   /* number of channels */
    uint32_t tap_bits;   /* 4 or 8 */
    uint32_t bias_bytes; /* 1..4 */
    const TK_FLASH uint8_t *codes;
};

/* A layer of a channel, decoded. */
typedef struct {
    uint32_t taps[6]; /* for each row of the kernel the halves t0, t1, t1, t2 */
    int32_t bias;
    uint32_t shift;   /* right shift of responses */
    uint32_t rows;    /* rows of responses */
    uint32_t columns; /* responses in a row */
    uint32_t pool;    /* 1: 2 x 2 max pooling follows */
} tk_convolution_t;

typedef int16_t TK_ALIAS tk_s16;

/* Number of responses computed at a time, in registers. */
#if TK_RADIX == 8 || TK_DSP
#define TK_RESPONSES 4u
#else
#define TK_RESPONSES 2u
#endif

/* Tap i of the layer at `code`. */
TK_INLINE tk_s16 tk_convolution_tap(const TK_FLASH struct tk_convolutions *k,
                                    const TK_FLASH uint8_t *code, uint32_t i)
{
    if (k->tap_bits == 4u) {
        return (tk_s16)((int32_t)((uint32_t)code[i / 2u] << (28u - (i & 1u) * 4u)) >> 28);
    }
    return (tk_s16)((int32_t)((uint32_t)code[i] << 24) >> 24);
}

/* Decode taps and bias of the layer at `code`. Returns the end of its bytes. */
TK_INLINE const TK_FLASH uint8_t *tk_convolution_decode(const TK_FLASH struct tk_convolutions *k,
                                                        const TK_FLASH uint8_t *code, tk_s16 *tap,
                                                        int32_t *begin)
{
    uint32_t bias;
    uint32_t i;
    for (i = 0u; i < 9u; i += 3u) {
        tap[0] = tk_convolution_tap(k, code, i);
        tap[1] = tk_convolution_tap(k, code, i + 1u);
        tap[2] = tap[1];
        tap[3] = tk_convolution_tap(k, code, i + 2u);
        tap += 4;
    }
    code += (9u * k->tap_bits + 7u) / 8u;
    bias = 0u - (uint32_t)(*code >> 7);
    for (i = k->bias_bytes; i != 0u; --i) {
        bias = bias << 8 | *code++;
    }
    *begin = (int32_t)bias;
    return code;
}

/* Compute TK_RESPONSES values of a layer, to `out`; `place` is the top left input of the first one.
 * Both are aligned to words. No response leaves 32 bits, as biases are in -2^24..2^24. */
TK_INLINE void tk_convolution_group(const TK_FLASH struct tk_convolutions *k,
                                    const tk_convolution_t *layer, const tk_u16 *place, tk_u16 *out)
{
    const uint32_t *tap = layer->taps;
    const uint32_t *const end = tap + 6;
    uint32_t shift;
    int32_t a0 = layer->bias;
    int32_t a1 = a0;
#if TK_RESPONSES == 4u
    int32_t a2 = a0;
    int32_t a3 = a0;
#endif
    do {
#if TK_DSP
        const uint32_t *const word = (const uint32_t *)(const void *)place;
        const uint32_t first = tap[0];
        const uint32_t last = tap[1];
        uint32_t values = word[0];
        a0 = tk_smlad(first, values, a0);
        a1 = tk_smlabt(first, values, a1);
        values = word[1];
        a0 = tk_smlatb(last, values, a0);
        a1 = tk_smlad(last, values, a1);
        a2 = tk_smlad(first, values, a2);
        a3 = tk_smlabt(first, values, a3);
        values = word[2];
        a2 = tk_smlatb(last, values, a2);
        a3 = tk_smlad(last, values, a3);
#else
        const tk_s16 *const half = (const tk_s16 *)tap;
        const int32_t t0 = half[0];
        const int32_t t1 = half[1];
        const int32_t t2 = half[3];
        int32_t value = place[0];
        a0 += t0 * value;
        value = place[1];
        a0 += t1 * value;
        a1 += t0 * value;
        value = place[2];
        a0 += t2 * value;
        a1 += t1 * value;
#if TK_RESPONSES == 4u
        a2 += t0 * value;
        value = place[3];
        a1 += t2 * value;
        a2 += t1 * value;
        a3 += t0 * value;
        value = place[4];
        a2 += t2 * value;
        a3 += t1 * value;
        value = place[5];
        a3 += t2 * value;
#else
        value = place[3];
        a1 += t2 * value;
#endif
#endif
        place += k->stride;
        tap += 2;
    } while (tap != end);
    shift = layer->shift;
    out[0] = (tk_u16)tk_clipped(a0, shift);
    out[1] = (tk_u16)tk_clipped(a1, shift);
#if TK_RESPONSES == 4u
    out[2] = (tk_u16)tk_clipped(a2, shift);
    out[3] = (tk_u16)tk_clipped(a3, shift);
#endif
}

/* Compute a row of a layer, to `out`; `row` is the first of its input rows. */
TK_INLINE void tk_convolution_row(const TK_FLASH struct tk_convolutions *k,
                                  const tk_convolution_t *layer, const tk_u16 *row, tk_u16 *out)
{
    const tk_u16 *const end = out + layer->columns;
    do {
        tk_convolution_group(k, layer, row, out);
        row += TK_RESPONSES;
        out += TK_RESPONSES;
    } while (out < end);
}

/* Type of a function that calls tk_convolution_row for a stage. It is not inlined, so that all
 * registers are free for its loops. */
typedef void tk_convolution_row_t(const tk_convolution_t *layer, const tk_u16 *row, tk_u16 *out);

/* The larger of two values. */
TK_INLINE tk_u16 tk_larger(tk_u16 a, tk_u16 b)
{
    return a > b ? a : b;
}

/* 2 x 2 max pooling of a row and the next one, in place; `columns` is the length of the result. */
TK_INLINE void tk_convolution_pool(const TK_FLASH struct tk_convolutions *k, tk_u16 *row,
                                   uint32_t columns)
{
    const tk_u16 *place = row;
    tk_u16 *const end = row + columns;
    do {
        *row++ = tk_larger(tk_larger(place[0], place[1]),
                           tk_larger(place[k->stride], place[k->stride + 1u]));
        place += 2;
    } while (row != end);
}

/* Apply a layer to a map; `out` may be the map. */
TK_INLINE void tk_convolution_layer(const TK_FLASH struct tk_convolutions *k,
                                    tk_convolution_row_t *respond, const tk_convolution_t *layer,
                                    const tk_u16 *map, tk_u16 *out)
{
    uint32_t y;
    for (y = 0u; y < layer->rows; ++y) {
        respond(layer, map, out);
        map += k->stride;
        if ((y & layer->pool) != 0u) {
            out -= k->stride;
            tk_convolution_pool(k, out, layer->columns / 2u);
        }
        out += k->stride;
    }
}

/* Write the levels of an input to `image`, which must be cleared. */
TK_INLINE void tk_convolutions_load(const TK_FLASH struct tk_convolutions *k,
                                    const TK_FLASH struct tk_levels *levels,
                                    const tk_sensor_t *input, tk_u16 *image)
{
    const uint32_t codes = tk_levels_codes(levels, 0u);
    uint32_t left = k->rows - 2u * k->padding;
    image += k->padding * (k->stride + 1u);
    do {
        const tk_sensor_t *pixel = input;
        uint32_t x;
        for (x = 0u; x < k->columns - 2u * k->padding; ++x) {
            image[x] = (tk_u16)tk_levels_pixel(levels, pixel, codes);
            pixel += levels->average * levels->channels;
        }
        input += levels->average * levels->width * levels->channels;
        image += k->stride;
    } while (--left != 0u);
}

/* Apply all channels to a loaded image; made[] gets the last maps, with the channels of a position
 * side by side. */
TK_INLINE void tk_convolutions_run(const TK_FLASH struct tk_convolutions *k,
                                   tk_convolution_row_t *respond, const tk_u16 *image, tk_u16 *maps,
                                   uint8_t *made)
{
    const TK_FLASH uint8_t *code = k->codes;
    uint8_t *const end = made + k->channels;
    do {
        const tk_u16 *map = image;
        uint8_t *place = made;
        uint32_t rows = k->rows;
        uint32_t columns = k->columns;
        uint32_t l;
        for (l = 0u; l < k->layers; ++l) {
            tk_convolution_t layer;
            layer.shift = k->shifts >> 4u * l & 15u;
            layer.pool = k->pools >> l & 1u;
            layer.rows = (rows - 2u) & ~layer.pool;
            layer.columns = columns - 2u;
            code = tk_convolution_decode(k, code, (tk_s16 *)layer.taps, &layer.bias);
            tk_convolution_layer(k, respond, &layer, map, maps);
            rows = layer.rows >> layer.pool;
            columns = layer.columns >> layer.pool;
            map = maps;
        }
        do {
            uint32_t x;
            for (x = 0u; x < columns; ++x) {
                *place = (uint8_t)map[x];
                place += k->channels;
            }
            map += k->stride;
        } while (--rows != 0u);
    } while (++made != end);
}

#endif
