/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32 of the tables of a model, as in ZIP and PNG (reflected, polynomial 0x04c11db7).
 *
 * It works bit by bit: it runs once, at start-up, and a lookup table would take flash. */
#ifndef TK_CHECK_H
#define TK_CHECK_H

#include "tk_contract.h"

#define TK_CRC_BEGIN 0xffffffffu

/* Update the CRC register with n bytes; the CRC is ~ of the last value. The pointer is volatile so
 * that memory is read: the compiler knows the values of constants. */
TK_SHARED uint32_t tk_crc(uint32_t crc, const TK_FLASH void *bytes, uint32_t n)
{
    const volatile TK_FLASH uint8_t *const data = (const volatile TK_FLASH uint8_t *)bytes;
    uint32_t i;
    for (i = 0u; i != n; ++i) {
        int bit;
        crc ^= data[i];
        for (bit = 0; bit != 8; ++bit) {
            crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1u)));
        }
    }
    return crc;
}

#endif
