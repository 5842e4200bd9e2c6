/* See Arduino.h. One pass through loop() is all where it ends with a delay; else a thousand readings
 * are, of a sensor or of the console, on which nothing ever comes. */
#include "Arduino.h"

#include "PDM.h"

#include "semihost.h"

Console Serial;

void Console::begin(unsigned long)
{
}

void Console::print(const char *text)
{
    tk_print(text);
}

void Console::print(long number)
{
    char text[24];
    char *at = text + sizeof text - 1;
    unsigned long rest = number < 0 ? 0ul - (unsigned long)number : (unsigned long)number;

    *at = '\0';
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (number < 0) {
        *--at = '-';
    }
    tk_print(at);
}

unsigned long micros()
{
    static unsigned long now;
    return now += 7;
}

unsigned long millis()
{
    return micros() / 1000;
}

static int count_readings()
{
    static int readings;
    if (++readings > 1000) {
        tk_exit(0);
    }
    return readings;
}

int Console::read()
{
    (void)count_readings();
    return -1;
}

int analogRead(uint8_t)
{
    return count_readings() * 37 % 1024;
}

Microphone PDM;

void Microphone::onReceive(void (*heard)())
{
    callback = heard;
}

int Microphone::begin(int channels, int rate)
{
    return channels == 1 && rate == 16000;
}

void Microphone::setGain(int)
{
}

int Microphone::read(void *block, unsigned long size)
{
    int16_t *value = static_cast<int16_t *>(block);
    const unsigned long count = size < 32 ? size / 2 : 16; /* as many as a pass of the sketch takes */

    for (unsigned long i = 0; i < count; i++) {
        *value++ = (int16_t)(count_readings() * 37 % 1024);
    }
    return (int)(2 * count);
}

void delay(unsigned long)
{
    tk_exit(0);
}

int main()
{
    setup();
    for (;;) {
        loop();
        PDM.hear();
    }
}
