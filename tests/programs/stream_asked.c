/* A stream that is asked at any time, beside one that is asked where a window ended. */
#include "m.h"
#include <string.h>
int main(void)
{
    static m_state_t asked, state;
    static uint32_t scratch[M_STREAM_SCRATCH_WORDS];
    int32_t early[M_CLASSES], scores[M_CLASSES];
    uint32_t noise = 1u, i;
    int ends = 0;
    m_init(&asked);
    m_init(&state);
    for (i = 0u; i < M_WINDOW + M_DELAY + 999u * M_HOP; i++) {
        m_input_t sample[M_CHANNELS];
        uint32_t c;
        for (c = 0u; c < M_CHANNELS; c++) {
            noise = noise * 1664525u + 1013904223u;
            sample[c] = (m_input_t)(noise >> 16);
        }
        (void)m_push(&asked, sample);
        if ((noise >> 16) % 8u == 0u) {
            m_stream_scores(&asked, scratch, early);
        }
        if (m_push(&state, sample)) {
            ends++;
            m_stream_scores(&state, scratch, scores);
            if ((noise >> 16) % 8u == 0u && memcmp(early, scores, sizeof scores) != 0) {
                return 1;
            }
        } else if (COUNTED_ONCE && ends > 0 && (noise >> 16) % 8u == 0u) {
            m_stream_scores(&state, scratch, early);
            if (memcmp(early, scores, sizeof scores) != 0) {
                return 3;
            }
        }
    }
    return ends == 1000 ? 0 : 2;
}
