/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ethernet, IPv4 and TCP headers of one frame, checked once. */
#ifndef BATON_INCLUDE_FRAME_H
#define BATON_INCLUDE_FRAME_H

#include "abi/abi.h"
#include "include/kernel.h"

enum frame_kind {
	FRAME_OTHER,     /* not for these programs */
	FRAME_TCP,
	FRAME_LCCP,
	FRAME_ICMP,      /* `ip` is valid */
	FRAME_IPIP,      /* `ip` is valid; a packet inside another (RFC 2003), unchecked */
	FRAME_BAD_IP,    /* `ip` can be read, but its values cannot be trusted */
	FRAME_BAD_TCP,   /* `ip` is valid */
	FRAME_FRAGMENT,  /* `ip` is valid */
	FRAME_NOT_LINEAR, /* headers are behind data_end */
};

struct frame {
	struct ethhdr *eth;
	struct iphdr *ip;
	struct tcphdr *tcp; /* with FRAME_TCP the TCP header; with FRAME_LCCP whatever follows the IP header,
	                       unchecked */
	u32 ip_bytes;       /* bytes of header and payload, without Ethernet padding */
	u32 ip_header;
	u32 tcp_header;
	u32 payload;        /* TCP payload bytes */
};

/*
 * The packet's length. A host that lets packets grow beyond what the header can say (IPv4 BIG TCP) writes 0 there, and
 * then the whole frame is the packet.
 */
static __always_inline u32 length_of(const struct iphdr *ip, u32 frame_bytes)
{
	u32 rest = frame_bytes - sizeof(struct ethhdr);

	return !ip->tot_len && rest > 0xffff ? rest : bpf_ntohs(ip->tot_len);
}

/*
 * Finds and checks the headers. `bytes` is the length of the whole frame; data_end may come earlier if its tail is not
 * linear.
 */
static __always_inline enum frame_kind parse_frame(void *data, void *data_end, u32 bytes,
						   u8 lccp_protocol, struct frame *f)
{
	f->eth = data;
	f->ip = data + sizeof(struct ethhdr);
	if ((void *)(f->ip + 1) > data_end)
		return bytes < sizeof(struct ethhdr) + sizeof(struct iphdr) ? FRAME_OTHER : FRAME_NOT_LINEAR;
	if (f->eth->h_proto != bpf_htons(ETH_P_IP))
		return FRAME_OTHER;

	f->ip_header = f->ip->ihl * 4;
	f->ip_bytes = length_of(f->ip, bytes);
	if (f->ip->version != 4 || f->ip_header < sizeof(struct iphdr) ||
	    f->ip_bytes < f->ip_header || f->ip_bytes > bytes - sizeof(struct ethhdr))
		return FRAME_BAD_IP;

	if (f->ip->protocol == IPPROTO_ICMP)
		return f->ip->frag_off & bpf_htons(0x3fff) ? FRAME_OTHER : FRAME_ICMP;
	bool tcp = f->ip->protocol == IPPROTO_TCP;
	bool lccp = f->ip->protocol == lccp_protocol;
	if (!tcp && !lccp)
		return f->ip->protocol == IPPROTO_IPIP ? FRAME_IPIP : FRAME_OTHER;
	if (f->ip->frag_off & bpf_htons(0x3fff))
		return FRAME_FRAGMENT;

	f->tcp = (void *)f->ip + f->ip_header;
	if (lccp)
		return FRAME_LCCP;
	if ((void *)(f->tcp + 1) > data_end)
		return f->ip_bytes < f->ip_header + sizeof(struct tcphdr) ? FRAME_BAD_TCP : FRAME_NOT_LINEAR;
	f->tcp_header = f->tcp->doff * 4;
	if (f->tcp_header < sizeof(struct tcphdr) || f->ip_header + f->tcp_header > f->ip_bytes)
		return FRAME_BAD_TCP;
	/*
	 * Port 0 is reserved (RFC 6335, 6), and in the services map it stands for a cluster address rather than a
	 * service.
	 */
	if (!f->tcp->dest || !f->tcp->source)
		return FRAME_BAD_TCP;
	f->payload = f->ip_bytes - f->ip_header - f->tcp_header;
	return FRAME_TCP;
}

/* RFC 4291, 2.5.5.2: ::ffff:a.b.c.d */
static __always_inline void map_address(void *address, __be32 v4)
{
	u32 *words = address;

	words[0] = 0;
	words[1] = 0;
	words[2] = bpf_htonl(0xffff);
	words[3] = v4;
}

static __always_inline bool is_mapped(const void *address, __be32 v4)
{
	const u32 *words = address;

	return !(words[0] | words[1]) && words[2] == bpf_htonl(0xffff) && words[3] == v4;
}

static __always_inline __be32 unmap_address(const void *address)
{
	return ((const u32 *)address)[3];
}

static __always_inline struct service_key service_key(__be32 cluster, __be16 port)
{
	return (struct service_key){ .cluster = cluster, .be_port = port };
}

#endif
