/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the flow that an ICMP error is about. */
#ifndef BATON_XDP_ICMP_ERROR_H
#define BATON_XDP_ICMP_ERROR_H

#include "xdp/packet.h"

enum {
	ICMP_UNREACHABLE = 3,
	ICMP_TIME_EXCEEDED = 11,
};

/* RFC 792: type, code, checksum, four bytes by type, then the IP header and 8 bytes of the packet. */
struct icmp_error {
	u8 type;
	u8 code;
	u16 checksum;
	u32 by_type;
	struct iphdr ip;
	__be16 source;
	__be16 dest;
	__be32 seq;
} __attribute__((packed));

/* True if the ICMP packet is an error about a TCP packet of a server; `p->flow` is its flow then. */
static __always_inline bool name_flow_in_error(struct packet *p)
{
	struct icmp_error error;
	u32 at = sizeof(struct ethhdr) + p->frame.ip_header;

	if (p->frame.ip_bytes < p->frame.ip_header + sizeof(error) ||
	    bpf_xdp_load_bytes(p->ctx, at, &error, sizeof(error)))
		return false;
	if (error.type != ICMP_UNREACHABLE && error.type != ICMP_TIME_EXCEEDED)
		return false;
	/* Our servers send no IP options. */
	if (error.ip.version != 4 || error.ip.ihl != sizeof(struct iphdr) / 4 ||
	    error.ip.protocol != IPPROTO_TCP)
		return false;
	name_flow(&p->flow, error.ip.daddr, error.dest, error.ip.saddr, error.source);
	return true;
}

#endif
