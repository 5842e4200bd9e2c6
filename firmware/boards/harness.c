/* Runs a generated model on a file of inputs, on this computer and on emulated boards.
 *
 * in.bin has sections. A section has the entry (0 raw inputs, 1 quantized inputs, 2 quantization
 * only, 3 samples of a stream) and the number of rows, both uint32, then the rows. out.bin has for
 * every section its rows, int32: the scores of all classes and the label of the predict function;
 * or the quantized inputs; or, of a regressor (-DVALUES=1), the values and whether a second call
 * differs. Of a stream it has a row for every window that ends, followed by the event if the model
 * has events. A section ends with the bytes of stack that the last row used, uint32; 0 if that was
 * not measured.
 *
 * Options of the compiler name the model: -DMODEL_HEADER=gesture.h -DMODEL=gesture
 * -DMODEL_UPPER=GESTURE, and say what it has:
 *   -DQUANTIZED_ENTRIES=1, -DSTREAM_ENTRIES=1  functions for quantized inputs, for streams
 *   -DDECISIONS=1  decision, margin and confidence follow the label; the functions of decision and
 *                  confidence are measured
 *   -DNOVELTY=1    novelty and whether the row is novel follow these; the latter is measured, too
 *   -DNOVELTY=2    the same with prototypes: one function computes decision and novelty
 *   -DONE_CALL=1   only the call whose instructions are counted, without scores
 *   -DPAINT_STACK=1  measure the stack; on boards only, as on a computer the memory below the stack
 *                    may not be written */
#include "semihost.h"

#define TEXT_(a) #a
#define TEXT(a)  TEXT_(a)
#include TEXT(MODEL_HEADER)

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define FEATURES    JOIN(MODEL_UPPER, _FEATURES)
#ifdef VALUES
#define CLASSES          JOIN(MODEL_UPPER, _OUTPUTS)
#define SCORES           JOIN(MODEL, _predict)
#define QUANTIZED_SCORES JOIN(MODEL, _predict_quantized)
#define STREAM_SCORES    JOIN(MODEL, _stream_predict)
#else
#define CLASSES          JOIN(MODEL_UPPER, _CLASSES)
#define SCORES           JOIN(MODEL, _scores)
#define QUANTIZED_SCORES JOIN(MODEL, _scores_quantized)
#define STREAM_SCORES    JOIN(MODEL, _stream_scores)
#endif
/* 0 if the header does not define it: the model has no events. */
#define EVENTS        JOIN(MODEL_UPPER, _NO_EVENT)
#define SCRATCH_WORDS JOIN(MODEL_UPPER, _SCRATCH_WORDS)

#define CHANNELS JOIN(MODEL_UPPER, _CHANNELS)
#ifdef NUMBERS
#define INPUT raw, raw + JOIN(MODEL_UPPER, _WINDOW) * CHANNELS
#else
#define INPUT raw
#endif

enum { RAW, QUANTIZED, QUANTIZE, STREAM };

#ifndef ONE_CALL
#define ONE_CALL 0
#endif

/* One row at a time, as small boards have little memory. */
static JOIN(MODEL, _input_t) raw[FEATURES];
#ifdef QUANTIZED_ENTRIES
static JOIN(MODEL, _quantized_t) quantized[FEATURES];
#endif
static uint32_t scratch[SCRATCH_WORDS];
#ifdef DECISIONS
#ifdef NOVELTY
static int32_t result[CLASSES + 6];
#else
static int32_t result[CLASSES + 4];
#endif
static uint32_t margin;
static volatile uint8_t sure;
#if defined(NOVELTY) && NOVELTY == 1
static volatile int novel;
#endif
#else
static int32_t result[CLASSES + 1];
#endif
#ifdef VALUES
static int32_t again[CLASSES];

/* Whether the values of the second call differ from those of the first one. */
static int32_t differs(void)
{
    uint32_t i;
    for (i = 0u; i < CLASSES; i++) {
        if (again[i] != result[i]) {
            return 1;
        }
    }
    return 0;
}
#endif

#ifdef DECISIONS
/* Compute what depends on the scores alone. */
static void judge_scores(void)
{
    result[CLASSES + 3] = JOIN(MODEL, _confidence)(result);
#if defined(NOVELTY) && NOVELTY == 1
    result[CLASSES + 4] = JOIN(MODEL, _novelty)(result);
    result[CLASSES + 5] = JOIN(MODEL, _is_novel)(result);
#endif
}

#if defined(NOVELTY) && NOVELTY == 2
static int32_t far;

/* Store the novelty by prototypes. If decision or margin differ from those of the other function,
 * store an impossible decision. */
