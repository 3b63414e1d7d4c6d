/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* This stands for bpf/include/bounds.h on a machine without a verifier. The values are the same. */
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
