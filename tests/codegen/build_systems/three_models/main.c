/* Three models of different shapes in one program; on a Cortex-M one of them also in an interrupt,
 * while the others run. */
#include <stdint.h>
#include <stdio.h>

#include "gesture_selftest.h"
#include "tap.h"
#include "tap_selftest.h"
#include "tap_vectors.h"
#include "wake_selftest.h"

static volatile unsigned interrupts;
static volatile unsigned differences;

static void print(const char *text)
{
    (void)fputs(text, stdout);
}

#if defined(__arm__)
#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

void SysTick_Handler(void);

void SysTick_Handler(void)
{
    static tap_scratch_t scratch;
    int32_t scores[TAP_CLASSES];
    unsigned vector = interrupts % TAP_VECTORS;
    unsigned i;

    tap_scores(tap_vector_inputs[vector], scratch, scores);
    for (i = 0; i < TAP_CLASSES; i++) {
        differences += scores[i] != tap_vector_scores[vector][i];
    }
    interrupts++;
}

static void start_interrupts(void)
{
    REGISTER(0xE000E014u) = 100000u - 1u; /* a period of the timer: longer than one inference */
    REGISTER(0xE000E018u) = 0u;
    REGISTER(0xE000E010u) = 7u;
}
#else
static void start_interrupts(void)
{
    interrupts = 40u;
}
#endif

int main(void)
{
    int failed = tap_selftest(print, NULL);

    start_interrupts();
    do {
        failed |= gesture_selftest(print, NULL) | wake_selftest(print, NULL);
    } while (interrupts < 40u);
    printf("%u interrupts, %u differences\n", interrupts, differences);
    return failed | (differences != 0u);
}
