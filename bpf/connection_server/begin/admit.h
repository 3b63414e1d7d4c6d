/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decides about a packet that has no entry, or is not surely of its entry's connection. A valid cookie may begin a
 * connection.
 */
#ifndef BATON_CONNECTION_SERVER_BEGIN_ADMIT_H
#define BATON_CONNECTION_SERVER_BEGIN_ADMIT_H

#include "connection_server/aware.h"
#include "connection_server/begin/hold.h"
#include "connection_server/begin/probe.h"
#include "connection_server/begin/timestamp.h"
#include "connection_server/begin/used_cookies.h"
#include "connection_server/distributor.h"
#include "connection_server/find/claim.h"
#include "connection_server/forwarder.h"
#include "connection_server/read_request.h"
#include "connection_server/send_to_owner.h"
#include "connection_server/tcb.h"
#include "include/cookie.h"
#include "include/socket_lookup.h"
#include "routing/dispatcher.h"
#include "routing/request.h"
#include "routing/route.h"
#include "routing/sizes.h"
#include "xdp/packet.h"

/*
 * Chooses route, pool and data server of a first request from what its first packet shows. This is a hint: the door of
 * the chosen data server decides.
 */
static __noinline struct choice *choose_first(struct packet *p, struct request *r, struct choice *choice)
{
	u32 flags = p->service->flags, route = NO_POOL;

	if (flags & SERVICE_TLS) {
		if (flags & SERVICE_OWNER)
			route = read_hello_of(p);
	} else if (flags & (SERVICE_PATHS | SERVICE_TARGETS | SERVICE_SIZES)) {
		read_request_of(p, r);
		route = find_route(p->service->id, flags, r);
	}
	if (route & ROUTE_UNDECIDED)
		route = NO_POOL;
	u32 pool_index = route & ROUTE_POOL;
	choice->route = pool_index == NO_POOL ? p->service->id : route >> ROUTE_NUMBER_SHIFT & ROUTE_NUMBER;
	choice->pool = pool_index == NO_POOL ? pool_without_route(p->service, r) : pool_index;
	const struct pool *pool = pool_at(choice->pool);
	choice->owner = pool ? choose(pool, choice->pool, &p->flow, r, 0) : NO_DATA_SERVER;
	return choice;
}

/*
 * Begins a connection (the split): makes its entry here, and sends ADOPT (DM1) to the data server that is chosen.
 * `held` is the entry of an earlier connection with the same ports, or 0.
 */
static __noinline int split(struct packet *p, const struct tcb *held, u32 cookie, u32 tag)
{
	struct choice choice = { .replaces = held };
	struct request *r = blank_request();
	struct lccp_tcb part = {};

	if (!r)
		return XDP_ABORTED;
	if (!fits_in_lccp(p))
		return drop(p, COUNTER_CS_TOO_BIG);
	choose_first(p, r, &choice);
	const struct data_server *to = data_server(choice.owner);
	bool is_there = to && to->flags & DATA_SERVER_PRESENT;
	bool at_door = p->service->flags & SERVICE_OWNER;
	if (!is_there || !at_door)
		tally_request(choice.route, choice.pool);
	if (!is_there) {
		tally_unavailable(choice.route, choice.pool);
		return reset(p, COUNTER_CS_NO_DATA_SERVER);
	}
	if (p->service->flags & SERVICE_DIRECT && is_aware(p))
		part.options = LCCP_TCB_AWARE;
	cookie_open(cookie, p->settings->rcv_wscale, &part);
	/*
	 * Of copies of the packet on several processors only one makes an entry. Where an entry is replaced, the cookie
	 * tells them apart.
	 */
	if (held && !use_cookie(cookie, tag))
		return drop(p, COUNTER_CS_ADOPTED_MEANWHILE);
	long error = create_tcb(p, &choice, &part);
	if (error)
		return drop(p, error == -ERROR_EXISTS ? COUNTER_CS_ADOPTED_MEANWHILE : COUNTER_CS_TCB_FULL);
	if (!held)
		use_cookie(cookie, tag);
	tally_connection(choice.owner, at_door);
	if (part.options & LCCP_TCB_AWARE)
		count(p->counters, COUNTER_CS_AWARE);
	count(p->counters, COUNTER_CS_ADOPT);
	return distribute(p, to, LCCP_ADOPT, unmap_address(p->settings->address), &part);
}

