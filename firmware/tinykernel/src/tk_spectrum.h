/* SPDX-License-Identifier: Apache-2.0 */
/* Stage "spectrum": a frame of samples to the levels of frequency bands. The steps, their roundings
 * and why nothing overflows are in tinykernel/model/stages/spectrum.py; the numbers are the same.
 *
 * All is whole numbers of 32 bits. The only table is a quarter of a cosine, for the one length that
 * a model has; the window is three additions a bin, after the transform. */
#ifndef TK_SPECTRUM_H
#define TK_SPECTRUM_H

#include "tk_config.h"
#include "tk_dsp.h"

/* What a model says of its spectrum; a constant, so that the compiler sees every number. */
struct tk_spectrum {
    uint32_t length;         /* samples of a frame: 64, 128, 256 or 512 */
    uint32_t hop;            /* 1..length: samples from one frame to the next */
    uint32_t channels;       /* of the input, 1..64 */
    uint32_t bands;          /* 1..64 */
    uint32_t left;           /* 0..26: samples are shifted to the left, ... */
    uint32_t right;          /* 0..5: ... or to the right; one of them is 0 */
    uint32_t amplitude_bits; /* 1..15: magnitude of the parts of a bin before they are squared */
    uint32_t log_bits;       /* 1..3: 2^log_bits levels an octave of power */
    uint32_t floor;          /* 0..511: the level that becomes 0 */
    const TK_FLASH uint16_t *cosines; /* length / 4 + 1: round(32768 cos(2 pi i / length)) */
    const TK_FLASH uint16_t *edges; /* bands + 1, rising: the first bin of a band, 2..length / 2 */
};

/* A sample, in memory of words, too. */
typedef tk_sample_t TK_ALIAS tk_kept_t;

/* Words of memory that a frame needs. */
#define TK_SPECTRUM_WORDS(length) ((length) + 2u)

/* floor(value * factor / 65536); factor 0..32767. */
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

/* The sum of two such products. */
TK_INLINE int32_t tk_spectrum_sum(int32_t x, uint32_t c, int32_t y, uint32_t s)
{
#if TK_DSP
    return (int32_t)tk_smlawb((uint32_t)x, c, tk_smulwb((uint32_t)y, s));
#else
    return tk_spectrum_product(x, c) + tk_spectrum_product(y, s);
#endif
}

/* Replace a by a / 2 + t and b by a / 2 - t; each has two parts. */
TK_INLINE void tk_spectrum_butterfly(int32_t *a, int32_t *b, int32_t real, int32_t imaginary)
{
    const int32_t x = a[0] >> 1;
    const int32_t y = a[1] >> 1;
    a[0] = x + real;
    a[1] = y + imaginary;
    b[0] = x - real;
    b[1] = y - imaginary;
}

/* Samples of each channel in the ring: where channels take turns, those of the later ones wait. */
TK_INLINE uint32_t tk_spectrum_ring(const TK_FLASH struct tk_spectrum *given)
{
    return given->channels == 1u ? given->length : 2u * given->length;
}

/* Sum and difference of two samples half a frame apart, shifted; the first is at any place of the
 * ring. */
TK_INLINE void tk_spectrum_pair(const TK_FLASH struct tk_spectrum *given, const tk_kept_t *samples,
                                uint32_t place, uint32_t stride, int32_t *sum, int32_t *difference)
{
    const uint32_t wrapped = tk_spectrum_ring(given) - 1u;
    const int32_t x = (int32_t)(samples[(place & wrapped) * stride] >> given->right);
    const int32_t y =
        (int32_t)(samples[((place + given->length / 2u) & wrapped) * stride] >> given->right);
    *sum = (int32_t)((uint32_t)(x + y) << given->left);
    *difference = (int32_t)((uint32_t)(x - y) << given->left);
}

/* Half of the pairs of samples, 0 or 1, into bit-reversed order, and the first two stages of their
 * transform. Sample i of the frame is samples[(start + i) * stride], around the ring. The oldest
 * ones go first, so that new ones can overwrite them. */
