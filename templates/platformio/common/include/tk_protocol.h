/* SPDX-License-Identifier: Apache-2.0 */
/* Answers commands on the console: the protocol of MLPerf Tiny devices, with a few more commands.
 * Blanks separate the words of a command, and '%' ends it. An answer ends with the line "m-ready"; an
 * error is a line "e-[...]". Type "help%" in a serial monitor. */
#ifndef TK_PROTOCOL_H
#define TK_PROTOCOL_H

#ifdef __cplusplus
extern "C" {
#endif

/* Read the console and answer complete commands. Call it repeatedly; it does not wait. Returns 1 if
 * any command has arrived since the start, else 0. It uses the memory of the self-test. */
int tk_protocol_poll(void);

#ifdef __cplusplus
}
#endif

#endif
