/* Runs a generated model over a file of inputs, for `tinykernel verify`.
 *
 *     harness raw|quantized|quantize INPUT OUTPUT
 *
 * INPUT is rows of raw or quantized values. For every row OUTPUT gets the scores of all classes,
 * then the label that the predict function gives, all as int32; or, with `quantize`, the quantized
 * row. The header and the prefix of the model come from the command line of the compiler:
 * -DPREFIX_HEADER='"gesture.h"' -DPREFIX=gesture -DPREFIX_UPPER=GESTURE.
 */
#include <stdio.h>
#include <string.h>

#include PREFIX_HEADER

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define FEATURES    JOIN(PREFIX_UPPER, _FEATURES)
#define CLASSES     JOIN(PREFIX_UPPER, _CLASSES)

static JOIN(PREFIX, _input_t) raw[FEATURES];
static JOIN(PREFIX, _quantized_t) quantized[FEATURES];
static uint32_t scratch[JOIN(PREFIX_UPPER, _SCRATCH_WORDS)];
static int32_t result[CLASSES + 1];

/* Read, run and write rows to the end of the input; returns 0 on success. */
static int run(int from_raw, FILE *input, FILE *output)
{
    void *const row = from_raw ? (void *)raw : (void *)quantized;
    const size_t row_bytes = from_raw ? sizeof raw : sizeof quantized;
    size_t got;
    while ((got = fread(row, 1, row_bytes, input)) == row_bytes) {
        /* Old scratch must not matter: fill it with a pattern that would show. */
        memset(scratch, 0xa5, sizeof scratch);
        if (from_raw) {
            JOIN(PREFIX, _scores)(raw, scratch, result);
            result[CLASSES] = JOIN(PREFIX, _predict)(raw, scratch);
        } else {
            JOIN(PREFIX, _scores_quantized)(quantized, scratch, result);
            result[CLASSES] = JOIN(PREFIX, _predict_quantized)(quantized, scratch);
        }
        if (fwrite(result, sizeof result, 1, output) != 1) {
            return 1;
        }
    }
    return got != 0 || ferror(input);
}

/* Read raw rows and write what the quantize function makes of them; returns 0 on success. */
static int quantize(FILE *input, FILE *output)
{
    size_t got;
    while ((got = fread(raw, 1, sizeof raw, input)) == sizeof raw) {
        JOIN(PREFIX, _quantize)(raw, quantized);
        if (fwrite(quantized, sizeof quantized, 1, output) != 1) {
            return 1;
        }
    }
    return got != 0 || ferror(input);
}

int main(int argc, char **argv)
{
    FILE *input;
    FILE *output;
    int failed;
    if (argc != 4) {
        fputs("usage: harness raw|quantized|quantize INPUT OUTPUT\n", stderr);
        return 2;
    }
    input = fopen(argv[2], "rb");
    output = fopen(argv[3], "wb");
    if (input == NULL || output == NULL) {
        fputs("harness: cannot open the files\n", stderr);
        return 2;
    }
    if (strcmp(argv[1], "quantize") == 0) {
        failed = quantize(input, output);
    } else {
        failed = run(strcmp(argv[1], "raw") == 0, input, output);
    }
    fclose(input);
    return fclose(output) != 0 || failed;
}
