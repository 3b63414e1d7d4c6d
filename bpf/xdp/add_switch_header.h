/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A client's frame on its way to another connection server: see xdp/switch_header.h, which takes it out again. */
#ifndef BATON_XDP_ADD_SWITCH_HEADER_H
#define BATON_XDP_ADD_SWITCH_HEADER_H

#include "xdp/packet.h"

/*
 * Whether the frame fits inside another Ethernet header. A client that keeps to the MSS it was told sends none that
 * does not.
 */
static __always_inline bool fits_in_frame(const struct packet *p)
{
	return p->frame.ip_bytes + sizeof(struct ethhdr) <= p->settings->mss + MTU_LESS_MSS;
}

/*
 * Puts the client's frame inside another Ethernet header, addressed to `to`. False if there is no room in front of the
 * frame.
 */
static __always_inline bool put_inside(struct packet *p, const struct data_server *to)
{
	if (bpf_xdp_adjust_head(p->ctx, -(int)sizeof(struct ethhdr)))
		return false;
	struct ethhdr *outer = (void *)(long)p->ctx->data;
	if ((void *)(outer + 1) > (void *)(long)p->ctx->data_end)
		return false;
	address_frame(outer, to);
	outer->h_proto = bpf_htons(ETHER_SWITCHED);
	return true;
}

#endif