static void judge_far(int label)
{
    if (label != (int)result[CLASSES + 1] || (int32_t)margin != result[CLASSES + 2]) {
        result[CLASSES + 1] = -77;
    }
    result[CLASSES + 4] = far;
    result[CLASSES + 5] = far > JOIN(MODEL_UPPER, _NOVELTY_THRESHOLD);
}
#endif
#endif

/* One inference, in a function of its own so that its instructions can be counted. */
int tk_measured(uint32_t entry);
__attribute__((noinline)) int tk_measured(uint32_t entry)
{
#ifdef VALUES
#ifdef QUANTIZED_ENTRIES
    if (entry == QUANTIZED) {
        QUANTIZED_SCORES(quantized, scratch, again);
        return 0;
    }
#endif
    (void)entry;
    SCORES(INPUT, scratch, again);
    return 0;
#else
#ifdef QUANTIZED_ENTRIES
    if (entry == QUANTIZED) {
        return JOIN(MODEL, _predict_quantized)(quantized, scratch);
    }
#endif
    (void)entry;
#ifdef DECISIONS
    sure = JOIN(MODEL, _confidence)(result);
#if defined(NOVELTY) && NOVELTY == 2
    return JOIN(MODEL, _decide_novelty)(INPUT, scratch, &margin, &far);
#else
#ifdef NOVELTY
    novel = JOIN(MODEL, _is_novel)(result);
#endif
    return JOIN(MODEL, _decide)(INPUT, scratch, &margin);
#endif
#else
    return JOIN(MODEL, _predict)(INPUT, scratch);
#endif
#endif
}

static void fill_scratch(void)
{
    uint32_t i;
    for (i = 0u; i < SCRATCH_WORDS; i++) {
        ((volatile uint32_t *)scratch)[i] =
            0xa5a5a5a5u; /* results must not depend on old content */
    }
}

static void run_row(uint32_t entry)
{
    fill_scratch();
    if (ONE_CALL) {
        result[CLASSES] = tk_measured(entry);
        return;
    }
#ifdef QUANTIZED_ENTRIES
    if (entry == QUANTIZED) {
        QUANTIZED_SCORES(quantized, scratch, result);
    } else
#endif
    {
        SCORES(INPUT, scratch, result);
    }
    fill_scratch();
#ifdef DECISIONS
    if (entry == RAW) {
        result[CLASSES] = JOIN(MODEL, _predict)(INPUT, scratch);
        fill_scratch();
        result[CLASSES + 1] = tk_measured(entry);
    } else {
        result[CLASSES] = tk_measured(entry);
        result[CLASSES + 1] = JOIN(MODEL, _decide_scores)(result, &margin);
    }
    result[CLASSES + 2] = (int32_t)margin;
    judge_scores();
#if defined(NOVELTY) && NOVELTY == 2
#ifdef QUANTIZED_ENTRIES
    if (entry == QUANTIZED) {
        far = JOIN(MODEL, _novelty_quantized)(quantized, result);
        judge_far((int)result[CLASSES + 1]);
        return;
    }
#endif
    fill_scratch();
    judge_far(JOIN(MODEL, _decide)(INPUT, scratch, &margin));
#endif
#else
    result[CLASSES] = tk_measured(entry);
#ifdef VALUES
    result[CLASSES] = differs();
#endif
#endif
}

#ifdef PAINT_STACK
#if defined(__AVR__)
enum { PAINTED_WORDS = 96 };
#else
enum { PAINTED_WORDS = 512 };
#endif
#define PAINT 0x5ca1ab1eu

/* Paint the unused stack, run, and see how much paint was overwritten. Not inlined, so that `here`
 * is near the end of a small frame, which the paint does not reach. */
static uint32_t stack_used(uint32_t entry);
__attribute__((noinline)) static uint32_t stack_used(uint32_t entry)
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
#else
static uint32_t stack_used(uint32_t entry)
{
    (void)entry;
    return 0u;
}
#endif

#ifdef STREAM_ENTRIES
static JOIN(MODEL, _state_t) state;

/* One call for each sample, also in a function of its own. */
int tk_measured_push(void);
__attribute__((noinline)) int tk_measured_push(void)
{
    return JOIN(MODEL, _push)(&state, raw);
}

#if EVENTS
/* The event, by either function in turn; `result` holds the scores. */
int32_t tk_measured_event(uint32_t sample);
__attribute__((noinline)) int32_t tk_measured_event(uint32_t sample)
{
    if (sample / JOIN(MODEL_UPPER, _HOP) % 2u != 0u) {
        return JOIN(MODEL, _event_scores)(&state, result);
    }
    fill_scratch();
    return JOIN(MODEL, _event)(&state, scratch);
}
#endif

#ifdef NUMBERS
#define SAMPLE (CHANNELS + JOIN(MODEL_UPPER, _NUMBERS))
#else
#define SAMPLE CHANNELS
#endif
/* Samples that are read at a time: a call of an emulator takes as long as many of them. */
#define AHEAD (SAMPLE < 64u ? 64u / SAMPLE : 1u)
static JOIN(MODEL, _input_t) ahead[AHEAD * SAMPLE];

