/* Bits of raw values, offsets and multipliers and the top level in; levels out. */
#include <stdio.h>
#include <string.h>
#include "tk_float.h"
int main(void)
{
    uint32_t row[4];
    float x, y, factor;
    while (fread(row, 4, 4, stdin) == 4) {
        uint32_t level;
        memcpy(&x, row, 4);
        memcpy(&y, row + 1, 4);
        memcpy(&factor, row + 2, 4);
        level = tk_float_level(x, y, factor, row[3]);
        fwrite(&level, 4, 1, stdout);
    }
    return 0;
}
