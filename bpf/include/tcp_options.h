/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP options (RFC 9293 3.1, RFC 7323, RFC 2018): any legal layout, in any order. */
#ifndef BATON_INCLUDE_TCP_OPTIONS_H
#define BATON_INCLUDE_TCP_OPTIONS_H

#include "include/bounds.h"
#include "include/kernel.h"

enum {
	OPTION_END = 0,
	OPTION_NOP = 1,
	OPTION_MSS = 2,
	OPTION_WSCALE = 3,
	OPTION_SACK_PERMITTED = 4,
	OPTION_TIMESTAMPS = 8,
	OPTIONS_MAX = 40,
	OPTIONS_BUFFER = 64,       /* a power of two, larger than the end of any option */
	WSCALE_MAX = 14,           /* RFC 7323, 2.3 */
	WSCALE_NONE = 15,
	MSS_DEFAULT = 536,         /* RFC 9293, 3.7.1: when the option is missing */
};

struct raw_options {
	u8 bytes[OPTIONS_BUFFER];
};

struct tcp_options {
	u16 mss;
	u8 wscale;                 /* 0 .. WSCALE_MAX, or WSCALE_NONE */
	bool sack;
	bool timestamps;
	u32 tsval;                 /* host order */
	u32 tsecr;
	/*
	 * Where the parser is. In memory, the verifier does not follow its value, so all layouts look alike to it; in a
	 * register it would walk each layout separately.
	 */
	volatile u8 next;
};

static __always_inline u32 option_word(const u8 *at)
{
	return (u32)at[0] << 24 | (u32)at[1] << 16 | (u32)at[2] << 8 | at[3];
}

/*
 * Parses the first `bytes` bytes of `raw`. Returns false if an option's length is impossible. An unknown option is
 * skipped, and a known one with a wrong length is ignored.
 *
 * It is not static: the verifier checks a global function once, by itself, and then forgets which options it found.
 * Inlined, the verifier would go on with every combination of them.
 */
__noinline int parse_options(const struct raw_options *raw, u32 bytes, struct tcp_options *o)
{
	if (!raw || !o || bytes > OPTIONS_MAX)
		return false;

	o->next = 0;
	o->mss = MSS_DEFAULT;
	o->wscale = WSCALE_NONE;
	o->sack = false;
	o->timestamps = false;
	o->tsval = 0;
	o->tsecr = 0;

	for (int i = 0; i < OPTIONS_MAX; i++) {
		u32 at = o->next;
		if (at >= bytes || at >= OPTIONS_MAX)
			return true;
		const u8 *option = raw->bytes + BOUNDED(at, 0, OPTIONS_MAX - 1);
		u8 kind = option[0];
		if (kind == OPTION_END)
			return true;
		if (kind == OPTION_NOP) {
			o->next = at + 1;
			continue;
		}
		u8 size = option[1];
		if (size < 2 || at + size > bytes)
			return false;
		if (kind == OPTION_MSS && size == 4) {
			o->mss = (u16)option[2] << 8 | option[3];
		} else if (kind == OPTION_WSCALE && size == 3) {
			o->wscale = option[2] > WSCALE_MAX ? WSCALE_MAX : option[2];
		} else if (kind == OPTION_SACK_PERMITTED && size == 2) {
			o->sack = true;
		} else if (kind == OPTION_TIMESTAMPS && size == 10) {
			o->timestamps = true;
			o->tsval = option_word(option + 2);
			o->tsecr = option_word(option + 6);
		}
		o->next = at + size;
	}
	return true;
}

#endif
