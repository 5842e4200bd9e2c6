/* Start-up code and files of the emulated AVR board. The emulator's host watches three registers: a
 * byte written to TEXT is printed; a byte written to DATA goes to out.bin; a byte read from DATA
 * comes from in.bin. STATUS is 1 as long as in.bin has bytes; writing to it ends the program. */
#include "semihost.h"

#include <avr/io.h>

#define TEXT   GPIOR0
#define DATA   GPIOR1
#define STATUS GPIOR2

int main(void);
void tk_reset(void);

/* Symbols of the linker script. */
extern uint8_t __data_start[];
extern uint8_t __data_end[];
extern const __flash uint8_t __data_load_start[];
extern uint8_t __bss_start[];
extern uint8_t __bss_end[];
extern uint8_t tk_stack_top[];

/* The reset vector; there are no interrupts. */
__asm__(".section .vectors, \"ax\"\n"
        "    jmp tk_entry\n"
        ".globl tk_entry\n"
        "tk_entry:\n"
        "    clr r1\n"
        "    out __SREG__, r1\n"
        "    ldi r28, lo8(tk_stack_top)\n"
        "    ldi r29, hi8(tk_stack_top)\n"
        "    out __SP_H__, r29\n"
        "    out __SP_L__, r28\n"
        "    jmp tk_reset\n"
        ".text\n");

void tk_initialise(void)
{
    volatile uint8_t *to = __data_start;
    const __flash uint8_t *from = __data_load_start;
    while (to != __data_end) {
        *to++ = *from++;
    }
    for (to = __bss_start; to != __bss_end;) {
        *to++ = 0u;
    }
}

void tk_reset(void)
{
    tk_initialise();
    tk_exit((uint32_t)main());
}

int32_t tk_open(const char *name, int writing)
{
    (void)name; /* there is only one input and one output file */
    return writing;
}

uint32_t tk_read(int32_t file, void *data, uint32_t size)
{
    uint8_t *byte = (uint8_t *)data;
    (void)file;
    for (; size != 0u && STATUS != 0u; --size) {
        *byte++ = DATA;
    }
    return size;
}

uint32_t tk_write(int32_t file, const void *data, uint32_t size)
{
    const uint8_t *byte = (const uint8_t *)data;
    (void)file;
    for (; size != 0u; --size) {
        DATA = *byte++;
    }
    return 0u;
}

void tk_print(const char *text)
{
    while (*text != '\0') {
        TEXT = (uint8_t)*text++;
    }
}

void tk_exit(uint32_t status)
{
    for (;;) {
        STATUS = (uint8_t)status;
    }
}