/*
 * Forwards a client's packet whose numbers are not near those of its entry. Anybody can forge such a packet, even
 * without knowing the ports. So the entry's numbers stay as they are, and the owner's kernel judges the packet. Only
 * large steps of acknowledgements are noted, see is_large_step().
 */
static __noinline int jump(struct packet *p, struct tcb *tcb)
{
	touch(tcb);
	if (is_large_step(tcb, p))
		note_packet(tcb, p);
	else
		count(p->counters, COUNTER_CS_JUMP);
	return send_to_owner(p, tcb);
}

/*
 * Whether sequence number and acknowledgement are both a little behind those of the entry. Then the packet is from
 * earlier in the same connection. A new connection has such numbers by chance once in 65,536 times. This check is for
 * connections that did not begin here: their cookies are not among the used ones.
 */
static __always_inline bool is_behind_entry(const struct tcb *tcb, const struct tcphdr *tcp)
{
	u32 seq = tcb->last_seq - bpf_ntohl(tcp->seq), ack = tcb->last_ack - bpf_ntohl(tcp->ack_seq);

	return seq - 1 < BEHIND_SEQ && ack < BEHIND_ACK;
}

/* What admit_packet() finds a packet to be. The numbers begin at 300 so that they differ from all XDP actions. */
enum admission {
	ADMIT_KNOWN = 300, /* it belongs to its entry's connection */
	ADMIT_NEW,   /* first data: it begins a connection */
	ADMIT_JUMP,  /* it goes to the owner; its entry may note it: jump() */
	ADMIT_LATE,  /* it goes to the owner; its entry must not note it */
	ADMIT_STRAY, /* there is no entry: the data servers are asked */
	ADMIT_ASKED_FIRST, /* first data that another connection server may have sent on: it is asked for */
	ADMIT_RESET, /* a RST without an entry: the data servers are asked */
	ADMIT_PROBE, /* a keep-alive probe before the first request */
	ADMIT_HELD,  /* first data that waits until another connection server has all entries */
	ADMIT_NOT,   /* it is dropped, and counted already */
};

/*
 * Says what a packet is that begins no connection: it has no valid cookie, or it is a RST. `tag` is 0 if the cookie is
 * not valid.
 */
static __always_inline enum admission admit_other(struct packet *p, const struct tcb *held, u32 cookie, u32 tag)
{
	const struct tcphdr *tcp = p->frame.tcp;

	if (is_probe_of_unused(p))
		return ADMIT_PROBE;
	if (held)
		return ADMIT_JUMP;
	if (!tcp->rst)
		return ADMIT_STRAY;
	/* The client has not sent any data, so no data server has to be told. */
	if (tag && !is_used(cookie, tag)) {
		count(p->counters, COUNTER_CS_RST);
		return ADMIT_NOT;
	}
	return ADMIT_RESET;
}

enum {
	COOKIE_LIFE_MS = (2ULL << COOKIE_PERIOD_SHIFT) / NS_PER_MS, /* no SYN-ACK with a valid cookie is older */
	HANDSHAKE_MS = 10000,      /* most clients answer a SYN-ACK with data sooner */
};

static __always_inline bool begins_with_get(const struct packet *p)
{
	const u32 *word = (void *)p->frame.tcp + BOUNDED(p->frame.tcp_header, sizeof(struct tcphdr), 60);

	return (void *)(word + 1) <= (void *)(long)p->ctx->data_end && *word == (u32)LETTERS('G', 'E', 'T', ' ', 0, 0, 0, 0);
}

