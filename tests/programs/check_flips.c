/* The tables are written to here: the source is compiled without its `const`. */
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#define const
#include "gesture.c"
static int missed(unsigned char *bytes, unsigned n)
{
    unsigned i;
    int count = 0;
    for (i = 0u; i < n; i += i + 9u < n ? 8u : 1u) {
        bytes[i] ^= (unsigned char)(1u << i % 8u);
        count += gesture_check() == 0;
        bytes[i] ^= (unsigned char)(1u << i % 8u);
    }
    return count;
}
int main(void)
{
    int count = gesture_check();
    CALLS
    return count != 0;
}
