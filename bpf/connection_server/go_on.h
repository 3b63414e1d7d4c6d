/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Client's packets that come back in a data server's answer. The answer tells where the connection is, so the packet
 * is taken out of the message and goes through this program as if it had just come. Otherwise the client would have to
 * send it again after each takeover.
 *
 * The frame has come from a data server, so its Ethernet addresses do not lead back to the client, and nothing can be
 * answered by them. A packet that would need an answer is dropped, and its client has to send it again.
 */
#ifndef BATON_CONNECTION_SERVER_GO_ON_H
#define BATON_CONNECTION_SERVER_GO_ON_H

#include "connection_server/carried.h"
#include "lccp/seal.h"
#include "xdp/packet.h"

/* What handlers of messages return in place of an XDP action. */
enum {
	GO_ON_WITH_CARRIED = 100,
};

/*
 * Holds the connection server's own program, for a tail call. The map is not pinned: where no daemon holds it, it is
 * empty, and the carried packet is dropped.
 */
MAP(once_more, PROG_ARRAY, 1, u32, u32);

/*
 * Takes the client's packet out of the message that carries it, and marks it as carried. False if that failed; then
 * the frame must be dropped.
 */
static __always_inline bool take_carried_out(struct packet *p)
{
	struct ethhdr *eth = (void *)(long)p->ctx->data;
	struct ethhdr kept;

	if ((void *)(eth + 1) > (void *)(long)p->ctx->data_end)
		return false;
	kept = *eth;
	/* Clients are on the LAN of the first interface, whichever interface another node's frames come by. */
	if (p->settings->interfaces > 1)
		__builtin_memcpy(kept.h_dest, p->settings->macs[0], ETH_ALEN);
	if (bpf_xdp_adjust_head(p->ctx, LCCP_OVERHEAD_BYTES) || bpf_xdp_adjust_meta(p->ctx, -(int)sizeof(u32)))
		return false;
	eth = (void *)(long)p->ctx->data;
	u32 *meta = (void *)(long)p->ctx->data_meta;
	if ((void *)(eth + 1) > (void *)(long)p->ctx->data_end || (void *)(meta + 1) > (void *)(long)p->ctx->data)
		return false;
	*eth = kept;
	*meta = CARRIED_METADATA;
	return true;
}

static __always_inline int go_on_with_carried(struct packet *p)
{
	if (take_carried_out(p))
		bpf_tail_call(p->ctx, &once_more, 0);
	return XDP_DROP;
}

#endif
