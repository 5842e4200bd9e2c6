/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "spectrum": compute the levels of frequency bands from a frame of samples.
 * tinykernel/pieces/spectrum/spec.py specifies the steps and their roundings, and says why nothing
 * overflows.
 *
 * All arithmetic is on 32-bit integers. The only table is a quarter of a cosine for the length of
 * the frames. The Hann window is applied to the bins after the transform: three additions per bin.
 */
#ifndef TK_SPECTRUM_H
#define TK_SPECTRUM_H

#include "tk_config.h"
#include "tk_dsp.h"

struct tk_spectrum {
    uint32_t length;         /* samples of a frame: 64, 128, 256 or 512 */
    uint32_t hop;            /* samples from one frame to the next, 1..length */
    uint32_t channels;       /* channels of the input, 1..64 */
    uint32_t bands;          /* number of bands, 1..64 */
    uint32_t left;           /* left shift of samples, 0..26 */
    uint32_t right;          /* right shift of samples, 0..5; left or right is 0 */
    uint32_t amplitude_bits; /* bits of real and imaginary parts before they are squared, 1..15 */
    uint32_t log_bits;       /* 2^log_bits levels per doubling of power, 1..3 */
    uint32_t floor;          /* level that becomes 0, 0..511 */
    const TK_FLASH uint16_t *cosines; /* round(32768 cos(2 pi i / length)), i = 0..length / 4 */
    const TK_FLASH uint16_t *edges;   /* first bins of the bands, and the end: 2..length / 2 */
};

/* A stored sample. The memory is also accessed as words. */
typedef tk_sample_t TK_ALIAS tk_stored_t;

/* Words of memory for the transform of a frame. */
#define TK_SPECTRUM_WORDS(length) ((length) + 2u)

/* floor(value * factor / 65536); factor is 0..32767. */
TK_INLINE int32_t tk_spectrum_product(int32_t value, uint32_t factor)
{
#if TK_DSP
    return (int32_t)tk_smulwb((uint32_t)value, factor);
#elif TK_LONG_PRODUCT && !defined(__AVR__)
    return (int32_t)(((int64_t)value * (int32_t)(factor << 16)) >> 32);
#else
    const uint32_t low = (uint32_t)value & 0xffffu;
    return (value >> 16) * (int32_t)factor + (int32_t)(low * factor >> 16);
#endif
}

/* x * c + y * s, each product as above. */
TK_INLINE int32_t tk_spectrum_sum(int32_t x, uint32_t c, int32_t y, uint32_t s)
{
#if TK_DSP
    return (int32_t)tk_smlawb((uint32_t)x, c, tk_smulwb((uint32_t)y, s));
#else
    return tk_spectrum_product(x, c) + tk_spectrum_product(y, s);
#endif
}

/* Replace a by a / 2 + t and b by a / 2 - t; all are complex, t = real + i imaginary. */
TK_INLINE void tk_spectrum_butterfly(int32_t *a, int32_t *b, int32_t real, int32_t imaginary)
{
    const int32_t x = a[0] >> 1;
    const int32_t y = a[1] >> 1;
    a[0] = x + real;
    a[1] = y + imaginary;
    b[0] = x - real;
    b[1] = y - imaginary;
}

/* Samples of a channel in the ring. Channels are processed one after the other, so the frames of
 * several channels are stored longer. */
TK_INLINE uint32_t tk_spectrum_ring(const TK_FLASH struct tk_spectrum *spectrum)
{
    return spectrum->channels == 1u ? spectrum->length : 2u * spectrum->length;
}

/* Sum and difference, shifted, of two samples that are half a frame apart. `place` is that of the
 * first one; it wraps around the ring. */
TK_INLINE void tk_spectrum_pair(const TK_FLASH struct tk_spectrum *spectrum,
                                const tk_stored_t *samples, uint32_t place, uint32_t stride,
                                int32_t *sum, int32_t *difference)
{
    const uint32_t wrapped = tk_spectrum_ring(spectrum) - 1u;
    const int32_t x = (int32_t)(samples[(place & wrapped) * stride] >> spectrum->right);
    const int32_t y =
        (int32_t)(samples[((place + spectrum->length / 2u) & wrapped) * stride] >> spectrum->right);
    *sum = (int32_t)((uint32_t)(x + y) << spectrum->left);
    *difference = (int32_t)((uint32_t)(x - y) << spectrum->left);
}