TK_INLINE void tk_spectrum_load(const TK_FLASH struct tk_spectrum *given, int32_t *frame,
                                const tk_kept_t *samples, uint32_t start, uint32_t stride,
                                uint32_t half)
{
    const uint32_t quarter = given->length / 4u;
    uint32_t at = start + half * (quarter / 2u);
    const uint32_t end = at + quarter / 2u;
    uint32_t reversed = half;
    do {
        /* The four pairs of a butterfly are a quarter of a frame apart. */
        int32_t *const z = frame + 8u * reversed;
        uint32_t bit = quarter / 4u;
        int32_t sums[4];
        int32_t differences[4];
        tk_spectrum_pair(given, samples, at, stride, sums, differences);
        tk_spectrum_pair(given, samples, at + 1u, stride, sums + 1, differences + 1);
        tk_spectrum_pair(given, samples, at + quarter, stride, sums + 2, differences + 2);
        tk_spectrum_pair(given, samples, at + quarter + 1u, stride, sums + 3, differences + 3);
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

/* Stage `number` of the others, from 0. Values that meet are four quarters apart; a and b go
 * through them. */
TK_INLINE void tk_spectrum_stage(const TK_FLASH struct tk_spectrum *given, int32_t *z,
                                 uint32_t number)
{
    const int32_t *const end = z + given->length;
    const uint32_t quarter = 4u << number; /* of the values that meet, in words: two a value */
    const uint32_t step = given->length / 8u >> number;
    const TK_FLASH uint16_t *cosine = given->cosines;
    const TK_FLASH uint16_t *sine = given->cosines + given->length / 4u;
    int32_t *first = z;
    int32_t *a = z;
    do {
        int32_t *b = a + 2u * quarter;
        TK_HIDE(b); /* or compilers keep a pointer for each part of a value */
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

/* Bins of the real samples, from the transform of their pairs: length / 2 + 1 of them. */
TK_INLINE void tk_spectrum_split(const TK_FLASH struct tk_spectrum *given, int32_t *z)
{
    const TK_FLASH uint16_t *cosine = given->cosines;
    const TK_FLASH uint16_t *sine = given->cosines + given->length / 4u;
    int32_t *a = z + 2;
    int32_t *b = z + given->length - 2u;
    z[given->length] = (z[0] >> 1) - (z[1] >> 1);
    z[given->length + 1u] = 0;
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

/* The Hann window, on bins edges[0] to edges[bands] - 1; returns an OR of their magnitudes. */
TK_INLINE uint32_t tk_spectrum_window(const TK_FLASH struct tk_spectrum *given, int32_t *z)
{
    int32_t *bin = z + 2u * given->edges[0];
    const int32_t *const end = z + 2u * given->edges[given->bands];
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

/* floor(2^log_bits log2(power 4^exponent)) - floor, held within 0..255; 0 of 0. */
TK_INLINE uint8_t tk_spectrum_level(const TK_FLASH struct tk_spectrum *given, uint32_t power,
                                    uint32_t exponent)
{
    int32_t level;
    if (power == 0u) {
        return 0u;
    }
    level = (int32_t)(tk_log2(power, given->log_bits) + (2u * exponent << given->log_bits));
    level -= (int32_t)given->floor;
    return level < 0 ? 0u : level > 255 ? 255u : (uint8_t)level;
}

/* Levels of the bands, from windowed bins. */
TK_INLINE void tk_spectrum_bands(const TK_FLASH struct tk_spectrum *given, const int32_t *z,
                                 uint32_t magnitudes, uint8_t *levels)
{
    const int32_t *bin = z + 2u * given->edges[0];
    uint32_t exponent = 0u;
    uint32_t band;
    while (magnitudes >> given->amplitude_bits != 0u) {
        magnitudes >>= 1;
        ++exponent;
    }
    for (band = 1u; band <= given->bands; ++band) {
        const int32_t *const end = z + 2u * given->edges[band];
        uint32_t power = 0u;
        do {
            const int32_t x = bin[0] >> exponent;
            const int32_t y = bin[1] >> exponent;
            power += (uint32_t)(x * x) + (uint32_t)(y * y);
            bin += 2;
        } while (bin != end);
        *levels++ = tk_spectrum_level(given, power, exponent);
    }
}

/* Steps of the work on a frame of one channel. */
#define TK_SPECTRUM_STEPS(length) \
    ((length) == 64u ? 8u : (length) == 128u ? 9u : (length) == 256u ? 10u : 11u)

/* A step of it, from 0: each half of the samples, each stage, then bins, window and levels. Sample
 * i of the frame is samples[((start + i) % tk_spectrum_ring()) * stride]; z has
 * TK_SPECTRUM_WORDS(length) words, and keeps what is done from step to step. */
TK_INLINE void tk_spectrum_step(const TK_FLASH struct tk_spectrum *given, const tk_kept_t *samples,
                                uint32_t start, uint32_t stride, int32_t *z, uint8_t *levels,
                                uint32_t step)
{
    const uint32_t split = TK_SPECTRUM_STEPS(given->length) - 3u;
    if (step < 2u) {
        tk_spectrum_load(given, z, samples, start, stride, step);
    } else if (step < split) {
        tk_spectrum_stage(given, z, step - 2u);
    } else if (step == split) {
        tk_spectrum_split(given, z);
    } else if (step == split + 1u) {
        z[0] = (int32_t)tk_spectrum_window(given, z); /* no band has bin 0 */
    } else {
        tk_spectrum_bands(given, z, (uint32_t)z[0], levels);
    }
}

/* Memory of a stream, words: that of a frame, the newest row of levels, then what whole windows do
 * not need: the TK_SPECTRUM ones and the ring of samples. These are the samples before the next
 * frame is there, where the next one goes, steps of the work on the last frame that are left, and
 * whether a window ends with it. */
enum { TK_SPECTRUM_WAIT, TK_SPECTRUM_AT, TK_SPECTRUM_LEFT, TK_SPECTRUM_ENDS, TK_SPECTRUM_RING };

/* Memory for a frame. */
TK_INLINE int32_t *tk_spectrum_work(uint32_t *state)
{
    return (int32_t *)state;
}

/* The newest row: for each channel a level a band. */
TK_INLINE uint8_t *tk_spectrum_row(const TK_FLASH struct tk_spectrum *given, uint32_t *state)
{
    return (uint8_t *)(state + TK_SPECTRUM_WORDS(given->length));
}

/* The words that whole windows do not need: `kept` of the functions below. */
TK_INLINE uint32_t *tk_spectrum_stream(const TK_FLASH struct tk_spectrum *given, uint32_t *state)
{
    return state + TK_SPECTRUM_WORDS(given->length) + (given->bands * given->channels + 3u) / 4u;
}

/* The ring of samples. */
TK_INLINE const tk_kept_t *tk_spectrum_samples(const uint32_t *kept)
{
    return (const tk_kept_t *)(kept + TK_SPECTRUM_RING);
}

/* An empty stream, whose first frame ends after so many samples. */
TK_INLINE void tk_spectrum_init(uint32_t samples, uint32_t *kept)
{
    kept[TK_SPECTRUM_WAIT] = samples;
    kept[TK_SPECTRUM_AT] = 0u;
    kept[TK_SPECTRUM_LEFT] = 0u;
}

/* Keep a sample of each channel. Where a frame ends with it, its work of so many steps begins. */
TK_INLINE void tk_spectrum_keep(const TK_FLASH struct tk_spectrum *given, uint32_t *kept,
                                const tk_sample_t *sample, uint32_t steps)
{
    tk_kept_t *const place =
        (tk_kept_t *)(kept + TK_SPECTRUM_RING) + kept[TK_SPECTRUM_AT] * given->channels;
    uint32_t i;
    for (i = 0u; i < given->channels; ++i) {
        place[i] = sample[i];
    }
    kept[TK_SPECTRUM_AT] = (kept[TK_SPECTRUM_AT] + 1u) & (tk_spectrum_ring(given) - 1u);
    if (--kept[TK_SPECTRUM_WAIT] == 0u) {
        kept[TK_SPECTRUM_WAIT] = given->hop;
        kept[TK_SPECTRUM_LEFT] = steps;
    }
}

/* Where the frame begins whose work is under way. */
TK_INLINE uint32_t tk_spectrum_start(const TK_FLASH struct tk_spectrum *given, const uint32_t *kept)
{
    return kept[TK_SPECTRUM_AT] + kept[TK_SPECTRUM_WAIT] - given->hop - given->length;
}

#endif
