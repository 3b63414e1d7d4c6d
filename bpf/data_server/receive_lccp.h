/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* LCCP at the data server: verified, matched with the packet it carries, then done as commanded. */
#ifndef BATON_DATA_SERVER_RECEIVE_LCCP_H
#define BATON_DATA_SERVER_RECEIVE_LCCP_H

#include "data_server/adopt/adopt.h"
#include "data_server/agent/kept.h"
#include "data_server/alive.h"
#include "data_server/claim.h"
#include "data_server/deliver.h"
#include "data_server/fence.h"
#include "data_server/handover/yield.h"
#include "data_server/packet.h"
#include "lccp/seal.h"
#include "lccp/send_buffer.h"

/* Reads the headers of the carried packet; what is missing is zeros. False if they are not all there. */
static __always_inline bool read_inner(struct __sk_buff *skb, u32 inner_bytes, struct inner *in)
{
	if (inner_bytes < sizeof(in->ip) || bpf_skb_load_bytes(skb, INNER_AT, &in->ip, sizeof(in->ip))) {
		__builtin_memset(in, 0, sizeof(*in));
		return false;
	}
	u32 ip_header = in->ip.ihl * 4;
	in->tcp_at = INNER_AT + ip_header;
	if (inner_bytes < ip_header + sizeof(in->tcp) ||
	    bpf_skb_load_bytes(skb, in->tcp_at, &in->tcp, sizeof(in->tcp))) {
		__builtin_memset(&in->tcp, 0, sizeof(in->tcp));
		return false;
	}
	return true;
}

/*
 * Whether the carried packet, whose headers are all there, is a whole TCP packet of the flow that the message's header
 * names.
 */
static __always_inline bool is_of_flow(const struct lccp_header *h, u32 inner_bytes, const struct inner *in)
{
	u32 ip_header = in->ip.ihl * 4, tcp_header = in->tcp.doff * 4;

	if (in->ip.version != 4 || ip_header < sizeof(struct iphdr) || in->ip.protocol != IPPROTO_TCP ||
	    in->ip.frag_off & bpf_htons(0x3fff) || bpf_ntohs(in->ip.tot_len) != inner_bytes ||
	    tcp_header < sizeof(struct tcphdr) || ip_header + tcp_header > inner_bytes)
		return false;
	return is_mapped(h->flow.client, in->ip.saddr) && is_mapped(h->flow.cluster, in->ip.daddr) &&
	       in->tcp.source == h->flow.be_client_port && in->tcp.dest == h->flow.be_cluster_port;
}

static __noinline const struct peer_keys *verify_at_ds(struct arrival *a, const struct lccp_header *h, const struct inner *in,
				    u32 bytes)
{
	struct lccp_carried carried;
	struct lccp_message m = {
		.ctx = a->skb,
		.h = h,
		.carried = &carried,
		.bytes = bytes,
		.from = a->sender,
	};

	__builtin_memcpy(&carried.ip, &in->ip, sizeof(carried.ip));
	carried.tcp = *behind_ports(&in->tcp);
	return lccp_verify(a->settings, a->counters, &m, false);
}

/* Leaves a verified message to the daemon, unless its sender is over its budget. */
static __always_inline int pass_to_daemon_at_ds(struct arrival *a)
{
	if (is_over_budget(a->sender))
		return discard(a, COUNTER_LCCP_OVER_BUDGET);
	count(a->counters, COUNTER_LCCP_TO_DAEMON);
	return TCX_GO_ON;
}

/* Handles a verified message about a connection, and the packet that it carries. */
__noinline int receive_message(struct __sk_buff *skb)
{
	struct scratch *s = scratch_of_this_cpu();
	struct arrival arrival, *a = &arrival;

	if (!s || !resume_arrival(a, skb, s))
		return TCX_DISCARD;
	struct lccp_header *h = &s->header;
	struct inner *in = &s->packet;
	h->be_sequence = 0; /* what the message becomes has another receiver */
	switch (h->command) {
	case LCCP_ADOPT:
		return adopt(a, h, in);
	case LCCP_FORWARD:
		return receive_forwarded(a, h, in);
	case LCCP_YIELD:
		return yield(a, h, in);
	case LCCP_RECEIVED:
		return hear_received(a, h);
	case LCCP_CLAIM:
		return claim_at_ds(a, h, in);
	default:
		return discard(a, COUNTER_LCCP_UNKNOWN);
	}
}

/* Verifies a message, which is long enough for its header: `bytes` bytes are behind that. */
__noinline int verify_message(struct __sk_buff *skb)
{
	struct scratch *s = scratch_of_this_cpu();
	struct arrival arrival, *a = &arrival;

	if (!s || !resume_arrival(a, skb, s))
		return TCX_DISCARD;
	struct lccp_header *h = &s->header;
	struct inner *in = &s->packet;
	u32 bytes = s->bytes;
	if (bpf_skb_load_bytes(skb, LCCP_AT, h, sizeof(*h)))
		return discard(a, COUNTER_LCCP_SHORT);
	/* A connection server's raw socket takes what its program has verified and passed up. */
	if (h->receptor == LCCP_RECEPTOR_CS && a->settings->roles & ROLE_CS)
		return TCX_GO_ON;
	bool has_inner = read_inner(skb, bytes, in);
	const struct peer_keys *shared = verify_at_ds(a, h, in, bytes);
	if (!shared)
		return TCX_DISCARD;
	if (shared->is_cs && a->sender != own_address(a))
		hear_connection_server(a->settings);
	if (h->receptor == LCCP_RECEPTOR_DAEMON)
		return pass_to_daemon_at_ds(a);
	if (h->receptor != LCCP_RECEPTOR_DS || h->be_body_length)
		return discard(a, COUNTER_LCCP_UNKNOWN);
	if (h->command == LCCP_ALIVE)
		return answer_alive(a, shared, h, bytes);
	if (!has_inner || !is_of_flow(h, bytes, in))
		return discard(a, COUNTER_LCCP_MISMATCH);

	a->again = note_arrival(a->sender, h) && !a->mark;
	return leave_to(STAGE_MESSAGE, a, 0);
}

static __always_inline int receive_lccp_at_ds(struct arrival *a, const struct frame *f)
{
	struct scratch *s = scratch_of_this_cpu();
	u32 bytes = f->ip_bytes;

	/* While a host is down, a switch may flood what is for it: another one must not adopt that. */
	if (f->ip->daddr != unmap_address(a->settings->address))
		return discard(a, COUNTER_LCCP_NOT_OURS);
	if (!s || f->ip_header != sizeof(struct iphdr) || bytes < OUTER_BYTES)
		return discard(a, COUNTER_LCCP_SHORT);
	take_mark(a);
	a->sender = f->ip->saddr;
	s->bytes = bytes - OUTER_BYTES;
	return leave_to(STAGE_LCCP, a, 0);
}

#endif