/* Load the first or second half (0 or 1) of the pairs of samples in bit-reversed order, and compute
 * the first two stages of their transform. Sample i of the frame is samples[(start + i) * stride],
 * around the ring. The oldest samples are loaded first, as new ones overwrite them. */
TK_INLINE void tk_spectrum_load(const TK_FLASH struct tk_spectrum *spectrum, int32_t *frame,
                                const tk_stored_t *samples, uint32_t start, uint32_t stride,
                                uint32_t half)
{
    const uint32_t quarter = spectrum->length / 4u;
    uint32_t at = start + half * (quarter / 2u);
    const uint32_t end = at + quarter / 2u;
    uint32_t reversed = half;
    do {
        /* The four pairs of a butterfly are a quarter of a frame apart. */
        int32_t *const z = frame + 8u * reversed;
        uint32_t bit = quarter / 4u;
        int32_t sums[4];
        int32_t differences[4];
        tk_spectrum_pair(spectrum, samples, at, stride, sums, differences);
        tk_spectrum_pair(spectrum, samples, at + 1u, stride, sums + 1, differences + 1);
        tk_spectrum_pair(spectrum, samples, at + quarter, stride, sums + 2, differences + 2);
        tk_spectrum_pair(spectrum, samples, at + quarter + 1u, stride, sums + 3, differences + 3);
        z[0] = sums[0] + sums[2];
        z[1] = sums[1] + sums[3];
        z[2] = differences[0] + differences[3];
        z[3] = differences[1] - differences[2];
        z[4] = sums[0] - sums[2];
        z[5] = sums[1] - sums[3];
        z[6] = differences[0] - differences[3];
        z[7] = differences[1] + differences[2];
        at += 2u;
        while ((reversed & bit) != 0u) {
            reversed ^= bit;
            bit >>= 1;
        }
        reversed |= bit;
    } while (at != end);
}

/* Compute stage `number` of the transform, counted from 0 after the first two. */
TK_INLINE void tk_spectrum_stage(const TK_FLASH struct tk_spectrum *spectrum, int32_t *z,
                                 uint32_t number)
{
    const int32_t *const end = z + spectrum->length;
    const uint32_t quarter =
        4u << number; /* words of a quarter of the values of a butterfly group */
    const uint32_t step = spectrum->length / 8u >> number;
    const TK_FLASH uint16_t *cosine = spectrum->cosines;
    const TK_FLASH uint16_t *sine = spectrum->cosines + spectrum->length / 4u;
    int32_t *first = z;
    int32_t *a = z;
    do {
        int32_t *b = a + 2u * quarter;
        TK_HIDE(b); /* otherwise compilers keep one pointer for each part of a value */
        tk_spectrum_butterfly(a, b, b[0] >> 1, b[1] >> 1);
        a += quarter;
        b += quarter;
        TK_HIDE(a);
        TK_HIDE(b);
        tk_spectrum_butterfly(a, b, b[1] >> 1, -(b[0] >> 1));
        a = b + quarter;
    } while (a < end);
    for (first += 2; first != z + quarter; first += 2) {
        uint32_t c;
        uint32_t s;
        cosine += step;
        sine -= step;
        c = *cosine;
        s = *sine;
        a = first;
        do {
            int32_t *b = a + 2u * quarter;
            int32_t x;
            int32_t y;
            TK_HIDE(b);
            x = b[0];
            y = b[1];
            tk_spectrum_butterfly(a, b, tk_spectrum_sum(x, c, y, s),
                                  tk_spectrum_product(y, c) - tk_spectrum_product(x, s));
            a += quarter;
            b += quarter;
            TK_HIDE(a);
            TK_HIDE(b);
            x = b[0];
            y = b[1];
            tk_spectrum_butterfly(a, b, tk_spectrum_product(y, c) - tk_spectrum_product(x, s),
                                  -tk_spectrum_sum(y, s, x, c));
            a = b + quarter;
        } while (a < end);
    }
}

