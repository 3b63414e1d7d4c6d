/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Aware clients. An aware client sends to its data server itself, once that data server has told it its address. The
 * client's entry here is needed only until then, and is forgotten soon after the last packet (AWARE_TICKS in sweep.h).
 * While the entry exists it names the current owner. Where a service has doors, owners report each move (moved.h).
 * Where it has none, the connection stays with its data server, because no program judges its further requests. A
 * client that gets no answer from its data server sends here again. The entry leads its packets to the owner; if the
 * entry is forgotten, CLAIM finds the owner.
 */
#ifndef BATON_CONNECTION_SERVER_AWARE_H
#define BATON_CONNECTION_SERVER_AWARE_H

#include "include/aware.h"
#include "xdp/packet.h"

/* Whether this packet's client is aware. Its option says so, and is the last one of the packet. */
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
