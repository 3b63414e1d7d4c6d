/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fence: a data server that was cut off sends nothing for a connection that another one may have by then.
 *
 * Meanwhile other nodes take it for dead, and its connections go elsewhere. Its sockets know nothing of that, and would
 * send what they still had to send, or a RST. Nobody can tell them while it is cut off, so it finds out by itself, at
 * tc egress:
 *
 *  the client was heard since the last silence, and it or a connection server within the lease   the packet leaves
 *  else                                               a question to the client leaves in its place
 *
 * The lease is half of `dead_after`. There is a silence when no connection server was heard for longer than the lease,
 * or when another node says that it has taken this one for dead. A node that is a connection server itself listens to
 * the other ones.
 *
 * The question is an empty segment with a sequence number that the client has already. The client answers it with an
 * ACK (RFC 9293, 3.10.7.4), which the connection server sends to the data server that has the connection. If that is
 * this node, the client is heard, and TCP retransmits what has not left. TCP hears that nothing left
 * (tcp_retransmit_timer() in net/ipv4/tcp_timer.c), so it tries again each half second instead of doubling its timeout
 * each time.
 */
#ifndef BATON_DATA_SERVER_FENCE_H
#define BATON_DATA_SERVER_FENCE_H

#include "data_server/adopt/end.h"
#include "data_server/door/cut.h"
#include "data_server/door/doors.h"
#include "data_server/packet.h"

enum {
	CLIENT_LEASE = 512,        /* 1.05 ms each: least time that an answer counts; TCP's first timeout is 200 ms */
	FENCED_FOR = 1 << 26,      /* 20 hours, 1.05 ms each: all living clients were heard since such a silence */
	ENDS_AND_PUSH = OTHER_FLAG_BITS | RST_BIT,
	ACK_BIT = 0x10,
};

MAP(hearings, ARRAY, 1, u32, struct hearing);

static __always_inline struct hearing *hearing(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&hearings, &zero);
}

/*
 * Notes that another connection server was heard: a verified message of it has come, or a client's packet in a frame
 * from its MAC address.
 */
static __always_inline void hear_connection_server(const struct settings *s)
{
	struct hearing *h = hearing();
	u32 now = moment();

	if (!s->lease || !h || h->heard == now)
		return;
	if (h->heard && now - h->heard > s->lease)
		h->silence = h->heard + s->lease;
	else if (h->silence && now - h->silence > FENCED_FOR)
		h->silence = 0;
	h->heard = now;
}

/* Notes that another node says that it has taken this one for dead. */
static __always_inline void hear_of_own_death(void)
{
	struct hearing *h = hearing();

	if (h)
		h->silence = moment();
}

/* Notes that this connection's client was heard. A packet that has waited, or is kept by an agent, does not count. */
static __always_inline void note_heard(const struct arrival *a, struct door *d)
{
	if (!a->sent_in && !a->keeper && a->mark != MARK_OF_AGENT)
		d->heard = moment();
}

/*
 * Whether the client was not heard since a silence, and acknowledges what was never sent from here. Then another data
 * server has had the connection meanwhile, and the node that sent the packet here does not know that.
 */
static __always_inline bool is_anothers(const struct arrival *a, const struct door *d, const struct tcp_sock *tcp,
					const struct inner *in)
{
	const struct hearing *h = hearing();

	return h && h->silence && is_before(d->heard, h->silence) && !a->sent_in && !a->keeper && in->tcp.ack &&
	       bpf_ntohl(in->tcp.ack_seq) - tcp->write_seq - 1 < BEHIND_ACK;
}

/*
 * Returns the door of the connection on `sk`, also if nothing of it has come but the request with which it was adopted;
 * or 0.
 */
static __noinline const struct door *door_behind(struct bpf_sock *sk)
{
	const struct door *d = bpf_sk_storage_get(&doors, sk, 0, 0);
	struct tcb_key flow;

	if (d)
		return d;
	name_flow(&flow, sk->dst_ip4, sk->dst_port, sk->src_ip4, bpf_htons(sk->src_port));
	d = bpf_map_lookup_elem(&doors_begun, &flow);
	/* If the door was moved to a socket, it is of an earlier connection. */
	return d && !(d->flags & DOOR_BORN) ? d : 0;
}

/* Whether the connection on `sk` is surely this node's. */
static __always_inline bool may_speak(struct bpf_sock *sk)
{
	u32 zero = 0, now = moment();
	const struct settings *s = bpf_map_lookup_elem(&settings, &zero);
	const struct hearing *h = hearing();

	if (!s || !s->lease || !h || !h->heard)
		return true;
	bool is_cut_off = now - h->heard > s->lease;
	if (!is_cut_off && !h->silence)
		return true;
	const struct door *d = door_behind(sk);
	if (!d)
		return true;
	if (h->silence && is_before(d->heard, h->silence))
		return false;
	return !is_cut_off || now - d->heard <= (s->lease < CLIENT_LEASE ? CLIENT_LEASE : s->lease);
}

/*
 * Sends a question to the client in the place of the packet, of which the client may have received nothing. TCP is told
 * that the packet did not leave, except the first one on its way (`is_first`): TCP gives up after fifteen times what
 * was never on its way (tcp_probe_timer()).
 */
static __noinline int ask_client(struct __sk_buff *skb, u32 unacknowledged, bool is_first)
{
	struct counters *counters = counters_of_this_cpu();
	struct inner in = { .tcp_at = sizeof(struct ethhdr) + sizeof(struct iphdr) };

	if (!counters || bpf_skb_load_bytes(skb, sizeof(struct ethhdr), &in.ip, sizeof(in.ip)) ||
	    bpf_skb_load_bytes(skb, in.tcp_at, &in.tcp, sizeof(in.tcp)))
		return TCX_DISCARD;
	u16 flags = flags_of(&in);
	if (!write_seq(skb, &in, in.tcp_at, unacknowledged - 1, (flags & ~bpf_htons(ENDS_AND_PUSH)) | bpf_htons(ACK_BIT)) ||
	    bpf_skb_load_bytes(skb, in.tcp_at, &in.tcp, sizeof(in.tcp)) || !cut(skb, &in, in.tcp_at, 0))
		return TCX_DISCARD;
	count(counters, COUNTER_DS_FENCED);
	if (is_first)
		return TCX_GO_ON;
	bpf_clone_redirect(skb, skb->ifindex, 0);
	return TCX_DISCARD;
}

#endif
