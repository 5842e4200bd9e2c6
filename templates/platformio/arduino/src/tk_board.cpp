/* SPDX-License-Identifier: Apache-2.0 */
/* Console and timer of the Arduino framework. */
#include "tk_board.h"

#include <Arduino.h>

extern "C" void tk_board_start(void)
{
    Serial.begin(115200);
}

extern "C" void tk_board_print(const char *text)
{
    Serial.print(text);
}

extern "C" uint32_t tk_board_ticks(void)
{
    return (uint32_t)micros();
}

extern "C" uint32_t tk_board_elapsed(uint32_t earlier)
{
    return (uint32_t)micros() - earlier;
}

extern "C" uint32_t tk_board_ticks_per_microsecond(void)
{
    return 1;
}
