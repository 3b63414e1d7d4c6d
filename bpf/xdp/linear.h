/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A long frame, as of an MTU of 9000, lies in several pieces. Only the first one, the linear part, can be read
 * and written in place. Some drivers put hardly anything into it, so the headers are pulled in first.
 */
#ifndef BATON_XDP_LINEAR_H
#define BATON_XDP_LINEAR_H

#include "xdp/packet.h"

enum {
	/* The longest headers of all: Ethernet, IPv4, LCCP, and the longest IPv4 and TCP headers inside. */
	LINEAR_BYTES = 256,
};

/* Makes the headers readable in place where the kernel can. Returns the length of the whole frame. */
static __always_inline u32 pull_headers(struct xdp_md *ctx)
{
	u32 bytes = bpf_xdp_get_buff_len(ctx);
	u32 linear = ctx->data_end - ctx->data;

	if (linear < LINEAR_BYTES && linear < bytes && bpf_ksym_exists(bpf_xdp_pull_data))
		bpf_xdp_pull_data(ctx, bytes < LINEAR_BYTES ? bytes : LINEAR_BYTES);
	return bytes;
}

/*
 * Handles a frame whose headers cannot be read in place. A packet for a cluster address must not go up, because the
 * kernel would answer it.
 */
static __noinline int headers_out_of_reach(struct packet *p)
{
	struct {
		struct ethhdr eth;
		struct iphdr ip;
	} __attribute__((packed)) h;

	if (bpf_xdp_load_bytes(p->ctx, 0, &h, sizeof(h)) || h.eth.h_proto != bpf_htons(ETH_P_IP) ||
	    !service_at(h.ip.daddr, 0))
		return XDP_PASS;
	return drop(p, COUNTER_NOT_LINEAR);
}

#endif
