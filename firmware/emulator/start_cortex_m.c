/* Start-up of a Cortex-M core in an emulator: vectors, data, zeroed memory, main. */
#include <stdint.h>

#include "semihosting.h"

extern uint32_t board_stack_top[];
extern uint32_t board_data_image[];
extern uint32_t board_data_start[];
extern uint32_t board_data_end[];
extern uint32_t board_bss_start[];
extern uint32_t board_bss_end[];

int main(void);
void board_reset(void);
void board_fault(void);

/* A fault, for instance an instruction that the core lacks, must not look like a result. */
void board_fault(void)
{
    semihosting_print("FAULT\n");
    semihosting_exit(70);
}

void board_reset(void)
{
    const uint32_t *image = board_data_image;
    uint32_t *word;
    for (word = board_data_start; word != board_data_end; ++word) {
        *word = *image++;
    }
    for (word = board_bss_start; word != board_bss_end; ++word) {
        *word = 0u;
    }
    semihosting_exit(main());
}

typedef void (*board_handler)(void);

/* The stack and the first fifteen exceptions: reset, then faults. */
static const struct {
    uint32_t *stack;
    board_handler handlers[15];
} board_vectors __attribute__((section(".vectors"), used)) = {
    board_stack_top,
    {board_reset, board_fault, board_fault, board_fault, board_fault, board_fault, board_fault,
     board_fault, board_fault, board_fault, board_fault, board_fault, board_fault, board_fault,
     board_fault}};
