/* An application with a peer, or with -DEMPTY without it: the difference is what the peer takes. */
#include "peer.h"

peer_input_t input[PEER_INPUTS];
volatile int32_t label;

int main(void)
{
    __asm__ volatile("" : : "r"(input) : "memory");
#ifdef EMPTY
    label = 0;
#else
    label = peer_predict(input);
#endif
    return 0;
}
