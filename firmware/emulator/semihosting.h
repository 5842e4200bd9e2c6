/* Semihosting: a program on an emulated core asks the emulator to work on files of the host.
 *
 * Arm cores (Arm's semihosting specification) and RISC-V cores, which took it over. The operation
 * numbers are those of the specification; `argument` points to its block of words. */
#ifndef SEMIHOSTING_H
#define SEMIHOSTING_H

#include <stdint.h>

enum {
    SEMIHOSTING_OPEN = 0x01,
    SEMIHOSTING_CLOSE = 0x02,
    SEMIHOSTING_WRITE0 = 0x04,
    SEMIHOSTING_WRITE = 0x05,
    SEMIHOSTING_READ = 0x06,
    SEMIHOSTING_GET_CMDLINE = 0x15,
    SEMIHOSTING_EXIT_EXTENDED = 0x20
};

#if defined(__riscv)
/* In start_riscv.S, as the call has to be aligned. */
uintptr_t semihosting(uintptr_t operation, const volatile void *argument);
#else
static inline uintptr_t semihosting(uintptr_t operation, const volatile void *argument)
{
    register uintptr_t result __asm__("r0") = operation;
    register const volatile void *block __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(result) : "r"(block) : "memory");
    return result;
}
#endif

/* Returns a handle, or -1. Mode 1 reads bytes, 5 writes them. */
static inline intptr_t semihosting_open(const char *name, uintptr_t mode)
{
    volatile uintptr_t block[3];
    uintptr_t length = 0;
    while (name[length] != '\0') {
        ++length;
    }
    block[0] = (uintptr_t)name;
    block[1] = mode;
    block[2] = length;
    return (intptr_t)semihosting(SEMIHOSTING_OPEN, block);
}

/* Returns how many bytes were NOT transferred. */
static inline uintptr_t semihosting_transfer(uintptr_t operation, intptr_t handle,
                                             const volatile void *data, uintptr_t size)
{
    volatile uintptr_t block[3];
    block[0] = (uintptr_t)handle;
    block[1] = (uintptr_t)data;
    block[2] = size;
    return semihosting(operation, block);
}

static inline void semihosting_close(intptr_t handle)
{
    volatile uintptr_t block[1];
    block[0] = (uintptr_t)handle;
    (void)semihosting(SEMIHOSTING_CLOSE, block);
}

static inline void semihosting_print(const char *text)
{
    (void)semihosting(SEMIHOSTING_WRITE0, text);
}

/* Ends the emulator with a status; 0x20026 is "the application has ended". */
static inline void semihosting_exit(int status)
{
    volatile uintptr_t block[2];
    block[0] = 0x20026u;
    block[1] = (uintptr_t)status;
    for (;;) {
        (void)semihosting(SEMIHOSTING_EXIT_EXTENDED, block);
    }
}

#endif