/* Copy sample i of so many to `raw`. Returns 0 on success. */
static int take_sample(uint32_t i, uint32_t samples, int32_t input)
{
    const uint32_t n = samples - i < AHEAD ? samples - i : AHEAD;
    uint32_t k;
    if (i % AHEAD == 0u && tk_read(input, ahead, (uint32_t)(n * SAMPLE * sizeof raw[0])) != 0u) {
        return 1;
    }
    for (k = 0u; k < SAMPLE; k++) {
        raw[k] = ahead[i % AHEAD * SAMPLE + k];
    }
    return 0;
}

/* Push samples, and write a row for each window that ends. Returns 0 on success. */
static int run_stream(uint32_t samples, int32_t input, int32_t output)
{
#if EVENTS
    int32_t event;
#endif
    uint32_t i;
    for (i = 0u; i < sizeof state / sizeof(uint32_t); i++) {
        ((volatile uint32_t *)&state)[i] = 0xa5a5a5a5u;
    }
    JOIN(MODEL, _init)(&state);
    for (i = 0u; i < samples; i++) {
        if (take_sample(i, samples, input) != 0) {
            return 1;
        }
        if (tk_measured_push() != 0) {
#ifdef NUMBERS
            JOIN(MODEL, _numbers)(&state, raw + CHANNELS);
#endif
            fill_scratch();
            STREAM_SCORES(&state, scratch, result);
            fill_scratch();
#ifdef VALUES
            STREAM_SCORES(&state, scratch, again);
            result[CLASSES] = differs();
#else
            result[CLASSES] = JOIN(MODEL, _stream_predict)(&state, scratch);
#ifdef DECISIONS
            fill_scratch();
            result[CLASSES + 1] = JOIN(MODEL, _stream_decide)(&state, scratch, &margin);
            result[CLASSES + 2] = (int32_t)margin;
            judge_scores();
#if defined(NOVELTY) && NOVELTY == 2
            fill_scratch();
            judge_far(JOIN(MODEL, _stream_decide_novelty)(&state, scratch, &margin, &far));
#endif
#endif
#endif
            if (tk_write(output, result, (uint32_t)sizeof result) != 0u) {
                return 1;
            }
#if EVENTS
            event = tk_measured_event(i);
            if (tk_write(output, &event, (uint32_t)sizeof event) != 0u) {
                return 1;
            }
#endif
        }
    }
    return 0;
}
#endif

/* Read, run and write a row. Returns 0 on success. */
static int run_one(uint32_t entry, int32_t input, int32_t output)
{
#ifdef QUANTIZED_ENTRIES
    void *const row = entry == QUANTIZED ? (void *)quantized : (void *)raw;
    const uint32_t size = (uint32_t)(entry == QUANTIZED ? sizeof quantized : sizeof raw);
#else
    void *const row = (void *)raw;
    const uint32_t size = (uint32_t)sizeof raw;
#endif
    if (tk_read(input, row, size) != 0u) {
        return 1;
    }
#ifdef QUANTIZED_ENTRIES
    if (entry == QUANTIZE) {
        JOIN(MODEL, _quantize)(raw, quantized);
        return tk_write(output, quantized, (uint32_t)sizeof quantized) != 0u;
    }
#endif
    run_row(entry);
    return tk_write(output, result, (uint32_t)sizeof result) != 0u;
}

/* Run the rows of a section. Returns 0 on success. */
static int run_section(uint32_t entry, uint32_t rows, int32_t input, int32_t output)
{
    uint32_t used = 0u;
    uint32_t i;
#ifdef STREAM_ENTRIES
    if (entry == STREAM) {
        return run_stream(rows, input, output) != 0 ||
               tk_write(output, &used, (uint32_t)sizeof used) != 0u;
    }
#endif
    for (i = 0u; i < rows; i++) {
        if (run_one(entry, input, output) != 0) {
            return 1;
        }
    }
    if (!ONE_CALL && entry != QUANTIZE && rows > 0u) {
        used = stack_used(entry);
    }
    return tk_write(output, &used, (uint32_t)sizeof used) != 0u;
}

int main(void)
{
    const int32_t input = tk_open("in.bin", 0);
    const int32_t output = tk_open("out.bin", 1);
    uint32_t section[2];
    if (input < 0 || output < 0) {
        tk_print("harness: cannot open in.bin and out.bin\n");
        return 2;
    }
    while (tk_read(input, section, (uint32_t)sizeof section) == 0u) {
        if (run_section(section[0], section[1], input, output) != 0) {
            tk_print("harness: cannot read in.bin or write out.bin\n");
            return 2;
        }
    }
    return 0;
}
