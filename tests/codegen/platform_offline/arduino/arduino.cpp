/* See Arduino.h. One pass through loop() is all where it ends with a delay; else a thousand readings
 * are. */
#include "Arduino.h"

#include "semihost.h"

Console Serial;

void Console::begin(unsigned long)
{
}

void Console::print(const char *text)
{
    tk_print(text);
}

unsigned long micros()
{
    static unsigned long now;
    return now += 7;
}

int analogRead(uint8_t)
{
    static int readings;
    if (++readings > 1000) {
        tk_exit(0);
    }
    return readings * 37 % 1024;
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
    }
}
