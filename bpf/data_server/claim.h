/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * By CLAIM a connection server asks which data server has a connection. The one that has it answers MOVED, with what
 * the connection server must know. One that handed it over with the very request that is asked for sends that on. Any
 * other asks the next data server of the service; the last one answers NONE. Where there is a door, the packet comes to
 * the door once the connection server knows the way. Otherwise it is delivered here, if the message carries its data. A
 * RST is only delivered.
 */
#ifndef BATON_DATA_SERVER_CLAIM_H
#define BATON_DATA_SERVER_CLAIM_H

#include "data_server/adopt/adopt.h"
#include "data_server/deliver.h"
#include "data_server/packet.h"
#include "data_server/send.h"
#include "include/socket_lookup.h"

enum {
	RING_MAX = 255, /* what the message can count */
};

/* Makes the header a MOVED, which says that the connection is here. */
static __always_inline void say_moved(struct lccp_header *h, const struct tcp_sock *tcp)
{
	h->receptor = LCCP_RECEPTOR_CS;
	h->command = LCCP_MOVED;
	h->flags &= LCCP_FLAG_HEADERS;
	h->be_data = 0;
	h->tcb = part_of(tcp);
}

static __always_inline int claimed(struct arrival *a, struct lccp_header *h, const struct inner *in,
				   struct bpf_sock *sk, const struct tcp_sock *tcp)
{
	__be32 asker_address = h->be_data;
	const struct data_server *asker = peer(asker_address);

	if (h->flags & LCCP_FLAG_HEADERS || (is_owners(in->ip.daddr, in->tcp.dest) && !in->tcp.rst)) {
		struct passage back = { asker, asker_address, COUNTER_DS_CLAIMED };
		say_moved(h, tcp);
		return send_message(a, h, in, &back);
	}
	if (!keep_for(a, sk))
		return discard(a, COUNTER_DS_NO_SOCKET);
	say_moved(h, tcp);
	/*
	 * A RST ends the connection here, or the kernel does not believe it: in either case no entry is wanted. Without
	 * an answer, the connection server asks again with the client's next packet.
	 */
	if (asker && !in->tcp.rst)
		send_copy(a, h, in, asker, asker_address);
	if (!strip(a->skb))
		return TCX_DISCARD;
	count(a->counters, COUNTER_DS_CLAIMED);
	return TCX_GO_ON;
}

static __always_inline const struct ring *ring_of(__be32 cluster, __be16 port)
{
	struct service_key key = service_key(cluster, port);
	const struct service *service = bpf_map_lookup_elem(&services, &key);
	u32 id = service ? service->id : MAX_SERVICES;

	return bpf_map_lookup_elem(&rings, &id);
}

/*
 * Asks the next data server of the ring, or answers NONE as the last one. If this node does not know all of the ring,
 * it cannot say that nobody has the connection: the question ends here, unanswered.
 */
static __always_inline int ask_next(struct arrival *a, struct lccp_header *h, const struct inner *in)
{
	const struct ring *ring = ring_of(in->ip.daddr, in->tcp.dest);
	u32 asked = h->tcb.attempt + 1;

	if (!ring || !ring->length)
		return discard(a, COUNTER_DS_NO_WAY);
	h->tcb.attempt = asked;
	if (asked < ring->length && asked < RING_MAX) {
		struct passage on = { peer(ring->next), ring->next, COUNTER_DS_CLAIM_PASSED_ON };
		return send_message(a, h, in, &on);
	}
	/* A RST needs no answer, whoever had the connection. */
	if (in->tcp.rst)
		return discard(a, COUNTER_DS_UNCLAIMED);
	if (ring->missing)
		return discard(a, COUNTER_DS_NO_WAY);
	if (is_own_cs(peer(h->be_data)))
		return unclaimed_here(a, h);
	struct passage back = { peer(h->be_data), h->be_data, COUNTER_DS_UNCLAIMED };
	h->receptor = LCCP_RECEPTOR_CS;
	h->command = LCCP_NONE;
	h->flags = 0;
	h->be_data = 0;
	return send_message(a, h, in, &back);
}

/*
 * Whether the connection went from here with the request that the packet begins, and that may follow it. Its ADOPT and
 * what the connection server was told of it may be lost, and then nobody has the connection. If the client acknowledges
 * more than it did then, it has something of the response, so the ADOPT was not lost. The data server to which the
 * connection went may have begun anew since, and have forgotten that it has done the request. That takes longer than
 * GIVEN_TICKS, so after that only a request that may be done twice follows.
 */
static __always_inline bool went_with(struct arrival *a, const struct lccp_header *h, const struct inner *in)
{
	const struct given *last = is_owners(in->ip.daddr, in->tcp.dest) && payload_of(in) ? given_with(h, in) : 0;

	if (!last || is_before(last->ack, bpf_ntohl(in->tcp.ack_seq)) || !peer(last->next) || is_lost(a, in, last->next))
		return false;
	u32 age = tick_now() - last->tick;
	return age < GIVEN_TICKS || (age < AGAIN_TICKS && is_repeatable(a->skb, in));
}

/* Handles the packet as if the connection server that asks had forwarded it here. */
static __always_inline int take_as_forwarded(struct arrival *a, struct lccp_header *h, struct inner *in)
{
	a->sender = h->be_data;
	h->command = LCCP_FORWARD;
	h->be_data = 0;
	h->tcb = (struct lccp_tcb){};
	count(a->counters, COUNTER_DS_CLAIM_FOLLOWED);
	return deliver_forwarded(a, h, in);
}

static __always_inline int claim_at_ds(struct arrival *a, struct lccp_header *h, struct inner *in)
{
	struct bpf_sock *sk = lookup(a->skb, in->ip.saddr, in->ip.daddr, in->tcp.source, in->tcp.dest);
	struct tcp_sock *tcp = claimed_socket(sk, &in->tcp);
	int verdict;

	if (tcp)
		verdict = claimed(a, h, in, sk, tcp);
	else if (went_with(a, h, in))
		verdict = take_as_forwarded(a, h, in);
	else
		verdict = ask_next(a, h, in);
	if (sk)
		bpf_sk_release(sk);
	return verdict;
}

#endif
