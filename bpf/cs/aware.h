/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client that sends to its data server itself, once that has told it where it is. Such a connection stays
 * with its data server, since nobody here sees its further requests, and its entry is needed only until then.
 */
#ifndef BATON_CS_AWARE_H
#define BATON_CS_AWARE_H

#include "packet.h"
#include "../aware.h"

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
