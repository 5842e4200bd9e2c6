/* Start-up code and semihosting of the emulated Xtensa core (call0 calling convention). */
#include "semihost.h"

#include "initialise.h"

enum { EXIT = 1, READ = 3, WRITE = 4, OPEN = 5 };
enum { OPEN_READ = 0, OPEN_WRITE = 0x601, MODE = 0644, STANDARD_ERROR = 2 };

int main(void);
void tk_main(void);

/* The emulator starts at the beginning of the program. l32r can read only words before itself. */
__asm__(".section .vectors, \"ax\"\n"
        ".balign 4\n"
        ".globl tk_reset\n"
        "tk_reset:\n"
        "    j tk_begin\n"
        ".balign 4\n"
        "tk_stack_literal: .word tk_stack_top\n"
        "tk_main_literal: .word tk_main\n"
        "tk_begin:\n"
        "    l32r a1, tk_stack_literal\n"
        "    l32r a0, tk_main_literal\n"
        "    callx0 a0\n"
        ".text\n");

static int32_t call(int32_t operation, uintptr_t first, uintptr_t second, uintptr_t third)
{
    register int32_t a2 __asm__("a2") = operation;
    register uintptr_t a3 __asm__("a3") = first;
    register uintptr_t a4 __asm__("a4") = second;
    register uintptr_t a5 __asm__("a5") = third;
    __asm__ volatile("simcall" : "+r"(a2), "+r"(a3) : "r"(a4), "r"(a5) : "memory");
    return a2;
}

int32_t tk_open(const char *name, int writing)
{
    return call(OPEN, (uintptr_t)name, writing ? (uintptr_t)OPEN_WRITE : (uintptr_t)OPEN_READ,
                MODE);
}

uint32_t tk_read(int32_t file, void *data, uint32_t size)
{
    const int32_t done = call(READ, (uintptr_t)file, (uintptr_t)data, size);
    return done < 0 ? size : size - (uint32_t)done;
}

uint32_t tk_write(int32_t file, const void *data, uint32_t size)
{
    const int32_t done = call(WRITE, (uintptr_t)file, (uintptr_t)data, size);
    return done < 0 ? size : size - (uint32_t)done;
}

void tk_print(const char *text)
{
    uint32_t n = 0u;
    while (((const volatile char *)text)[n] != '\0') {
        n++;
    }
    (void)tk_write(STANDARD_ERROR, text, n);
}

void tk_exit(uint32_t status)
{
    for (;;) {
        (void)call(EXIT, status, 0u, 0u);
    }
}

void tk_main(void)
{
    tk_initialise();
    tk_exit((uint32_t)main());
}
