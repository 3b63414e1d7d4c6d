/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Turns: two processors may have a packet each that begins a request on the same connection, or that goes on with its
 * chunked body, as when user space lets one go and its client sends it again. Both decide by what the entry says; one of
 * them, the first, notes what it has decided. The other has decided by what is no longer so, and its packet comes again.
 */
#ifndef BATON_CS_TURN_H
#define BATON_CS_TURN_H

#include "../clock.h"
#include "../kernel.h"

enum {
	TURN_SHIFT = 24,           /* of the turn in the word that ends with it */
	TURN_TICKS = 2,            /* longer than any turn takes */
};

_Static_assert(__builtin_offsetof(struct tcb, missing) % sizeof(u32) == 0 &&
		       __builtin_offsetof(struct tcb, turn) - __builtin_offsetof(struct tcb, missing) == TURN_SHIFT / 8,
	       "the turn is the last byte of a word");

/* What to compare with later, taken before anything of the entry is read. */
static __always_inline u32 glance_at(const struct tcb *tcb)
{
	return *(const volatile u32 *)&tcb->missing;
}

/*
 * From now on no other processor notes a request here, or how far a body has come. False if one does, or has done since the glance. User space may
 * write back an entry that it has read in the middle of a turn, which then never ends.
 */
static __always_inline bool take_turn(struct tcb *tcb, u32 glance)
{
	u32 turn = glance >> TURN_SHIFT, rest = glance << 8 >> 8;

	if (turn & 1 && tick_now() - tcb->seen < TURN_TICKS)
		return false;
	u32 mine = rest | ((turn + 1) | 1) << TURN_SHIFT;
	return __sync_val_compare_and_swap((u32 *)&tcb->missing, glance, mine) == glance;
}

static __always_inline void end_turn(struct tcb *tcb)
{
	tcb->turn++;
}

#endif
