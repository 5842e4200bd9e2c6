/* For libFuzzer: one model generated twice, as `fast` and as `plain`, which is compiled with other
 * kernels. Any input, stream or counters: both give the same, through every entry,
 * and no sanitizer has a word to say. abort() is a difference. */
#include <stdlib.h>
#include <string.h>

#include "fast.h"
#include "fast_field.h"
#include "plain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t scratch[FAST_SCRATCH_WORDS];
static int32_t fast[FAST_CLASSES], plain[FAST_CLASSES];
static fast_input_t raw[FAST_FEATURES];

static void must(int holds)
{
    if (!holds) {
        abort();
    }
}

/* Fill memory from the input, over and over. */
static void fill(void *memory, size_t bytes, const uint8_t *data, size_t size)
{
    size_t i;
    for (i = 0u; i < bytes; i++) {
        ((uint8_t *)memory)[i] = size == 0u ? 0u : data[i % size];
    }
}

static void same_scores(void)
{
    must(memcmp(fast, plain, sizeof fast) == 0);
}

static void run_row(const uint8_t *data, size_t size)
{
    uint32_t margin;
    fill(raw, sizeof raw, data, size);
    fast_scores(raw, scratch, fast);
    plain_scores(raw, scratch, plain);
    same_scores();
    must(fast_predict(raw, scratch) == fast_label(fast, &margin));
#ifdef QUANTIZED_ENTRIES
    {
        fast_quantized_t quantized[FAST_FEATURES];
        fast_quantize(raw, quantized);
        plain_scores_quantized(quantized, scratch, plain);
        same_scores();
        fill(quantized, sizeof quantized, data, size);
        fast_scores_quantized(quantized, scratch, fast);
        plain_scores_quantized(quantized, scratch, plain);
        same_scores();
    }
#endif
}

#ifdef STREAM_ENTRIES
/* A window that ends in a stream has the scores that it has by itself. */
static void run_stream(const uint8_t *data, size_t size)
{
    enum { SAMPLES = FAST_WINDOW + 3 * FAST_HOP + FAST_DELAY };
    static fast_input_t samples[SAMPLES][FAST_CHANNELS];
    static fast_state_t state;
    static plain_state_t other;
    static uint32_t stream[FAST_STREAM_SCRATCH_WORDS];
    int32_t window[FAST_CLASSES];
    int i;

    fill(samples, sizeof samples, data, size);
    fast_init(&state);
    plain_init(&other);
    for (i = 0; i < SAMPLES; i++) {
        const int ends = fast_push(&state, samples[i]);
        must(ends == plain_push(&other, samples[i]));
        if (ends != 0) {
            const int end = i + 1 - FAST_DELAY;
            must(end >= FAST_WINDOW);
            fast_stream_scores(&state, stream, fast);
            plain_stream_scores(&other, stream, plain);
            same_scores();
            fast_scores(samples[end - FAST_WINDOW], scratch, window);
            must(memcmp(window, fast, sizeof fast) == 0);
        }
    }
}
#endif

/* Memory that outlived a restart; `whole`: with checks that are right, whatever it holds. */
static void run_counters(const uint8_t *data, size_t size, int whole)
{
    fast_counters_t counters;
    fill(&counters, sizeof counters, data, size);
    if (whole) {
        fast_counters_t fresh;
        fast_counters_reset(&fresh);
        memcpy(&counters, &fresh, 16u);
        counters.check = fast_counters_check(&counters);
        must(fast_counters_valid(&counters));
    }
    if (fast_counters_valid(&counters)) {
        fast_counters_update(&counters, (int)counters.labels[0], counters.margin[0], 7u);
        must(fast_counters_valid(&counters));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0u) {
        return 0;
    }
    switch (data[0] & 7) {
    case 0:
        run_counters(data + 1, size - 1u, data[0] >> 7);
        break;
#ifdef STREAM_ENTRIES
    case 2:
    case 3:
        run_stream(data + 1, size - 1u);
        break;
#endif
    default:
        run_row(data + 1, size - 1u);
    }
    return 0;
}
