/* SPDX-License-Identifier: Apache-2.0 */
/* Answers commands on the console: the protocol of the devices of MLPerf Tiny, and commands beside
 * it. A command ends with '%', its words are divided by blanks, and its answer ends with the line
 * "m-ready". What is wrong is a line "e-[...]". Type "help%" in a serial monitor. */
#ifndef TK_PROTOCOL_H
#define TK_PROTOCOL_H

#ifdef __cplusplus
extern "C" {
#endif

/* Takes what has arrived, and answers the commands that are complete; call it again and again.
 * Does not wait. Returns 1 if a command has arrived since the start, else 0. It uses the memory of
 * the self-test. */
int tk_protocol_poll(void);

#ifdef __cplusplus
}
#endif

#endif
