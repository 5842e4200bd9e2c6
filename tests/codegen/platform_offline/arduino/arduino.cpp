/* See Arduino.h. One pass through loop() is all. */
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
