/* SPDX-License-Identifier: Apache-2.0 */
/* Console and timer of the Arduino framework. */
#include "tk_board.h"

#include <Arduino.h>

#include "tk_cycles.h"

extern "C" void tk_board_start(void)
{
    Serial.begin(115200);
    tk_cycles_start();
}

extern "C" void tk_board_print(const char *text)
{
    Serial.print(text);
}

extern "C" int tk_board_read(void)
{
    return Serial.read();
}

extern "C" uint32_t tk_board_cycles(void)
{
#if defined(ESP32) || defined(ESP8266)
    return (uint32_t)ESP.getCycleCount();
#else
    return tk_cycles();
#endif
}

extern "C" uint32_t tk_board_microseconds(void)
{
    return (uint32_t)micros();
}
