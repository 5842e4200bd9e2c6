/* SPDX-License-Identifier: Apache-2.0 */
/* Phase windows: 32 components of v to one word of bits, bit = 1 when the component is OUTSIDE its
 * window (z = -1).
 *
 * phase = (scale * v << TK_PHASE_SHIFT) + (start << 24) mod 2^32 is compared with width << 24. The
 * low 24 bits of start and width are zero, so only the top byte of the product counts: bytes are
 * added and compared. With windows of half a turn the top bit is the result.
 *
 * Order (the same for all variants, chosen for four bytes at a time): the 32 components of a word
 * stand in 16 words of v. Group r = 0..7 of the table has the parameters of
 *   byte 0: low half of word r + 8, byte 1: low half of word r,
 *   byte 2: high half of word r + 8, byte 3: high half of word r,
 * and component (group r, byte k) becomes bit 8 k + 7 - r. In other words: the low halves of words
 * 0..15 become bits 15..0, the high halves bits 31..16.
 *
 * The kernel is tk_compare(bits, v, table, count, scale): `count` words of bits from 16 * `count`
 * words v; `bits` may be v itself. `scale` is the one of the block, shifted by TK_PHASE_SHIFT, and
 * counts only when the table has no scales. */
#ifndef TK_WINDOWS_H
#define TK_WINDOWS_H

#include "tk_words.h"

/* Words of a group of the table: where the starts and the widths are, and how many there are. */
#if defined(TK_SCALE)
#define TK_START_WORD 0u
#else
#define TK_START_WORD 1u
#endif
#if defined(TK_EVEN_START)
#define TK_WIDTH_WORD TK_START_WORD
#define TK_STARTS     (TK_EVEN_START * 0x0101u + TK_ODD_START * 0x01010000u) /* of every group */
#else
#define TK_WIDTH_WORD (TK_START_WORD + 1u)
#endif
#if defined(TK_WIDTH)
#define TK_GROUP_WORDS TK_WIDTH_WORD
#define TK_HALF_TURN   (TK_WIDTH == 128u)
#else
#define TK_GROUP_WORDS (TK_WIDTH_WORD + 1u)
#define TK_HALF_TURN   0
#endif
#define TK_WINDOW_WORDS (8u * TK_GROUP_WORDS) /* table words for 32 components */

/* No table, and the top bit of a phase is the result. */
#define TK_TOP_BITS (TK_GROUP_WORDS == 0 && TK_HALF_TURN)

#if TK_DSP
#include "tk_windows_dsp.h"
#else
#include "tk_windows_portable.h"
#endif

#endif
