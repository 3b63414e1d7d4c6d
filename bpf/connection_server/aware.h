/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client that sends to its data server itself, once that has told it where it is. Its entry here is needed only until then, and is
 * forgotten soon after the last packet (AWARE_TICKS in sweep.h). While it is there it leads to the current owner: where owners see to
 * requests they say so of each move (moved.h); else such a connection stays with its data server, since nobody here sees its
 * further requests. A client that gets no answer at its data server sends here again: its packets go by the entry, or if that is
 * forgotten, CLAIM finds the owner.
 */
#ifndef BATON_CONNECTION_SERVER_AWARE_H
#define BATON_CONNECTION_SERVER_AWARE_H

#include "include/aware.h"
#include "xdp/packet.h"

/* Its option is the last of this packet. */
static __noinline bool is_aware(struct packet *p)
{
	const u8 wanted[AWARE_BYTES] = AWARE_OPTION;
	u32 header = p->frame.tcp_header;
	u64 option, own;

	if (header < sizeof(struct tcphdr) + AWARE_BYTES)
		return false;
	__builtin_memcpy(&own, wanted, sizeof(own));
	u32 at = sizeof(struct ethhdr) + p->frame.ip_header + header - AWARE_BYTES;
	return !bpf_xdp_load_bytes(p->ctx, at, &option, sizeof(option)) && option == own;
}

#endif
