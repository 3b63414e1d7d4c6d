/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bounds that every kernel's verifier sees, whatever the compiler does. A check in C is not enough: the compiler may
 * compare a copy of the value, or the value less one, or leave out a mask because it has already proved the range. The
 * verifier does not follow that proof to the register that the helper gets. So these macros are a few instructions of
 * assembly on that very register, which the compiler cannot take apart.
 *
 * Every length that is passed to a helper, and every offset into a buffer that is not a constant, goes through one of
 * them. They never change a value that is in range; the caller has to refuse any other value first.
 */
#ifndef BATON_INCLUDE_BOUNDS_H
#define BATON_INCLUDE_BOUNDS_H

#include "include/kernel.h"

/* Returns `value`, and shows the verifier that it is from `least` to `most`, which are constants. */
#define BOUNDED(value, least, most)                                              \
	({                                                                       \
		u64 bounded_ = (value);                                          \
		asm volatile("if %[it] <= %[highest] goto +1\n\t"                \
			     "%[it] = %[highest]\n\t"                            \
			     "if %[it] >= %[lowest] goto +1\n\t"                 \
			     "%[it] = %[lowest]"                                 \
			     : [it] "+r"(bounded_)                               \
			     : [lowest] "i"(least), [highest] "i"(most));        \
		bounded_;                                                        \
	})

/* Returns `value`, and shows the verifier that it is less than `size`, a constant and a power of two. */
#define WRAPPED(value, size)                                                     \
	({                                                                       \
		u64 wrapped_ = (value);                                          \
		_Static_assert(((size) & ((size) - 1)) == 0, "a power of two");  \
		asm volatile("%[it] &= %[mask]"                                  \
			     : [it] "+r"(wrapped_)                               \
			     : [mask] "i"((size) - 1));                          \
		wrapped_;                                                        \
	})

/*
 * Makes the program read fields of the context again behind this. Otherwise the compiler may keep the 32 bits of
 * `data_end` that it has read before and copy them from register to register, and the verifier does not know such a
 * copy as the end of a packet.
 */
#define READ_ANEW() asm volatile("" : : : "memory")

#endif
