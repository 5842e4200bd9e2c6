/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "filters": layers of convolutions with kernels of any size.
 *
 * Values of a layer are bytes with the channels of a position side by side, in memory that has room
 * for what is around them. forms[] has TK_FORM_ITEMS numbers for each layer, in the order of
 * `TK_FORM_FROM` and so on. weights[] has for each channel the rows of a kernel one after the
 * other. biases[] and units[] have a number for each channel, and behind those of a layer that
 * averages as many of its means; a unit is multiplier | shift << 16, and the shift counts on top
 * of 15. */
#ifndef TK_FILTERS_H
#define TK_FILTERS_H

#include "tk_stage.h"

/* Numbers of a layer. The code generator and the checker of proofs read this number here. */
#define TK_FORM_ITEMS 26u

enum {
    TK_FORM_FROM,     /* byte of the first value of the first kernel */
    TK_FORM_DOWN,     /* bytes from one row of positions to the next */
    TK_FORM_ACROSS,   /* bytes from one position to the next */
    TK_FORM_PITCH,    /* bytes of a row of what it reads */
    TK_FORM_HIGH,     /* rows of a kernel */
    TK_FORM_RUNS,     /* runs of values side by side of a row of a kernel */
    TK_FORM_RUN,      /* values of a run */
    TK_FORM_HOP,      /* bytes from one run to the next */
    TK_FORM_GROUP,    /* channels that read the same values */
    TK_FORM_OWN,      /* bytes from the values of a group to those of the next */
    TK_FORM_CHANNELS, /* that it gives */
    TK_FORM_ROWS,     /* that it gives */
    TK_FORM_COLUMNS,  /* that it gives */
    TK_FORM_TALL,     /* rows of a patch */
    TK_FORM_BROAD,    /* columns of a patch */
    TK_FORM_AVERAGES, /* 1: the mean of a patch, 0: the largest value */
    TK_FORM_CURVE,    /* 1 + place in curves[]; 0: none */
    TK_FORM_LEAST,    /* value before the curve */
    TK_FORM_MOST,     /* value before the curve */
    TK_FORM_ADDS,     /* byte of the first value that it adds */
    TK_FORM_ADDED,    /* bytes of a row of these; 0: none */
    TK_FORM_TO,       /* byte of the first value that it gives */
    TK_FORM_PITCH_TO, /* bytes of a row of these */
    TK_FORM_FRAME,    /* byte where the memory of these begins */
    TK_FORM_FILL,     /* bytes of it that get the border first */
    TK_FORM_BORDER
};

struct tk_filters {
    uint32_t values; /* that it takes */
    uint32_t rows;   /* of these */
    uint32_t layers;
    uint32_t first;  /* byte of the first value */
    uint32_t pitch;  /* bytes of a row of these */
    uint32_t fill;   /* bytes of the input that get the border first */
    uint32_t border; /* around the input */
    const TK_FLASH uint16_t *forms;
    const TK_FLASH int8_t *weights;
    const TK_FLASH int32_t *biases;
    const TK_FLASH uint32_t *units;
    const TK_FLASH int16_t *gains;  /* of layers that add values; 0: none do */
    const TK_FLASH uint8_t *curves; /* 256 bytes each; 0: none */
};

/* What the layers have read of their tables. */
typedef struct {
    const TK_FLASH uint16_t *form;
    const TK_FLASH int8_t *weights;
    const TK_FLASH int32_t *biases;
    const TK_FLASH uint32_t *units;
    const TK_FLASH int16_t *gains;
} tk_filter_t;

/* Set bytes to one value. */
TK_INLINE void tk_filters_fill(uint8_t *out, uint32_t size, uint32_t value)
{
    uint8_t *const end = out + size;
    while (out != end) {
        *out++ = (uint8_t)value;
        TK_PLAIN_LOOP();
    }
}

/* (sum * multiplier) >> shift, clipped to 0..255. A sum has 31 bits, a multiplier 15. */
TK_INLINE uint32_t tk_filters_level(int32_t sum, uint32_t unit)
{
    const int32_t multiplier = (int32_t)(unit & 0x7fffu);
    const int32_t low = (int32_t)((uint32_t)sum & 0x7fffu) * multiplier;
    return tk_clipped((sum >> 15) * multiplier + (low >> 15), unit >> 16);
}

/* Dot product of weights and values side by side. */
TK_INLINE int32_t tk_filters_dot(const TK_FLASH int8_t *weights, const uint8_t *values, uint32_t n)
{
    int32_t sum = 0;
    while (n >= 4u) {
        sum += (int32_t)weights[0] * (int32_t)values[0];
        sum += (int32_t)weights[1] * (int32_t)values[1];
        sum += (int32_t)weights[2] * (int32_t)values[2];
        sum += (int32_t)weights[3] * (int32_t)values[3];
        weights += 4;
        values += 4;
        n -= 4u;
    }
    while (n != 0u) {
        sum += (int32_t)*weights++ * (int32_t)*values++;
        --n;
    }
    return sum;
}

/* Value of channel c at a position, of which `seen` is the first value that its kernel reads and
 * `added` what it adds. */
