/* Samples in blocks of any length, beside samples that are pushed one by one. */
#include "m.h"
#include <string.h>
enum { MOST = 3 * M_HOP + 2, ALL = M_WINDOW + M_DELAY + 40 * M_HOP };
int main(void)
{
    static m_state_t blocks, state;
    static uint32_t scratch[M_STREAM_SCRATCH_WORDS];
    static m_input_t samples[MOST * M_CHANNELS];
    uint32_t noise = 1u, done = 0u, i;
    int ends = 0;
    m_init(&blocks);
    m_init(&state);
    while (done < ALL) {
        OUT one[WIDTH] = {0}, all[(MOST / M_HOP + 1) * WIDTH];
        uint32_t n, ended, margin, expected = 0u;
        (void)margin;
        noise = noise * 1664525u + 1013904223u;
        n = (noise >> 16) % (MOST + 1u);
        for (i = 0u; i < n * M_CHANNELS; i++) {
            noise = noise * 1664525u + 1013904223u;
            samples[i] = (m_input_t)(noise >> 16);
        }
        ended = m_push_block(&blocks, samples, n, scratch, all);
        if (ended > n / M_HOP + 1u) {
            return 3;
        }
        for (i = 0u; i < n; i++) {
            if (m_push(&state, samples + i * M_CHANNELS)) {
                DECIDE;
                if (memcmp(one, all + expected++ * WIDTH, sizeof one) != 0) {
                    return 1;
                }
            }
        }
        if (expected != ended) {
            return 2;
        }
        ends += (int)ended;
        done += n;
    }
    return ends > 40 ? 0 : 4;
}
