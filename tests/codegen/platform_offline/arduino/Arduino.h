/* Arduino on an emulated board: the console is the emulator's, time passes with every question. */
#ifndef ARDUINO_H
#define ARDUINO_H

#include <stdint.h>

unsigned long micros();
unsigned long millis();
void delay(unsigned long milliseconds);
int analogRead(uint8_t pin);
static const uint8_t A0 = 14;

struct Console {
    void begin(unsigned long baud);
    void print(const char *text);
    void print(long number);
    int read();
};
extern Console Serial;

void setup();
void loop();

#endif
