/* Files, text output and exit of a program: by calls of the emulator ("semihosting"), or on this
 * computer by the standard library. start.c of each instruction set implements them. */
#ifndef TK_SEMIHOST_H
#define TK_SEMIHOST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Open a file of the host for reading, or for writing from its beginning. Returns a negative number
 * on failure. */
int32_t tk_open(const char *name, int writing);

/* Read or write `size` bytes. Returns the number of bytes that were NOT transferred. */
uint32_t tk_read(int32_t file, void *data, uint32_t size);
uint32_t tk_write(int32_t file, const void *data, uint32_t size);

/* Print a zero-terminated string. */
void tk_print(const char *text);

/* End the emulator with an exit status. */
void tk_exit(uint32_t status);

/* Exit status after a fault, such as an illegal instruction or address. */
#define TK_EXIT_FAULT 77u

/* Initialise the static data; start.c calls it before main. */
void tk_initialise(void);

#ifdef __cplusplus
}
#endif

#endif
