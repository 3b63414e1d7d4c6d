/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client's frame on its way from the switch to a connection server: whole, inside another Ethernet
 * header. So the connection server knows from which MAC address it came, answers there by itself, and
 * the switch need not remember anybody. Nothing on the LAN sees a client's MAC address at a wrong port.
 */
#ifndef BATON_XDP_SWITCH_HEADER_H
#define BATON_XDP_SWITCH_HEADER_H

#include "abi/abi.h"
#include "include/kernel.h"

/*
 * Takes the frame out, if it is such a one, as if it had come here by itself; `bytes` is the frame's length, before
 * and after. False if it holds none.
 */
static __always_inline bool take_out(struct xdp_md *ctx, const struct settings *s, u32 *bytes)
{
	struct ethhdr *outer = (void *)(long)ctx->data;
	u8 own[ETH_ALEN];

	if ((void *)(outer + 1) > (void *)(long)ctx->data_end ||
	    outer->h_proto != bpf_htons(ETHER_SWITCHED))
		return true;
	/* Clients are on the LAN of the first interface, whichever interface another node's frames come by. */
	__builtin_memcpy(own, s->interfaces > 1 ? s->macs[0] : outer->h_dest, ETH_ALEN);
	if (bpf_xdp_adjust_head(ctx, sizeof(*outer)))
		return false;
	*bytes -= sizeof(*outer);
	struct ethhdr *inner = (void *)(long)ctx->data;
	if ((void *)(inner + 1) > (void *)(long)ctx->data_end)
		return false;
	/* What is answered must not come from the switch's address. */
	__builtin_memcpy(inner->h_dest, own, ETH_ALEN);
	return true;
}

#endif
