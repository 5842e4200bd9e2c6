/* Runs a generated model over a file of inputs on an emulated board.
 *
 * in.bin: the entry as uint32 (0 raw inputs, 1 quantized inputs, 2 quantization only), then rows.
 * out.bin: for every row the scores of all classes and the label of the predict function, int32;
 * or the quantized row. At the end one more uint32: stack bytes that the last row took.
 *
 * The model comes from the command line of the compiler: -DMODEL_HEADER="gesture.h"
 * -DMODEL=gesture -DMODEL_UPPER=GESTURE. */
#include "semihost.h"

#define TEXT_(a) #a
#define TEXT(a)  TEXT_(a)
#include TEXT(MODEL_HEADER)

#define JOIN_(a, b)   a##b
#define JOIN(a, b)    JOIN_(a, b)
#define FEATURES      JOIN(MODEL_UPPER, _FEATURES)
#define CLASSES       JOIN(MODEL_UPPER, _CLASSES)
#define SCRATCH_WORDS JOIN(MODEL_UPPER, _SCRATCH_WORDS)

enum { RAW, QUANTIZED, QUANTIZE };
enum { PAINTED_WORDS = 512 };
#define PAINT 0x5ca1ab1eu

/* The largest things share their memory, as small boards have little. A row is used up before the
 * next one is read. */
static JOIN(MODEL, _input_t) raw[FEATURES];
static JOIN(MODEL, _quantized_t) quantized[FEATURES];
static uint32_t scratch[SCRATCH_WORDS];
static int32_t result[CLASSES + 1];

/* One inference, apart so that its instructions can be told from those of the harness. */
int tk_measured(int entry);
__attribute__((noinline)) int tk_measured(int entry)
{
    return entry == RAW ? JOIN(MODEL, _predict)(raw, scratch)
                        : JOIN(MODEL, _predict_quantized)(quantized, scratch);
}

static void fill_scratch(void)
{
    uint32_t i;
    for (i = 0u; i < SCRATCH_WORDS; i++) {
        ((volatile uint32_t *)scratch)[i] = 0xa5a5a5a5u; /* old content must not matter */
    }
}

static void run_row(int entry)
{
    fill_scratch();
    if (entry == RAW) {
        JOIN(MODEL, _scores)(raw, scratch, result);
    } else {
        JOIN(MODEL, _scores_quantized)(quantized, scratch, result);
    }
    fill_scratch();
    result[CLASSES] = tk_measured(entry);
}

/* Paint the unused stack below, run, and see how far down the paint is gone. */
static uint32_t stack_used(int entry)
{
    volatile uint32_t here = 0u;
    volatile uint32_t *const top = (volatile uint32_t *)((uintptr_t)&here & ~(uintptr_t)3u) - 8;
    uint32_t i;
    for (i = 0u; i < PAINTED_WORDS; i++) {
        top[-(int32_t)i] = PAINT;
    }
    result[CLASSES] = tk_measured(entry);
    for (i = PAINTED_WORDS; i > 0u && top[-(int32_t)(i - 1u)] == PAINT; i--) {
    }
    return 4u * i;
}

int main(void)
{
    const int32_t input = tk_open("in.bin", 0);
    const int32_t output = tk_open("out.bin", 1);
    uint32_t entry;
    uint32_t used = 0u;
    uint32_t size;
    void *row;
    if (input < 0 || output < 0 || tk_read(input, &entry, sizeof entry) != 0u) {
        tk_print("harness: cannot open in.bin and out.bin\n");
        return 2;
    }
    row = entry == QUANTIZED ? (void *)quantized : (void *)raw;
    size = entry == QUANTIZED ? (uint32_t)sizeof quantized : (uint32_t)sizeof raw;
    while (tk_read(input, row, size) == 0u) {
        uint32_t lost;
        if (entry == QUANTIZE) {
            JOIN(MODEL, _quantize)(raw, quantized);
            lost = tk_write(output, quantized, (uint32_t)sizeof quantized);
        } else {
            run_row((int)entry);
            lost = tk_write(output, result, (uint32_t)sizeof result);
        }
        if (lost != 0u) {
            return 2;
        }
    }
    if (entry != QUANTIZE) {
        used = stack_used((int)entry);
    }
    return tk_write(output, &used, sizeof used) != 0u ? 2 : 0;
}
