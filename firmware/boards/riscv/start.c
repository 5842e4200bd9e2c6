/* Start-up code and semihosting of the emulated RISC-V board. */
#include "semihost.h"

#include "initialise.h"

enum { OPEN = 1, WRITE0 = 4, WRITE = 5, READ = 6, EXIT_EXTENDED = 0x20 };
enum { APPLICATION_EXIT = 0x20026, OPEN_READ = 1, OPEN_WRITE = 5 };

int main(void);
void tk_main(void);
void tk_fault(void);

/* The word is "csrw mtvec, t0", which assemblers for RV32IMC without Zicsr refuse. */
__asm__(".section .vectors, \"ax\"\n"
        ".globl tk_reset\n"
        "tk_reset:\n"
        "    la sp, tk_stack_top\n"
        "    la t0, tk_trap\n"
        "    .word 0x30529073\n"
        "    call tk_main\n"
        "    .balign 4\n"
        "tk_trap:\n"
        "    la sp, tk_stack_top\n"
        "    call tk_fault\n"
        ".text\n");

/* The three uncompressed instructions of a semihosting call. */
__asm__(".text\n"
        ".balign 16\n"
        ".globl tk_semihosting_call\n"
        "tk_semihosting_call:\n"
        "    .option push\n"
        "    .option norvc\n"
        "    slli x0, x0, 0x1f\n"
        "    ebreak\n"
        "    srai x0, x0, 7\n"
        "    ret\n"
        "    .option pop\n");
int32_t tk_semihosting_call(uint32_t operation, const void *argument);

static uint32_t length(const char *text)
{
    uint32_t n = 0u;
    while (((const volatile char *)text)[n] != '\0') {
        n++;
    }
    return n;
}

int32_t tk_open(const char *name, int writing)
{
    volatile uint32_t block[3];
    block[0] = (uint32_t)(uintptr_t)name;
    block[1] = writing ? (uint32_t)OPEN_WRITE : (uint32_t)OPEN_READ;
    block[2] = length(name);
    return tk_semihosting_call(OPEN, (const void *)block);
}

static uint32_t transfer(uint32_t operation, int32_t file, uintptr_t data, uint32_t size)
{
    volatile uint32_t block[3];
    block[0] = (uint32_t)file;
    block[1] = (uint32_t)data;
    block[2] = size;
    return (uint32_t)tk_semihosting_call(operation, (const void *)block);
}

uint32_t tk_read(int32_t file, void *data, uint32_t size)
{
    return transfer(READ, file, (uintptr_t)data, size);
}

uint32_t tk_write(int32_t file, const void *data, uint32_t size)
{
    return transfer(WRITE, file, (uintptr_t)data, size);
}

void tk_print(const char *text)
{
    (void)tk_semihosting_call(WRITE0, text);
}

void tk_exit(uint32_t status)
{
    volatile uint32_t block[2];
    block[0] = APPLICATION_EXIT;
    block[1] = status;
    for (;;) {
        (void)tk_semihosting_call(EXIT_EXTENDED, (const void *)block);
    }
}

void tk_main(void)
{
    tk_initialise();
    tk_exit((uint32_t)main());
}

void tk_fault(void)
{
    tk_exit(TK_EXIT_FAULT);
}
