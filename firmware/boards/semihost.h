/* Files, text and the exit of a program: calls of the emulator ("semihosting"), or on this computer
 * of the standard library.
 * Each instruction set implements them in its start.c. */
#ifndef TK_SEMIHOST_H
#define TK_SEMIHOST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Open a file of the host for reading, or for writing from its beginning; negative: impossible. */
int32_t tk_open(const char *name, int writing);

/* Read or write `size` bytes; returns the number of bytes that were NOT transferred. */
uint32_t tk_read(int32_t file, void *data, uint32_t size);
uint32_t tk_write(int32_t file, const void *data, uint32_t size);

/* Print a text that ends in a zero byte. */
void tk_print(const char *text);

/* End the emulator with an exit status. */
void tk_exit(uint32_t status);

/* Exit status of a program that the processor stopped: an illegal instruction, a wrong address. */
#define TK_EXIT_FAULT 77u

/* Initialise the static data; start.c calls it before main. */
void tk_initialise(void);

#ifdef __cplusplus
}
#endif

#endif
