/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What user space, or a data server's answer, says of a packet that goes through this program once more. */
#ifndef BATON_CS_VERDICT_H
#define BATON_CS_VERDICT_H

#include "packet.h"

static __always_inline bool read_verdict(struct xdp_md *ctx, struct verdict *verdict)
{
	const struct verdict *at = (void *)(long)ctx->data_meta;

	if ((void *)(at + 1) > (void *)(long)ctx->data || at->mark != VERDICT_MARK)
		return false;
	*verdict = *at;
	return true;
}

/* The same if it says where the packet goes. */
static __always_inline bool read_lead(struct xdp_md *ctx, struct verdict *verdict)
{
	return read_verdict(ctx, verdict) && !(verdict->flags & (VERDICT_BEHIND | VERDICT_READ | VERDICT_ASK | VERDICT_UNJUDGED));
}

enum {
	VERDICT_IS_THERE = 1 << 16, /* beside enum verdict_flag */
};

/* What its verdict says of the packet, if it has one. Global, so that it is verified by itself. */
__noinline u32 flags_of_verdict(struct xdp_md *ctx)
{
	struct verdict verdict;

	if (!read_verdict(ctx, &verdict))
		return 0;
	return verdict.flags & VERDICT_UNJUDGED ? verdict.flags & VERDICT_CARRIED : VERDICT_IS_THERE | verdict.flags;
}

/* It has come back by a data server, and can be answered to nobody: see go_on.h. */
static __always_inline bool was_carried(struct packet *p)
{
	return flags_of_verdict(p->ctx) & VERDICT_CARRIED;
}

/* User space has a head that begins so, and may have to tell its client that some of it has come. */
static __always_inline bool asks_what_has_come(struct packet *p)
{
	return flags_of_verdict(p->ctx) & VERDICT_ASK;
}

/* User space has let it wait behind a packet, and lets it go now. */
static __always_inline bool waited_behind(struct packet *p)
{
	return flags_of_verdict(p->ctx) & VERDICT_BEHIND;
}

/* User space has read all of the head that this packet is of. */
static __always_inline bool was_read(struct packet *p)
{
	return flags_of_verdict(p->ctx) & VERDICT_READ;
}

#endif
