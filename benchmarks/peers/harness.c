/* Runs a peer over the rows of in.bin and writes its labels, int32, to out.bin. */
#include "peer.h"
#include "semihost.h"

static peer_input_t row[PEER_INPUTS];

/* Apart, so that the instructions of a decision can be told from those of the harness. */
int32_t peer_measured(void);
__attribute__((noinline)) int32_t peer_measured(void)
{
    return peer_predict(row);
}

int main(void)
{
    const int32_t input = tk_open("in.bin", 0);
    const int32_t output = tk_open("out.bin", 1);
    if (input < 0 || output < 0) {
        return 2;
    }
    while (tk_read(input, row, (uint32_t)sizeof row) == 0u) {
        const int32_t label = peer_measured();
        if (tk_write(output, &label, (uint32_t)sizeof label) != 0u) {
            return 2;
        }
    }
    return 0;
}