/* Compute the length / 2 + 1 bins of the real samples from the transform of their pairs. */
TK_INLINE void tk_spectrum_split(const TK_FLASH struct tk_spectrum *spectrum, int32_t *z)
{
    const TK_FLASH uint16_t *cosine = spectrum->cosines;
    const TK_FLASH uint16_t *sine = spectrum->cosines + spectrum->length / 4u;
    int32_t *a = z + 2;
    int32_t *b = z + spectrum->length - 2u;
    z[spectrum->length] = (z[0] >> 1) - (z[1] >> 1);
    z[spectrum->length + 1u] = 0;
    z[0] = (z[0] >> 1) + (z[1] >> 1);
    z[1] = 0;
    do {
        const uint32_t c = *++cosine;
        const uint32_t s = *--sine;
        const int32_t even_real = (a[0] + b[0]) >> 2;
        const int32_t even_imaginary = (a[1] - b[1]) >> 2;
        const int32_t x = (a[1] + b[1]) >> 1;
        const int32_t y = (b[0] - a[0]) >> 1;
        const int32_t real = tk_spectrum_sum(x, c, y, s);
        const int32_t imaginary = tk_spectrum_product(y, c) - tk_spectrum_product(x, s);
        a[0] = even_real + real;
        a[1] = even_imaginary + imaginary;
        b[0] = even_real - real;
        b[1] = imaginary - even_imaginary;
        a += 2;
        b -= 2;
    } while (a != b);
    a[0] >>= 1;
    a[1] = -(a[1] >> 1);
}

/* Apply the Hann window to bins edges[0] to edges[bands] - 1. Returns the bitwise OR of their
 * magnitudes. */
TK_INLINE uint32_t tk_spectrum_window(const TK_FLASH struct tk_spectrum *spectrum, int32_t *z)
{
    int32_t *bin = z + 2u * spectrum->edges[0];
    const int32_t *const end = z + 2u * spectrum->edges[spectrum->bands];
    int32_t real = bin[-2];
    int32_t imaginary = bin[-1];
    int32_t magnitudes = 0;
    do {
        const int32_t x = bin[0];
        const int32_t y = bin[1];
        const int32_t v = 2 * x - real - bin[2];
        const int32_t w = 2 * y - imaginary - bin[3];
        magnitudes |= (v < 0 ? ~v : v) | (w < 0 ? ~w : w);
        bin[0] = v;
        bin[1] = w;
        real = x;
        imaginary = y;
        bin += 2;
    } while (bin != end);
    return (uint32_t)magnitudes;
}

/* floor(2^log_bits log2(power 4^exponent)) - floor, clipped to 0..255; 0 if power is 0. */
TK_INLINE uint8_t tk_spectrum_level(const TK_FLASH struct tk_spectrum *spectrum, uint32_t power,
                                    uint32_t exponent)
{
    int32_t level;
    if (power == 0u) {
        return 0u;
    }
    level = (int32_t)(tk_log2(power, spectrum->log_bits) + (2u * exponent << spectrum->log_bits));
    level -= (int32_t)spectrum->floor;
    return level < 0 ? 0u : level > 255 ? 255u : (uint8_t)level;
}

/* Compute the levels of the bands from windowed bins. */
TK_INLINE void tk_spectrum_bands(const TK_FLASH struct tk_spectrum *spectrum, const int32_t *z,
                                 uint32_t magnitudes, uint8_t *levels)
{
    const int32_t *bin = z + 2u * spectrum->edges[0];
    uint32_t exponent = 0u;
    uint32_t band;
    while (magnitudes >> spectrum->amplitude_bits != 0u) {
        magnitudes >>= 1;
        ++exponent;
    }
    for (band = 1u; band <= spectrum->bands; ++band) {
        const int32_t *const end = z + 2u * spectrum->edges[band];
        uint32_t power = 0u;
        do {
            const int32_t x = bin[0] >> exponent;
            const int32_t y = bin[1] >> exponent;
            power += (uint32_t)(x * x) + (uint32_t)(y * y);
            bin += 2;
        } while (bin != end);
        *levels++ = tk_spectrum_level(spectrum, power, exponent);
    }
}

/* Number of steps into which the work on a frame of one channel is split. */
#define TK_SPECTRUM_STEPS(length) \
    ((length) == 64u ? 8u : (length) == 128u ? 9u : (length) == 256u ? 10u : 11u)

