/* Three ways from a frame of 256 samples to the levels of 12 bands, to compare what they cost.
 *
 * -DFRONT=0 nothing, 1 the stage spectrum, 2 Walsh-Hadamard, 3 an octave tree of half-band filters.
 * It reads frames of -DSAMPLES=256 from in.bin, for the tree the 128 new ones of a hop, and writes
 * the levels of each to out.bin. 2 and 3 are the prototypes of sound_fronts.py in whole numbers. */
#include "semihost.h"
#include "tk_config.h"
#include "tk_dsp.h"

typedef int16_t tk_sample_t;
#include "tk_spectrum.h"

enum { LENGTH = 256, HOP = 128, BANDS = 12, OCTAVES = BANDS / 2 };

#if FRONT != 0
static const TK_FLASH uint16_t cosines[LENGTH / 4 + 1] = {COSINES};
static const TK_FLASH uint16_t edges[BANDS + 1] = {EDGES};
static const TK_FLASH struct tk_spectrum given = {LENGTH,    HOP, 1u,    BANDS,   11u,  0u,
                                                  AMPLITUDE, 2u,  FLOOR, cosines, edges};
#endif

static tk_kept_t samples[SAMPLES];
static uint8_t levels[BANDS];

#if FRONT == 1

static int32_t work[TK_SPECTRUM_WORDS(LENGTH)];

/* As a generated model does it: see templates/model/spectrum.c.j2. */
static void front(void)
{
    uint32_t step = 0u;
    do {
        tk_spectrum_step(&given, samples, 0u, 1u, work, levels, step);
    } while (++step != TK_SPECTRUM_STEPS(LENGTH));
}

#elif FRONT == 2

static int32_t work[LENGTH];

/* Two stages on values a, b, c, d. */
TK_INLINE void four(int32_t *z, uint16_t stride, int32_t a, int32_t b, int32_t c, int32_t d)
{
    const int32_t e = a + b;
    const int32_t f = a - b;
    const int32_t g = c + d;
    const int32_t h = c - d;
    z[0] = e + g;
    z[stride] = f + h;
    z[2u * stride] = e - g;
    z[3u * stride] = f - h;
}

/* Sums with the Walsh functions, two stages a pass; bands of sequencies, of twice the numbers of
 * bins. By changes of sign their order is that of the Gray code with its bits turned round. */
static void front(void)
{
    uint32_t magnitudes = 0u;
    uint32_t exponent = 0u;
    uint16_t stride;
    uint16_t i;
    uint16_t s;
    uint8_t band;
    uint8_t place = 0u;
    for (i = 0u; i < LENGTH; i += 4u) {
        four(work + i, 1u, samples[i], samples[i + 1u], samples[i + 2u], samples[i + 3u]);
    }
    for (stride = 4u; stride < LENGTH; stride *= 4u) {
        int32_t *z = work;
        do {
            const int32_t *const end = z + stride;
            do {
                four(z, stride, z[0], z[stride], z[2u * stride], z[3u * stride]);
            } while (++z != end);
            z += 3u * stride;
        } while (z != work + LENGTH);
    }
    for (i = 0u; i < LENGTH; ++i) {
        const int32_t z = work[i];
        magnitudes |= (uint32_t)(z < 0 ? ~z : z);
    }
    while (magnitudes >> given.amplitude_bits != 0u) {
        magnitudes >>= 1;
        ++exponent;
    }
    s = 0u;
    for (band = 0u; band <= BANDS; ++band) {
        const uint16_t end = (uint16_t)(2u * edges[band]);
        uint32_t power = 0u;
        for (; s < end && s < LENGTH - 1u; ++s) {
            const int32_t z = work[place] >> exponent;
            const uint8_t next = (uint8_t)(s + 1u);
            const uint8_t lowest = (uint8_t)(next & (uint8_t)-next);
            uint8_t bit = 128u;
            uint8_t below;
            power += (uint32_t)(z * z);
            for (below = lowest; below > 1u; below >>= 1) {
                bit >>= 1;
            }
            place ^= bit;
        }
        if (band != 0u) {
            levels[band - 1u] = tk_spectrum_level(&given, power, exponent);
        }
    }
}

#elif FRONT == 3

/* The last samples of a filter: four at odd places and two at even ones, the oldest first. */
struct line {
    int16_t odd[4];
    int16_t even[2];
};
static struct line lines[2 * OCTAVES];
static tk_kept_t low[HOP / 2];
static tk_kept_t high[HOP / 2];
static tk_kept_t upper[HOP / 4];
static tk_kept_t lower[HOP / 4];
/* Sums of squares of the last hop. */
static uint64_t powers[BANDS];

TK_INLINE int16_t held(int32_t value)
{
    return (int16_t)(value < -32768 ? -32768 : value > 32767 ? 32767 : value);
}

/* The lower and the upper half of the band of 2 n samples, at half the rate; n is not 0. */
TK_SHARED void halves(struct line *line, const tk_kept_t *x, uint8_t n, tk_kept_t *bottom,
                      tk_kept_t *top)
{
    do {
        const int16_t centre = line->even[0];
        const int32_t near =
            9 * ((int32_t)line->odd[1] + line->odd[2]) - line->odd[0] - line->odd[3];
        const int32_t middle = 16 * (int32_t)centre;
        *bottom++ = held((middle + near) >> 5);
        *top++ = held((middle - near) >> 5);
        line->even[0] = line->even[1];
        line->even[1] = *x++;
        line->odd[0] = line->odd[1];
        line->odd[1] = line->odd[2];
        line->odd[2] = line->odd[3];
        line->odd[3] = *x++;
    } while (--n != 0u);
}

/* The level of a band: its sum of squares of this hop and of the last one. */
TK_SHARED void sum(const tk_kept_t *x, uint8_t n, uint8_t band, uint8_t octave)
{
    uint64_t own = 0u;
    uint64_t power;
    uint32_t exponent = octave;
    do {
        own += (uint32_t)((int32_t)*x * *x);
        ++x;
    } while (--n != 0u);
    power = own + powers[band];
    powers[band] = own;
    while (power >> 32 != 0u) {
        power >>= 2;
        ++exponent;
    }
    levels[band] = tk_spectrum_level(&given, (uint32_t)power, exponent);
}

static void front(void)
{
    const tk_kept_t *x = samples;
    uint8_t n = HOP / 2;
    uint8_t octave;
    for (octave = 0u; octave < OCTAVES; ++octave) {
        const uint8_t band = (uint8_t)(BANDS - 1u - 2u * octave);
        halves(lines + 2u * octave, x, n, low, high);
        n /= 2u;
        halves(lines + 2u * octave + 1u, high, n, lower, upper);
        sum(upper, n, band, octave);
        sum(lower, n, (uint8_t)(band - 1u), octave);
        x = low;
    }
}

#else

static void front(void)
{
}

#endif

/* Apart, so that its instructions can be told from those of main. */
int32_t measured(void);
__attribute__((noinline)) int32_t measured(void)
{
    front();
    return levels[0];
}

int main(void)
{
    const int32_t input = tk_open("in.bin", 0);
    const int32_t output = tk_open("out.bin", 1);
    if (input < 0 || output < 0) {
        return 2;
    }
    while (tk_read(input, samples, (uint32_t)sizeof samples) == 0u) {
        (void)measured();
        if (tk_write(output, levels, (uint32_t)sizeof levels) != 0u) {
            return 2;
        }
    }
    return 0;
}
