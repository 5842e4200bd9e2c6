/* Runs the counters of a generated model on a sequence of scores, on this computer and on emulated
 * boards.
 *
 * in.bin has for every step, int32: 1 to refuse whatever the scores are, else 0; the number of
 * saturated values; the scores of all classes. out.bin has for every step the decision and its
 * margin, and every 64th step also the check of the counters.
 *
 * Options of the compiler name the model: -DFIELD_HEADER=gesture_field.h -DMODEL=gesture
 * -DMODEL_UPPER=GESTURE, and -DDECISIONS=1 if it has decisions. */
#include "semihost.h"

#define TEXT_(a) #a
#define TEXT(a)  TEXT_(a)
#include TEXT(FIELD_HEADER)

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define CLASSES     JOIN(MODEL_UPPER, _CLASSES)

static struct {
    int32_t refuse;
    uint32_t saturated;
    int32_t scores[CLASSES];
} step;
static JOIN(MODEL, _counters_t) counters;

static int decided(uint32_t *margin)
{
#ifdef DECISIONS
    const int label = JOIN(MODEL, _decide_scores)(step.scores, margin);
#else
    const int label = JOIN(MODEL, _label)(step.scores, margin);
#endif
    return step.refuse != 0 ? -1 : label;
}

int main(void)
{
    const int32_t input = tk_open("in.bin", 0);
    const int32_t output = tk_open("out.bin", 1);
    uint32_t number = 0u;
    if (input < 0 || output < 0) {
        tk_print("field: cannot open in.bin and out.bin\n");
        return 2;
    }
    JOIN(MODEL, _counters_reset)(&counters);
    while (tk_read(input, &step, (uint32_t)sizeof step) == 0u) {
        int32_t row[3];
        uint32_t length = 2u;
        uint32_t margin;
        row[0] = decided(&margin);
        row[1] = (int32_t)margin;
        JOIN(MODEL, _counters_update)(&counters, (int)row[0], margin, step.saturated);
        if (number++ % 64u == 0u) {
            length = 3u;
            if (JOIN(MODEL, _counters_valid)(&counters) == 0) {
                tk_print("field: the counters are not whole\n");
                return 2;
            }
            row[2] = (int32_t)counters.check;
        }
        if (tk_write(output, row, length * (uint32_t)sizeof row[0]) != 0u) {
            tk_print("field: cannot write out.bin\n");
            return 2;
        }
    }
    return 0;
}
