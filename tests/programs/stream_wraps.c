/* A stream whose running counts, which only grow, stand just below the end of their type. */
#include "m.c"
#include <string.h>
int main(void)
{
    enum { N = M_WINDOW + 9 * M_HOP };
    static m_state_t state;
    static m_scratch_t scratch;
    static m_input_t samples[N * M_CHANNELS];
    int32_t stream[M_CLASSES], window[M_CLASSES];
    uint32_t noise = 1u, i;
    int ends = 0;
    for (i = 0u; i < N * M_CHANNELS; i++) {
        noise = noise * 1664525u + 1013904223u;
        samples[i] = (m_input_t)(noise >> 16);
    }
    m_init(&state);
    for (i = tk_kernels_1.running; i < tk_kernels_1.counts; i++) {
        ((uint32_t *)&state)[i] = 0xfefefefeu;
    }
    for (i = 0u; i < N; i++) {
        if (m_push(&state, samples + i * M_CHANNELS)) {
            ends++;
            m_stream_scores(&state, scratch, stream);
            m_scores(samples + (i + 1 - M_WINDOW) * M_CHANNELS, scratch, window);
            if (memcmp(stream, window, sizeof window) != 0) {
                return 1;
            }
        }
    }
    return ends == 10 ? 0 : 2;
}
