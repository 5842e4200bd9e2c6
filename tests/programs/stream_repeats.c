/* Compares the state of a stream with one that is kept, which is a later one after twice as many.
 */
#include "m.h"
#include <string.h>
int main(void)
{
    static m_state_t state, kept;
    static const m_input_t sample[M_CHANNELS];
    uint32_t n, next = 1u;
    m_init(&state);
    for (n = 0u; n < 1u << 25; n++) {
        (void)m_push(&state, sample);
        if (memcmp(&state, &kept, sizeof kept) == 0) {
            return 0;
        }
        if (n == next) {
            kept = state;
            next *= 2u;
        }
    }
    return 1;
}