/* Do one of these steps, counted from 0: a step for each half of the samples and each stage, then
 * for bins, window and levels. Sample i of the frame is samples[((start + i) % tk_spectrum_ring())
 * * stride]; z has TK_SPECTRUM_WORDS(length) words, and carries results from step to step. */
TK_INLINE void tk_spectrum_step(const TK_FLASH struct tk_spectrum *spectrum,
                                const tk_stored_t *samples, uint32_t start, uint32_t stride,
                                int32_t *z, uint8_t *levels, uint32_t step)
{
    const uint32_t split = TK_SPECTRUM_STEPS(spectrum->length) - 3u;
    if (step < 2u) {
        tk_spectrum_load(spectrum, z, samples, start, stride, step);
    } else if (step < split) {
        tk_spectrum_stage(spectrum, z, step - 2u);
    } else if (step == split) {
        tk_spectrum_split(spectrum, z);
    } else if (step == split + 1u) {
        z[0] = (int32_t)tk_spectrum_window(spectrum, z); /* no band uses bin 0 */
    } else {
        tk_spectrum_bands(spectrum, z, (uint32_t)z[0], levels);
    }
}

/* State: memory for a frame, the newest row of levels, and for streams the words TK_SPECTRUM_* and
 * the ring of samples. WAIT is the number of samples until the next frame is complete, AT the place
 * of the next sample, LEFT the number of steps of work left on the last frame, ENDS whether a
 * window ends with that frame. */
enum { TK_SPECTRUM_WAIT, TK_SPECTRUM_AT, TK_SPECTRUM_LEFT, TK_SPECTRUM_ENDS, TK_SPECTRUM_RING };

/* Memory for a frame. */
TK_INLINE int32_t *tk_spectrum_work(uint32_t *state)
{
    return (int32_t *)state;
}

/* The newest row: the levels of all bands of each channel. */
TK_INLINE uint8_t *tk_spectrum_row(const TK_FLASH struct tk_spectrum *spectrum, uint32_t *state)
{
    return (uint8_t *)(state + TK_SPECTRUM_WORDS(spectrum->length));
}

/* The part of the state that only streams need: `stream` of the functions below. */
TK_INLINE uint32_t *tk_spectrum_stream(const TK_FLASH struct tk_spectrum *spectrum, uint32_t *state)
{
    return state + TK_SPECTRUM_WORDS(spectrum->length) +
           (spectrum->bands * spectrum->channels + 3u) / 4u;
}

/* The ring of samples. */
TK_INLINE const tk_stored_t *tk_spectrum_samples(const uint32_t *stream)
{
    return (const tk_stored_t *)(stream + TK_SPECTRUM_RING);
}

/* Initialise a stream, whose first frame ends after `samples` samples. */
TK_INLINE void tk_spectrum_init(uint32_t samples, uint32_t *stream)
{
    stream[TK_SPECTRUM_WAIT] = samples;
    stream[TK_SPECTRUM_AT] = 0u;
    stream[TK_SPECTRUM_LEFT] = 0u;
}

/* Store a sample of each channel. If a frame ends with it, `steps` steps of work are due. */
TK_INLINE void tk_spectrum_keep(const TK_FLASH struct tk_spectrum *spectrum, uint32_t *stream,
                                const tk_sample_t *sample, uint32_t steps)
{
    tk_stored_t *const place =
        (tk_stored_t *)(stream + TK_SPECTRUM_RING) + stream[TK_SPECTRUM_AT] * spectrum->channels;
    uint32_t i;
    for (i = 0u; i < spectrum->channels; ++i) {
        place[i] = sample[i];
    }
    stream[TK_SPECTRUM_AT] = (stream[TK_SPECTRUM_AT] + 1u) & (tk_spectrum_ring(spectrum) - 1u);
    if (--stream[TK_SPECTRUM_WAIT] == 0u) {
        stream[TK_SPECTRUM_WAIT] = spectrum->hop;
        stream[TK_SPECTRUM_LEFT] = steps;
    }
}

/* Where the frame begins on which work is left. */
TK_INLINE uint32_t tk_spectrum_start(const TK_FLASH struct tk_spectrum *spectrum,
                                     const uint32_t *stream)
{
    return stream[TK_SPECTRUM_AT] + stream[TK_SPECTRUM_WAIT] - spectrum->hop - spectrum->length;
}

#endif
