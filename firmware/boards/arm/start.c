/* Start-up code and semihosting of the emulated Cortex-M boards. */
#include "semihost.h"

#include "initialise.h"

enum { OPEN = 1, WRITE0 = 4, WRITE = 5, READ = 6, EXIT_EXTENDED = 0x20 };
enum { APPLICATION_EXIT = 0x20026, OPEN_READ = 1, OPEN_WRITE = 5 };

extern uint32_t tk_stack_top[];
int main(void);
void tk_reset(void);

static int32_t call(uint32_t operation, const void *argument)
{
    int32_t result;
    __asm__ volatile("mov r0, %1\n mov r1, %2\n bkpt 0xab\n mov %0, r0"
                     : "=r"(result)
                     : "r"(operation), "r"(argument)
                     : "r0", "r1", "memory");
    return result;
}

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
    uint32_t block[3];
    block[0] = (uint32_t)(uintptr_t)name;
    block[1] = writing ? (uint32_t)OPEN_WRITE : (uint32_t)OPEN_READ;
    block[2] = length(name);
    return call(OPEN, block);
}

static uint32_t transfer(uint32_t operation, int32_t file, uintptr_t data, uint32_t size)
{
    uint32_t block[3];
    block[0] = (uint32_t)file;
    block[1] = (uint32_t)data;
    block[2] = size;
    return (uint32_t)call(operation, block);
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
    (void)call(WRITE0, text);
}

void tk_exit(uint32_t status)
{
    uint32_t block[2];
    block[0] = APPLICATION_EXIT;
    block[1] = status;
    for (;;) {
        (void)call(EXIT_EXTENDED, block);
    }
}

/* Enable the FPU. Called before any function that may use its registers. */
static void enable_fpu(void)
{
#if defined(__ARM_FP)
    volatile uint32_t *const cpacr = (volatile uint32_t *)0xe000ed88u;
    *cpacr |= 0x00f00000u;
    __asm__ volatile("dsb\n isb" ::: "memory");
#endif
}

void tk_reset(void)
{
    enable_fpu();
    tk_initialise();
    tk_exit((uint32_t)main());
}

static void fault(void)
{
    tk_exit(TK_EXIT_FAULT);
}

typedef void (*handler_t)(void);

/* Initial stack pointer, reset, then the fourteen exceptions of the core. */
__attribute__((used, section(".vectors"))) static const handler_t vectors[16] = {
    (handler_t)(uintptr_t)tk_stack_top,
    tk_reset,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
    fault,
};
