/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* LCCP at the data server: verified, matched with the packet it carries, then done as commanded. */
#ifndef BATON_DS_RECEIVE_LCCP_H
#define BATON_DS_RECEIVE_LCCP_H

#include "adopt.h"
#include "alive.h"
#include "claim.h"
#include "deliver.h"
#include "packet.h"
#include "release.h"
#include "yield.h"
#include "../lccp.h"
#include "../outbox.h"

/* False if the carried packet is not a whole TCP packet of the flow that the header names. */
static __always_inline bool open_inner(struct __sk_buff *skb, const struct lccp_header *h, u32 inner_bytes,
				       struct inner *in)
{
	if (bpf_skb_load_bytes(skb, INNER_AT, &in->ip, sizeof(in->ip)))
		return false;
	u32 ip_header = in->ip.ihl * 4;
	if (in->ip.version != 4 || ip_header < sizeof(struct iphdr) || in->ip.protocol != IPPROTO_TCP ||
	    in->ip.frag_off & bpf_htons(0x3fff) || bpf_ntohs(in->ip.tot_len) != inner_bytes)
		return false;
	in->tcp_at = INNER_AT + ip_header;
	if (bpf_skb_load_bytes(skb, in->tcp_at, &in->tcp, sizeof(in->tcp)))
		return false;
	u32 tcp_header = in->tcp.doff * 4;
	if (tcp_header < sizeof(struct tcphdr) || ip_header + tcp_header > inner_bytes)
		return false;
	return is_mapped(h->flow.client, in->ip.saddr) && is_mapped(h->flow.cluster, in->ip.daddr) &&
	       in->tcp.source == h->flow.be_client_port && in->tcp.dest == h->flow.be_cluster_port;
}

static __always_inline int receive_lccp_at_ds(struct arrival *a, const struct frame *f)
{
	struct __sk_buff *skb = a->skb;

	/* While a host is down, a switch may flood what is for it: another one must not adopt that. */
	if (f->ip->daddr != unmap_address(a->settings->address))
		return discard(a, COUNTER_LCCP_NOT_OURS);
	/* The mark must not stay: with tcp_fwmark_accept the new socket would inherit it. */
	a->requeued = skb->mark == MARK_REQUEUED;
	if (a->requeued)
		skb->mark = 0;

	struct lccp_header h;
	struct inner in;
	u32 ip_bytes = f->ip_bytes;
	a->sender = f->ip->saddr;

	if (f->ip_header != sizeof(struct iphdr) || ip_bytes < OUTER_BYTES ||
	    bpf_skb_load_bytes(skb, LCCP_AT, &h, sizeof(h)))
		return discard(a, COUNTER_LCCP_SHORT);
	if (h.receptor == LCCP_RECEPTOR_DAEMON) {
		count(a->counters, COUNTER_LCCP_TO_DAEMON);
		return TCX_GO_ON;
	}
	/* A connection server's raw socket takes what its program passed up. */
	if (h.receptor == LCCP_RECEPTOR_CS && a->settings->roles & ROLE_CS)
		return TCX_GO_ON;
	if (!lccp_verify(a->settings, a->counters, &h, a->sender))
		return TCX_DISCARD;
	if (h.receptor != LCCP_RECEPTOR_DS)
		return discard(a, COUNTER_LCCP_UNKNOWN);
	if (h.command == LCCP_ALIVE)
		return answer_alive(a, &h);
	if (!open_inner(skb, &h, ip_bytes - OUTER_BYTES, &in))
		return discard(a, COUNTER_LCCP_MISMATCH);

	a->again = note_arrival(a->sender, &h) && !a->requeued;
	h.be_sequence = 0; /* what becomes of it has another receiver */
	switch (h.command) {
	case LCCP_ADOPT:
		return adopt(a, &h, &in);
	case LCCP_HANDOVER:
		return handover(a, &h, &in);
	case LCCP_RELEASE:
		return release(a, &h, &in);
	case LCCP_FORWARD:
		return receive_forwarded(a, &h, &in);
	case LCCP_YIELD:
		return yield(a, &h, &in);
	case LCCP_CLAIM:
		return claim_at_ds(a, &h, &in);
	default:
		return discard(a, COUNTER_LCCP_UNKNOWN);
	}
}

#endif
