/* A perceptron with one hidden layer and int8 weights, one scale a layer, in plain C99.
 *
 * Inputs become uint8: the mean of POOL x POOL pixels, or a value less its least one, times a
 * factor. ReLU and its scale give uint8 again; the largest output wins. peer.h has the shapes,
 * tables.h the tables. The zero point of the inputs is folded into the biases. */
#include "tables.h"

static uint8_t inputs[MLP_INPUTS];
static uint8_t hidden[MLP_HIDDEN];

static uint8_t as_byte(int64_t value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Value i of a row as a byte. */
static uint32_t input_at(const peer_input_t *row, uint32_t i)
{
#if MLP_IDENTITY
    return (uint32_t)row[i];
#elif MLP_FLOAT
    const uint32_t k = i % MLP_SCALES;
    const float value = (row[i] - mlp_low[k]) * mlp_factor[k];
    return value <= 0.0f ? 0u : value >= 255.0f ? 255u : (uint32_t)(value + 0.5f);
#else
#if MLP_BITS
    if (i >= MLP_SCALES) {
        return row[i] != 0 ? 255u : 0u; /* the rest are flags */
    }
#endif
    const uint32_t k = i % MLP_SCALES;
    return as_byte((((int64_t)row[i] - mlp_low[k]) * mlp_factor[k] + 32768) >> 16);
#endif
}

static void read_inputs(const peer_input_t *row)
{
#if MLP_POOL == 2
    uint32_t y, x, at = 0u;
    for (y = 0u; y + 1u < MLP_HEIGHT; y += 2u) {
        for (x = 0u; x + 1u < MLP_WIDTH; x += 2u) {
            const uint32_t i = y * MLP_WIDTH + x;
            const uint32_t sum = input_at(row, i) + input_at(row, i + 1u) +
                                 input_at(row, i + MLP_WIDTH) + input_at(row, i + MLP_WIDTH + 1u);
            inputs[at++] = (uint8_t)((sum + 2u) >> 2);
        }
    }
#else
    uint32_t i;
    for (i = 0u; i < MLP_INPUTS; i++) {
        inputs[i] = (uint8_t)input_at(row, i);
    }
#endif
}

static int32_t dot(const int8_t *weights, const uint8_t *values, uint32_t n, int32_t sum)
{
    uint32_t i;
    for (i = 0u; i < n; i++) {
        sum += weights[i] * values[i];
    }
    return sum;
}

int32_t peer_predict(const peer_input_t *row)
{
    int32_t best = INT32_MIN, label = 0;
    uint32_t j;
    read_inputs(row);
    for (j = 0u; j < MLP_HIDDEN; j++) {
        const int32_t sum = dot(&mlp_weights1[j * MLP_INPUTS], inputs, MLP_INPUTS, mlp_bias1[j]);
        hidden[j] = as_byte(((int64_t)sum * MLP_FACTOR1 + ((int64_t)1 << 30)) >> 31);
    }
    for (j = 0u; j < MLP_OUTPUTS; j++) {
        const int32_t sum = dot(&mlp_weights2[j * MLP_HIDDEN], hidden, MLP_HIDDEN, mlp_bias2[j]);
        if (sum > best) {
            best = sum;
            label = (int32_t)j;
        }
    }
    return label;
}
