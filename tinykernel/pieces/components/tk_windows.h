/* SPDX-License-Identifier: Apache-2.0 */
/* Phase windows: turn 32 projections v into a word of bits. A bit is 1 if the component is OUTSIDE
 * its window (z = -1).
 *
 * phase = (scale * v << TK_PHASE_SHIFT) + (start << 24) mod 2^32 is compared with width << 24. The
 * low 24 bits of start and width are zero, so only the top byte of the product matters: bytes are
 * added and compared. If the width is half a turn, the result is the top bit of the phase.
 *
 * Order (the same for all variants; it allows processing four bytes at a time): the 32 components
 * of a word are in 16 words of v. Group r = 0..7 of the table has the parameters of byte 0: low
 * half of word r + 8, byte 1: low half of word r, byte 2: high half of word r + 8, byte 3: high
 * half of word r, and the component of group r and byte k becomes bit 8 k + 7 - r. So the low
 * halves of words 0..15 become bits 15..0, the high halves bits 31..16.
 *
 * tk_compare(bits, v, table, count, scale) computes `count` words of bits from 16 * `count` words
 * of v; `bits` may be `v`. `scale` is that of the block, shifted by TK_PHASE_SHIFT. It is used only
 * if the table has no scales. */
#ifndef TK_WINDOWS_H
#define TK_WINDOWS_H

#include "tk_words.h"

/* Indices of the starts and widths in a group of the table, and the words of a group. */
#if defined(TK_SCALE)
#define TK_START_WORD 0u
#else
#define TK_START_WORD 1u
#endif
#if defined(TK_EVEN_START) || TK_WINDOW_BITS == 4
#define TK_WIDTH_WORD TK_START_WORD
#else
#define TK_WIDTH_WORD (TK_START_WORD + 1u)
#endif
#if defined(TK_EVEN_START)
#define TK_STARTS (TK_EVEN_START * 0x0101u + TK_ODD_START * 0x01010000u) /* for every group */
#endif
#if defined(TK_WIDTH) && TK_WINDOW_BITS == 4
#define TK_GROUP_WORDS 1u /* of two groups */
#elif defined(TK_WIDTH)
#define TK_GROUP_WORDS TK_WIDTH_WORD
#else
#define TK_GROUP_WORDS (TK_WIDTH_WORD + 1u)
#endif
#if defined(TK_WIDTH)
#define TK_HALF_TURN (TK_WIDTH == 128u)
#else
#define TK_HALF_TURN 0
#endif

/* Table words of a group, from it to the next one, and of 32 components. Two groups can share one.
 */
#if defined(TK_WIDTH) && TK_WINDOW_BITS == 4
#define TK_NEXT_WORDS   0u
#define TK_WINDOW_WORDS 4u
#else
#define TK_NEXT_WORDS   TK_GROUP_WORDS
#define TK_WINDOW_WORDS (8u * TK_GROUP_WORDS)
#endif
#define TK_PAIR_WORDS (TK_NEXT_WORDS + TK_GROUP_WORDS)

/* Starts and widths of four bits from a word or a byte of the table, in the high halves of bytes:
 * of a component or, without widths, the starts of groups 2i and 2i + 1. */
#define TK_HIGH_HALVES(packed) ((packed) & 0xf0f0f0f0u)
#define TK_LOW_HALVES(packed)  ((uint32_t)(packed) << 4 & 0xf0f0f0f0u)

/* There is no table, and the result is the top bit of a phase. */
#define TK_TOP_BITS (TK_GROUP_WORDS == 0 && TK_HALF_TURN)

#if TK_DSP
#include "tk_windows_dsp.h"
#else
#include "tk_windows_portable.h"
#endif

#endif
