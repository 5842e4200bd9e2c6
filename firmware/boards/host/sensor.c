/* A simulated acceleration sensor: prints x, y and z of a movement a hundred times a second. The
 * first argument is the movement: still, shaking or turning. The program ends with its parent
 * process, whose number may be the second argument. */
#define _POSIX_C_SOURCE 200112L

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RATE = 100, GRAVITY = 8192, QUARTER = 64 };

/* A sine of 256 steps and amplitude 4096, from parabolas. */
static int32_t wave(uint32_t phase)
{
    const int32_t place = (int32_t)(phase & (2 * QUARTER - 1)) - QUARTER;
    const int32_t value = 4096 - place * place;

    return (phase & (2 * QUARTER)) != 0 ? -value : value;
}

static int32_t noise(void)
{
    static uint32_t state = 1u;

    state = state * 1664525u + 1013904223u;
    return (int32_t)(state >> 25) - QUARTER;
}

static void print_sample(const char *movement, uint32_t step)
{
    int32_t x = noise();
    int32_t y = noise();
    int32_t z = GRAVITY + noise();

    if (strcmp(movement, "shaking") == 0) {
        x += 2 * wave(step * 23u);
        z += wave(step * 41u);
    } else if (strcmp(movement, "turning") == 0) {
        x += wave(step * 3u);
        y += wave(step * 3u + QUARTER);
    }
    printf("ax:%ld,ay:%ld,az:%ld\n", (long)x, (long)y, (long)z);
    fflush(stdout);
}

int main(int count, char **arguments)
{
    const char *const movement = count > 1 ? arguments[1] : "still";
    const long parent = count > 2 ? strtol(arguments[2], NULL, 10) : (long)getppid();
    struct timespec next;
    uint32_t step;

    clock_gettime(CLOCK_MONOTONIC, &next);
    for (step = 0u; (long)getppid() == parent; step++) { /* end if the parent was killed */
        print_sample(movement, step);
        next.tv_nsec += 1000000000L / RATE;
        if (next.tv_nsec >= 1000000000L) {
            next.tv_nsec -= 1000000000L;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    return 0;
}
