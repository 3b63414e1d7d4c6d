/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/include/bounds.h as a machine without a verifier has it: the same values. */
#ifndef BATON_INCLUDE_BOUNDS_H
#define BATON_INCLUDE_BOUNDS_H

#define BOUNDED(value, least, most)                                                          \
	({                                                                                   \
		unsigned long long bounded_ = (value);                                       \
		bounded_ > (most) ? (most) : bounded_ < (least) ? (least) : bounded_;        \
	})
#define WRAPPED(value, size) ((unsigned long long)(value) & ((size) - 1))
#define READ_ANEW() ((void)0)

#endif
