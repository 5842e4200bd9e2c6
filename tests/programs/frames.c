/* Frames of every kind: none, a few registers, more than one immediate operand can hold. */

#include <stdint.h>
#define APART __attribute__((noinline))
#ifdef __xtensa__ /* has its floats in ROM */
typedef int real_t;
#else
typedef float real_t;
#endif
volatile int sink;

APART int leaf(int x)
{
    return x * 3 + sink;
}

APART int loop(const int *x, int n)
{
    int s = 0;
    int i;
    for (i = 0; i < n; i++) {
        s += leaf(x[i] * x[n - 1 - i]);
    }
    return s;
}

APART int large(int n)
{
    int b[300];
    int i;
    for (i = 0; i < n; i++) {
        b[i] = i * n;
    }
    return loop(b, n);
}

APART int larger(int n)
{
    int b[3000];
    int i;
    for (i = 0; i < n; i++) {
        b[i] = i * n;
    }
    return loop(b, n);
}

APART int root(int n, real_t f)
{
    return n > 2 ? large(n) : larger(n) + (f > (real_t)1.5);
}

int main(void)
{
    sink = root(sink, (real_t)sink);
    return 0;
}