TK_SHARED uint32_t tk_filters_value(const TK_FLASH struct tk_filters *k, const tk_filter_t *layer,
                                    const uint8_t *seen, const uint8_t *added, uint32_t c)
{
    const TK_FLASH uint16_t *const form = layer->form;
    const uint32_t run = form[TK_FORM_RUN];
    const uint32_t runs = form[TK_FORM_RUNS];
    const uint32_t high = form[TK_FORM_HIGH];
    const TK_FLASH int8_t *weights = layer->weights + c * (high * runs * run);
    int32_t sum = layer->biases[c];
    uint32_t value;
    uint32_t i;
    for (i = 0u; i < high; ++i) {
        const uint8_t *at = seen;
        uint32_t j;
        for (j = 0u; j < runs; ++j) {
            sum += tk_filters_dot(weights, at, run);
            weights += run;
            at += form[TK_FORM_HOP];
        }
        seen += form[TK_FORM_PITCH];
    }
    if (k->gains != 0 && form[TK_FORM_ADDED] != 0u) {
        sum += (int32_t)layer->gains[c] * (int32_t)added[c];
    }
    value = tk_filters_level(sum, layer->units[c]);
    if (value < form[TK_FORM_LEAST]) {
        value = form[TK_FORM_LEAST];
    }
    if (value > form[TK_FORM_MOST]) {
        value = form[TK_FORM_MOST];
    }
    if (k->curves != 0 && form[TK_FORM_CURVE] != 0u) {
        value = k->curves[256u * (form[TK_FORM_CURVE] - 1u) + value];
    }
    return value;
}

/* Mean or largest value of channel c of a patch. */
TK_INLINE uint32_t tk_filters_patch(const TK_FLASH struct tk_filters *k, const tk_filter_t *layer,
                                    const uint8_t *seen, const uint8_t *added, uint32_t c)
{
    const TK_FLASH uint16_t *const form = layer->form;
    const uint32_t averages = form[TK_FORM_AVERAGES];
    const uint32_t n = form[TK_FORM_CHANNELS];
    uint32_t sum = 0u;
    uint32_t i;
    for (i = 0u; i < form[TK_FORM_TALL]; ++i) {
        uint32_t j;
        for (j = 0u; j < form[TK_FORM_BROAD]; ++j) {
            const uint32_t value =
                tk_filters_value(k, layer, seen + j * form[TK_FORM_ACROSS], added + j * n, c);
            if (averages != 0u) {
                sum += value;
            } else if (value > sum) {
                sum = value;
            }
        }
        seen += form[TK_FORM_DOWN];
        added += form[TK_FORM_ADDED];
    }
    if (averages != 0u) {
        sum = tk_filters_level((int32_t)sum + layer->biases[n + c], layer->units[n + c]);
    }
    return sum;
}

/* Compute a layer, to out[]. */
TK_INLINE void tk_filters_layer(const TK_FLASH struct tk_filters *k, const tk_filter_t *layer,
                                const uint8_t *maps, uint8_t *out)
{
    const TK_FLASH uint16_t *const form = layer->form;
    const uint32_t n = form[TK_FORM_CHANNELS];
    const uint8_t *row = maps + form[TK_FORM_FROM];
    const uint8_t *added = maps + form[TK_FORM_ADDS];
    uint32_t y;
    tk_filters_fill(out + form[TK_FORM_FRAME], form[TK_FORM_FILL], form[TK_FORM_BORDER]);
    out += form[TK_FORM_TO];
    for (y = 0u; y < form[TK_FORM_ROWS]; ++y) {
        const uint8_t *seen = row;
        uint32_t x;
        for (x = 0u; x < form[TK_FORM_COLUMNS]; ++x) {
            const uint8_t *group = seen;
            uint32_t left = form[TK_FORM_GROUP];
            uint32_t c;
            for (c = 0u; c < n; ++c) {
                const uint8_t *const beside = added + x * form[TK_FORM_BROAD] * n;
                out[x * n + c] = (uint8_t)tk_filters_patch(k, layer, group, beside, c);
                if (--left == 0u) {
                    left = form[TK_FORM_GROUP];
                    group += form[TK_FORM_OWN];
                }
            }
            seen += form[TK_FORM_BROAD] * form[TK_FORM_ACROSS];
        }
        row += form[TK_FORM_TALL] * form[TK_FORM_DOWN];
        added += form[TK_FORM_TALL] * form[TK_FORM_ADDED];
        out += form[TK_FORM_PITCH_TO];
    }
}

/* Compute all layers of the input, which is in maps[]; the last one goes to made[]. */
TK_INLINE void tk_filters_run(const TK_FLASH struct tk_filters *k, uint8_t *maps, uint8_t *made)
{
    tk_filter_t layer;
    uint32_t left = k->layers;
    layer.form = k->forms;
    layer.weights = k->weights;
    layer.biases = k->biases;
    layer.units = k->units;
    layer.gains = k->gains;
    do {
        const TK_FLASH uint16_t *const form = layer.form;
        const uint32_t n = form[TK_FORM_CHANNELS];
        const uint32_t units = n << form[TK_FORM_AVERAGES];
        tk_filters_layer(k, &layer, maps, left == 1u ? made : maps);
        layer.weights += n * form[TK_FORM_HIGH] * form[TK_FORM_RUNS] * form[TK_FORM_RUN];
        layer.biases += units;
        layer.units += units;
        if (k->gains != 0 && form[TK_FORM_ADDED] != 0u) {
            layer.gains += n;
        }
        layer.form += TK_FORM_ITEMS;
    } while (--left != 0u);
}

#endif
