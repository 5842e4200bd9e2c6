#include "m.h"
static m_state_t state;
static uint32_t scratch[M_SCRATCH_WORDS];
static m_input_t frame[M_HEIGHT * M_WIDTH * M_CHANNELS];
int main(void)
{
    int32_t whole[M_CLASSES], lines[M_CLASSES];
    uint32_t noise = 1u, i, turn, y;
    m_init(&state);
    for (turn = 0u; turn < 3u; turn++) {
        for (i = 0u; i < sizeof frame; i++) {
            noise = noise * 1664525u + 1013904223u;
            frame[i] = (m_input_t)(noise >> 24);
        }
        for (y = 0u; y < M_HEIGHT; y++) {
            if (m_line(&state, frame + y * M_WIDTH * M_CHANNELS) != (y + 1u == M_HEIGHT)) {
                return 1;
            }
        }
        m_scores(frame, scratch, whole);
        m_stream_scores(&state, scratch, lines);
        for (i = 0u; i < M_CLASSES; i++) {
            if (whole[i] != lines[i]) {
                return 2;
            }
        }
        if (m_stream_predict(&state, scratch) != m_predict(frame, scratch)) {
            return 3;
        }
    }
    return 0;
}
