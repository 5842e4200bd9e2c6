/* The functions of semihost.h on this computer, by the standard library. */
#include "semihost.h"

#include <stdio.h>
#include <stdlib.h>

/* The input and the output file. */
static FILE *files[2];

int32_t tk_open(const char *name, int writing)
{
    files[writing] = fopen(name, writing ? "wb" : "rb");
    return files[writing] == NULL ? -1 : writing;
}

uint32_t tk_read(int32_t file, void *data, uint32_t size)
{
    return size - (uint32_t)fread(data, 1u, size, files[file]);
}

uint32_t tk_write(int32_t file, const void *data, uint32_t size)
{
    return size - (uint32_t)fwrite(data, 1u, size, files[file]);
}

void tk_print(const char *text)
{
    (void)fputs(text, stderr);
}

void tk_exit(uint32_t status)
{
    exit((int)status);
}
