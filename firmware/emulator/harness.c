/* Runs a generated model over a file of inputs on an emulated core. The command line of the
 * program, the files and the macros are those of the harness for the host, host/harness.c:
 *
 *     PROGRAM raw|quantized|quantize INPUT OUTPUT
 */
#include "semihosting.h"

#include PREFIX_HEADER

#define JOIN_(a, b)   a##b
#define JOIN(a, b)    JOIN_(a, b)
#define FEATURES      JOIN(PREFIX_UPPER, _FEATURES)
#define CLASSES       JOIN(PREFIX_UPPER, _CLASSES)
#define SCRATCH_WORDS JOIN(PREFIX_UPPER, _SCRATCH_WORDS)

static JOIN(PREFIX, _input_t) raw[FEATURES];
static JOIN(PREFIX, _quantized_t) quantized[FEATURES];
static uint32_t scratch[SCRATCH_WORDS];
static int32_t result[CLASSES + 1];
static char command_line[512];

int main(void);
void board_exit(int status);

void board_exit(int status)
{
    semihosting_exit(status);
}

/* Words of the command line, separated by blanks; returns how many there are. */
static int split(char *text, char **words, int most)
{
    int count = 0;
    while (*text != '\0' && count < most) {
        words[count++] = text;
        while (*text != '\0' && *text != ' ') {
            ++text;
        }
        if (*text == ' ') {
            *text++ = '\0';
        }
    }
    return count;
}

static void fill_scratch(void)
{
    uint32_t i;
    for (i = 0; i < SCRATCH_WORDS; ++i) {
        scratch[i] = 0xa5a5a5a5u; /* old scratch must not matter */
    }
}

/* One row, already read, to what is written. */
static void run(char mode)
{
    fill_scratch();
    if (mode == 'r') {
        JOIN(PREFIX, _scores)(raw, scratch, result);
        fill_scratch();
        result[CLASSES] = JOIN(PREFIX, _predict)(raw, scratch);
    } else {
        JOIN(PREFIX, _scores_quantized)(quantized, scratch, result);
        fill_scratch();
        result[CLASSES] = JOIN(PREFIX, _predict_quantized)(quantized, scratch);
    }
}

/* Rows from file to file; 'r' raw, 'q' quantized, 'Q' quantize. Returns the exit status. */
static int stream(char mode, intptr_t input, intptr_t output)
{
    void *const row = mode == 'q' ? (void *)quantized : (void *)raw;
    const uintptr_t row_bytes = mode == 'q' ? sizeof quantized : sizeof raw;
    void *const written = mode == 'Q' ? (void *)quantized : (void *)result;
    const uintptr_t written_bytes = mode == 'Q' ? sizeof quantized : sizeof result;
    while (semihosting_transfer(SEMIHOSTING_READ, input, row, row_bytes) == 0) {
        if (mode == 'Q') {
            JOIN(PREFIX, _quantize)(raw, quantized);
        } else {
            run(mode);
        }
        if (semihosting_transfer(SEMIHOSTING_WRITE, output, written, written_bytes) != 0) {
            return 1;
        }
    }
    return 0;
}

int main(void)
{
    volatile uintptr_t block[2];
    char *words[4];
    char mode;
    intptr_t input;
    intptr_t output;
    int status;
    block[0] = (uintptr_t)command_line;
    block[1] = sizeof command_line - 1;
    if (semihosting(SEMIHOSTING_GET_CMDLINE, block) != 0 || split(command_line, words, 4) != 4) {
        semihosting_print("usage: PROGRAM raw|quantized|quantize INPUT OUTPUT\n");
        return 2;
    }
    mode = words[1][0];
    if (mode == 'q' && words[1][7] == 'e' && words[1][8] == '\0') {
        mode = 'Q';
    }
    input = semihosting_open(words[2], 1);
    output = semihosting_open(words[3], 5);
    if (input < 0 || output < 0) {
        semihosting_print("harness: cannot open the files\n");
        return 2;
    }
    status = stream(mode, input, output);
    semihosting_close(input);
    semihosting_close(output);
    return status;
}
