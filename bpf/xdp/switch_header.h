/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client's frame on its way from the switch to a connection server: whole, inside another Ethernet header. So the
 * connection server knows from which MAC address the frame came and answers there itself, and the switch need not
 * remember any client. Nothing on the LAN sees a client's MAC address at a wrong port.
 */
#ifndef BATON_XDP_SWITCH_HEADER_H
#define BATON_XDP_SWITCH_HEADER_H

#include "abi/abi.h"
#include "include/kernel.h"

/*
 * Takes a client's frame out of the frame of the switch around it, as if it had come here by itself. Any other frame
 * stays as it is. `bytes` is the frame's length, before and after. False if a frame of the switch holds none.
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
	/* Answers leave from this address, so it must be this node's and not the switch's. */
	__builtin_memcpy(inner->h_dest, own, ETH_ALEN);
	return true;
}

#endif