/*
 * Whether this first data may answer a SYN-ACK from before this node came in front. Then the connection server that
 * was in front may have sent the same data to a data server already. The timestamp that the client echoes dates the
 * SYN-ACK. Without timestamps the answer is yes only during the first HANDSHAKE_MS, and only for a request that is no
 * GET, because a GET may be done twice.
 */
static __noinline bool is_of_predecessor(struct packet *p)
{
	u32 since = p->settings->since_ms, for_ms = timestamp_now(p->settings) - since, echo;

	if (!since || for_ms >= COOKIE_LIFE_MS)
		return false;
	if (!read_echo(p, &echo))
		return for_ms < HANDSHAKE_MS && !begins_with_get(p);
	return (int)(echo - timestamp_offset(p, 0) - since) < 0;
}

/* Says what a packet with a valid cookie is. It may begin a connection. `tag` is the cookie's tag. */
static __always_inline enum admission admit_first(struct packet *p, const struct tcb *held, u32 cookie, u32 tag)
{
	const struct tcphdr *tcp = p->frame.tcp;

	if (held && repeats_request(held, &p->frame))
		return ADMIT_JUMP;
	if (!p->frame.payload && !tcp->fin && !(p->service->flags & SERVICE_SPLIT_AT_ACK)) {
		count(p->counters, COUNTER_CS_HANDSHAKE_ACK);
		return ADMIT_NOT;
	}
	if (!is_used(cookie, tag) && !(held && is_behind_entry(held, tcp)))
		return !held && is_of_predecessor(p) && !is_nobodys(p) ? ADMIT_ASKED_FIRST : ADMIT_NEW;
	/*
	 * The first data of a connection that began earlier comes once more, late or replayed. It begins nothing. If
	 * the connection lives, its owner's TCP drops the old segment; if it has ended, no data server has it.
	 */
	count(p->counters, COUNTER_CS_BEGUN_BEFORE);
	return held ? ADMIT_LATE : ADMIT_STRAY;
}

/*
 * The tag of the cookie that this packet acknowledges, or 0 if it acknowledges none. The cookie is our initial
 * sequence number (ISN). Only the client's first data has ISN + 1 on both sides: its own as sequence number, and ours
 * as acknowledgement.
 */
static __always_inline u32 tag_of_first(struct packet *p)
{
	const struct tcphdr *tcp = p->frame.tcp;

	return tcp->ack ? tag_of_cookie(p, bpf_ntohl(tcp->seq) - 1) : 0;
}

/*
 * Whether this packet lies behind the end of the entry's connection, which its client has ended, and has a valid
 * cookie. Only another connection begins there.
 */
static __noinline bool begins_behind_end(struct packet *p, const struct tcb *tcb)
{
	u32 end = bpf_ntohl(p->frame.tcp->seq) + p->frame.payload;

	/* The end itself takes a sequence number. It may also be forged, and then the connection goes on. */
	return (int)(end - tcb->last_seq) > 1 && tag_of_first(p);
}

/*
 * Whether this packet belongs to a new connection although its numbers are near those of the entry. A client that uses
 * its port again within milliseconds has a sequence number near the last one, and one cookie in 2,048 is near the last
 * acknowledgement.
 */
static __always_inline bool is_of_next_connection(struct packet *p, const struct tcb *tcb)
{
	return tcb->state & (TCB_FIN | TCB_RST) && begins_behind_end(p, tcb);
}

/* Leaves a packet that is for no service to the kernel, and counts its bytes if a service has sent it. */
static __always_inline int not_ours(struct packet *p)
{
	if (service_at(p->frame.ip->saddr, p->frame.tcp->source))
		count_bytes(p->counters, COUNTER_CS_RESPONSE_BYTES, p->frame.ip_bytes);
	return XDP_PASS;
}

#endif
