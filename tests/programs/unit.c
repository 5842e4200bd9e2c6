/* The harness of a model, with names and files of its own. */
#include "semihost.h"
static int32_t open_own(const char *name, int writing)
{
    (void)name;
    return tk_open(writing ? "OWN/out.bin" : "OWN/in.bin", writing);
}
#define tk_open           open_own
#define main              OWN_main
#define tk_measured       OWN_measured
#define tk_measured_push  OWN_measured_push
#define tk_measured_event OWN_measured_event
int main(void);
#include "harness.c"
