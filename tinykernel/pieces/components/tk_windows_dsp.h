/* SPDX-License-Identifier: Apache-2.0 */
/* Phase windows with packed instructions: see tk_windows.h. */
#ifndef TK_WINDOWS_DSP_H
#define TK_WINDOWS_DSP_H

#if TK_TOP_BITS

/* Two components: shift their bits into the halves of `bits` from above. */
TK_INLINE uint32_t tk_outside2(uint32_t bits, uint32_t word, uint32_t scale)
{
    /* The low halves are the upper 16 bits of the phases. */
    const uint32_t low = tk_smlawb(scale, word, TK_EVEN_START << 8);
    const uint32_t high = tk_smlawt(scale, word, TK_ODD_START << 8);
    uint32_t phases;
    TK_PKHBT(phases, low, high, 16);
    return (phases & TK_HALVES) | bits >> 1;
}

TK_SHARED void tk_compare(uint32_t *bits, const uint32_t *v, const uint32_t *table, uint32_t count,
                          uint32_t scale)
{
    uint32_t *const end = bits + count;
    (void)table;
    do {
        const uint32_t *next = v + 16;
        uint32_t word = 0u;
        do {
            next -= 4;
            word = tk_outside2(word, next[3], scale);
            word = tk_outside2(word, next[2], scale);
            word = tk_outside2(word, next[1], scale);
            word = tk_outside2(word, next[0], scale);
        } while (next != v);
        v += 16;
        *bits++ = word;
    } while (bits != end);
}

#else

/* Top bytes of the phases of two products scale * v, in bytes 1 and 3; bytes 0 and 2 are
 * unspecified. `scales` holds two scales, or the shifted one of the block. */
TK_INLINE uint32_t tk_top_bytes(uint32_t scales, uint32_t word)
{
    uint32_t phases;
#if defined(TK_SCALE)
    TK_PKHBT(phases, tk_smulwb(scales, word), tk_smulwt(scales, word), 16);
#else
    uint32_t low;
    uint32_t high;
    tk_multiply_halves(&low, &high, scales, word);
#if TK_PHASE_SHIFT < 16
    low >>= 16 - TK_PHASE_SHIFT;
#else
    low <<= TK_PHASE_SHIFT - 16;
#endif
    TK_PKHBT(phases, low, high, TK_PHASE_SHIFT);
#endif
    return phases;
}

/* Starts of the four components of a group, and their widths; `odd` is 1 for every other group. */
TK_INLINE uint32_t tk_starts4(const uint32_t *table, uint32_t odd)
{
    (void)table;
    (void)odd;
#if defined(TK_EVEN_START)
    return TK_STARTS;
#elif TK_WINDOW_BITS == 4 && defined(TK_WIDTH)
    return odd != 0u ? TK_LOW_HALVES(table[0]) : TK_HIGH_HALVES(table[0]);
#elif TK_WINDOW_BITS == 4
    return TK_HIGH_HALVES(table[TK_START_WORD]);
#else
    return table[TK_START_WORD];
#endif
}

TK_INLINE uint32_t tk_widths4(const uint32_t *table)
{
    (void)table;
#if defined(TK_WIDTH)
    return TK_WIDTH * 0x01010101u;
#elif TK_WINDOW_BITS == 4
    return TK_LOW_HALVES(table[TK_WIDTH_WORD]);
#else
    return table[TK_WIDTH_WORD];
#endif
}

/* Four components: shift their bits into the four bytes of `bits` from above. */
TK_INLINE uint32_t tk_outside4(uint32_t bits, uint32_t first, uint32_t second,
                               const uint32_t *table, uint32_t odd_group, uint32_t scale,
                               uint32_t zero)
{
#if defined(TK_SCALE)
    const uint32_t odd = tk_top_bytes(scale, first) & 0xff00ff00u;
    const uint32_t even = tk_top_bytes(scale, second);
#else
    const uint32_t odd = tk_top_bytes(tk_uxtb16_odd(table[0]), first) & 0xff00ff00u;
    const uint32_t even = tk_top_bytes(tk_uxtb16(table[0]), second);
#endif
    const uint32_t phases = tk_uadd8(tk_uxtab16_odd(odd, even), tk_starts4(table, odd_group));
    (void)scale;
    (void)zero;
    (void)table;
#if TK_HALF_TURN
    return (phases & 0x80808080u) | bits >> 1;
#else
    return tk_not_less8(phases, tk_widths4(table), zero) | bits >> 1;
#endif
}

TK_SHARED void tk_compare(uint32_t *bits, const uint32_t *v, const uint32_t *table, uint32_t count,
                          uint32_t scale)
{
    uint32_t *const end = bits + count;
    uint32_t zero = 0u;
    TK_HIDE(zero);
    do {
        const uint32_t *const first = v;
        uint32_t word = 0u;
        v += 8;
        table += TK_WINDOW_WORDS;
        do {
            v -= 2;
            table -= TK_PAIR_WORDS;
            word = tk_outside4(word, v[1], v[9], table + TK_NEXT_WORDS, 1u, scale, zero);
            word = tk_outside4(word, v[0], v[8], table, 0u, scale, zero);
        } while (v != first);
        v += 16;
        table += TK_WINDOW_WORDS;
        TK_HIDE(v); /* otherwise there are three pointers instead of two */
        *bits++ = word;
    } while (bits != end);
}

#endif

#endif
