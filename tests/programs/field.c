#include "semihost.h"
#include "gesture_field.h"

static struct {
    gesture_input_t values[GESTURE_FEATURES];
} row;
static gesture_scratch_t scratch;
static gesture_counters_t counters;
static int32_t scores[GESTURE_CLASSES];
#if TABLE
static gesture_quantized_t quantized[GESTURE_FEATURES];
#define SATURATED (gesture_quantize(row.values, quantized), gesture_saturated(quantized))
#else
#define SATURATED gesture_saturated(row.values)
#endif

int main(void)
{
    const int32_t input = tk_open("in.bin", 0);
    const int32_t output = tk_open("out.bin", 1);
    int32_t found[4];
    uint32_t margin;
    int label, wrong;

    gesture_counters_reset(&counters);
    while (tk_read(input, &row, (uint32_t)sizeof row) == 0u) {
        gesture_scores(row.values, scratch, scores);
        label = gesture_label(scores, &margin);
        gesture_counters_update(&counters, (margin & 3u) == 0u ? -1 : label, margin, SATURATED);
        found[0] = label;
        found[1] = (int32_t)margin;
        found[2] = (int32_t)counters.check;
        found[3] = gesture_counters_valid(&counters);
        if (tk_write(output, found, (uint32_t)sizeof found) != 0u) {
            return 2;
        }
    }
    counters.labels[0] ^= 1u;
    wrong = gesture_counters_valid(&counters);
    counters.labels[0] ^= 1u;
    return wrong | (tk_write(output, &counters, (uint32_t)sizeof counters) != 0u);
}
