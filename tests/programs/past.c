#include "semihost.h"
#include "gesture_field.h"

static gesture_past_t pasts[8];

int main(void)
{
    const int32_t input = tk_open("in.bin", 0);
    const int32_t output = tk_open("out.bin", 1);
    int32_t number, mean, found[2];
    int i;

    while (tk_read(input, &number, (uint32_t)sizeof number) == 0u) {
        for (i = 0; i < 8; i++) {
            if (number == -65535) { /* the start of a stream */
                gesture_past_reset(&pasts[i]);
            }
            mean = gesture_past_update(&pasts[i], number, i + 1);
            found[0] = number - mean;
            found[1] = gesture_over(number, mean);
            if (tk_write(output, found, (uint32_t)sizeof found) != 0u) {
                return 2;
            }
        }
    }
    return 0;
}
