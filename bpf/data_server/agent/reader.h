/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * If one packet does not decide a request, the agent of this node reads it (crates/agent/src/reader), and has the
 * connection until it has done so:
 *
 *  server's socket  --a request that is not plain------------------> agent's socket: it gets all that comes, and says nothing
 *  agent's socket   --the request once more, and what it says--judge--> here: server's socket, which begins with the request
 *                                                               \----> another's: as any request for another one
 *
 * The agent takes nothing out of its socket, so no more comes than the socket has room for. As long as the agent has
 * said nothing, the connection is as quiet as it was before the request. The agent then sends all that has come once
 * more, as frames of the client to this interface. With the first of these frames the connection goes on: a note of it
 * (`passing`) is made, the old socket ends by a RST, and a clone of the packet behind the RST begins the new one. What
 * the agent sends in is what it has read. Until the new socket has the head, it gets nothing of the client's own
 * packets, which may say something else by then.
 */
#ifndef BATON_DATA_SERVER_AGENT_READER_H
#define BATON_DATA_SERVER_AGENT_READER_H

#include "data_server/adopt/assign.h"
#include "data_server/adopt/end.h"
#include "data_server/adopt/window.h"
#include "data_server/door/door.h"
#include "data_server/door/doors.h"
#include "data_server/door/judge.h"
#include "data_server/door/tally.h"
#include "data_server/handover/handed_over.h"
#include "data_server/packet.h"
#include "data_server/plain.h"
#include "include/socket_lookup.h"

enum {
	PASSING_FOR = 1 << 16,     /* how long a note counts, in 1.05 ms: 69 s. An agent that was killed may need some time
	                              to come back with what it has read */
	STATE_CLOSE_WAIT = 8,      /* include/net/tcp_states.h: its client sends no more */
	STAMP_AT = 4,              /* offset of the client's timestamp in options that are timestamps alone */
	STAMP_ECHO_AT = 8,         /* offset of the timestamp of ours that they echo */
	CLOCK_TICK_NS = 1000000,   /* of TCP's timestamps */
};

MAP(passing, LRU_HASH, 65536, struct tcb_key, struct passing);

SOCKET_STORAGE(have_read, struct have_read);

static __always_inline u32 milliseconds(void)
{
	return bpf_ktime_get_ns() / CLOCK_TICK_NS;
}

/*
 * Has the packet echo the old socket's timestamp of this moment, because a new socket goes on with its timestamps from
 * the one that its first packet echoes. If it echoed an older one, the client would drop what comes (PAWS, RFC 7323,
 * 5). `clock` is the clock of the old socket's timestamps, less ours.
 */
static __noinline bool echo_now(struct __sk_buff *skb, const struct inner *in, u32 clock)
{
	u32 at = in->tcp_at + sizeof(struct tcphdr);
	u32 now = bpf_htonl(milliseconds() + clock);
	u32 options[3];

	if (in->tcp.doff * 4 != sizeof(struct tcphdr) + TIMESTAMPS_ALONE_BYTES)
		return true;
	if (bpf_skb_load_bytes(skb, at, options, sizeof(options)))
		return false;
	return options[0] != bpf_htonl(TIMESTAMPS_ALONE) ||
	       (!bpf_l4_csum_replace(skb, in->tcp_at + CHECK_AT, options[2], now, 4) &&
		!bpf_skb_store_bytes(skb, at + STAMP_ECHO_AT, &now, sizeof(now), 0));
}

/* Returns the clock of the timestamps that the packet echoes, less ours; 0 if it has no timestamps. */
static __noinline u32 clock_echoed(struct __sk_buff *skb, const struct inner *in)
{
	struct bpf_tcp_req_attrs stamps = {};

	return read_timestamps(skb, in, &stamps) && stamps.tstamp_ok ? stamps.rcv_tsecr - milliseconds() : 0;
}

/* Has the packet acknowledge what its client has acknowledged since it sent the packet. */
static __noinline bool acknowledge_now(struct __sk_buff *skb, struct inner *in, u32 ack)
{
	__be32 now = bpf_htonl(ack);

	if (!is_before(bpf_ntohl(in->tcp.ack_seq), ack))
		return true;
	if (bpf_l4_csum_replace(skb, in->tcp_at + CHECK_AT, in->tcp.ack_seq, now, 4) ||
	    bpf_skb_store_bytes(skb, in->tcp_at + ACK_AT, &now, sizeof(now), 0))
		return false;
	in->tcp.ack_seq = now;
	return true;
}

/*
 * Brings a packet that may have waited up to date before a socket begins with it, because that socket is made of its
 * numbers. `ack` and `clock` are those of the old socket at the point where it ended.
 */
static __always_inline bool begin_as_now(struct __sk_buff *skb, struct inner *in, u32 ack, u32 clock)
{
	return acknowledge_now(skb, in, ack) && echo_now(skb, in, clock);
}

/* Returns the note of a connection that is on its way between two sockets here; or 0. */
static __noinline struct passing *find_passing(const struct lccp_header *h)
{
	struct tcb_key flow = flow_of(h);
	struct passing *found = bpf_map_lookup_elem(&passing, &flow);

	return found && moment() - found->door.since < PASSING_FOR ? found : 0;
}

/*
 * Forgets the note of a connection that was on its way here. If the connection goes elsewhere, what comes behind goes
 * there as well.
 */
static __noinline void forget_passing(const struct lccp_header *h)
{
	struct tcb_key flow = flow_of(h);

	bpf_map_delete_elem(&passing, &flow);
}

/*
 * Has the packet end its socket, which expected `a->end`. A clone of it, with this mark, comes in once more behind
 * that.
 */
static __always_inline int end_and_come_again(struct arrival *a, struct inner *in, u32 mark)
{
	if (!unwrap(a, in))
		return TCX_DISCARD;
	a->skb->mark = mark;
	if (bpf_clone_redirect(a->skb, a->skb->ifindex, BPF_F_INGRESS))
		return TCX_DISCARD;
	a->skb->mark = 0;
	return END_SOCKET;
}

/*
 * Forgets the note when the new socket is there. If that socket ends before all has come to it, the connection has
 * ended: no other packet makes a socket. `is_all`: all that the old one had has come.
 */
static __noinline void settle_note(const struct lccp_header *h, struct door *d, bool is_all)
{
	struct tcb_key flow = flow_of(h);
	struct passing *last = bpf_map_lookup_elem(&passing, &flow);
	/* The connection may be on its way to the agent once more, with the last of what is owed here. */
	bool is_its = last && last->door.owed == d->owed && !((last->door.flags ^ d->flags) & DOOR_READING);

	if (is_all)
		d->owes = 0;
	if (is_its)
		bpf_map_delete_elem(&passing, &flow);
}

/* Gives the connection on `sk` to another socket of this node, which begins with this packet and the door `begun`. */
static __noinline int pass_to_socket(struct arrival *a, const struct lccp_header *h, struct inner *in, struct bpf_sock *sk,
				     const struct door *begun)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	u32 mark = begun->flags & DOOR_READING ? mark_behind(a) : MARK_OF_AGENT;
	struct tcb_key flow = flow_of(h);
	struct passing on = { .door = *begun };

	if (!tcp)
		return TCX_DISCARD;
	on.tcb = part_of(tcp);
	on.tcb.options |= aware_option(sk);
	on.tcb.be_cwnd = begun->be_cwnd;
	on.clock = tcp->tsoffset;
	on.ack = bpf_ntohl(in->tcp.ack_seq);
	on.door.since = moment();
	if (bpf_map_update_elem(&passing, &flow, &on, BPF_ANY))
		return TCX_DISCARD;
	return end_and_come_again(a, in, mark);
}

/*
 * Notes the packet's window, and its timestamp if that is the newest: the agent's frames bear the newest timestamp that
 * its socket was shown, and the last window.
 */
static __noinline void note_last(struct __sk_buff *skb, const struct inner *in, struct door *d)
{
	struct bpf_tcp_req_attrs stamps = {};

	if (!d)
		return;
	d->be_window = in->tcp.window;
	if (!read_timestamps(skb, in, &stamps) || !stamps.tstamp_ok)
		return;
	if (!(d->flags & DOOR_STAMPED) || (int)(stamps.rcv_tsval - d->tsval) > 0)
		d->tsval = stamps.rcv_tsval;
	d->flags |= DOOR_STAMPED;
}

/* Returns the door of a connection that the agent is to have, to read the request that this packet begins. */
static __always_inline struct door reading_door(struct arrival *a, const struct inner *in, __be32 asker)
{
	u32 seq = bpf_ntohl(in->tcp.seq);
	struct door d = {
		.request = seq,
		.head_end = seq,
		.next = seq,
		.body = NOT_FOLLOWED,
		.pool = NO_POOL,
		.asker = asker,
		.flags = DOOR_READING,
		.owes = 1,
		.since = moment(),
		.heard = moment(),
		.owed = seq + payload_of(in),
		.counted = bpf_ntohl(in->tcp.ack_seq),
	};

	note_last(a->skb, in, &d);
	return d;
}

/* Begins the agent's door of a connection that comes with an ADOPT. `flags` are added to the door's. */
static __noinline void begin_to_read(struct arrival *a, const struct lccp_header *h, const struct inner *in, u32 flags)
{
	struct door d = reading_door(a, in, h->be_data);

	d.flags |= flags;
	d.attempt = h->tcb.attempt;
	if (h->tcb.attempt)
		d.flags |= DOOR_CHOSEN;
	keep_door(h, &d);
}

/*
 * Whether a program listens at this address and port of this node. No connection has port 0, so the look-up finds none,
 * but only a listener.
 */
static __noinline bool is_listened_to(struct arrival *a, const struct inner *in, __be32 address, __be16 port)
{
	struct bpf_sock *found = lookup(a->skb, in->ip.saddr, address, 0, port);

	if (!found)
		return false;
	bool listens = found->state == STATE_LISTEN;
	bpf_sk_release(found);
	return listens;
}

/* Whether the agent listens. It does not while its process is being restarted. */
static __always_inline bool is_agent_there(struct arrival *a, const struct inner *in)
{
	return is_listened_to(a, in, bpf_htonl(LOOPBACK), bpf_htons(a->settings->reader_port));
}

/* Whether a server listens for the connection's service. */
static __always_inline bool is_server_there(struct arrival *a, const struct inner *in)
{
	return is_listened_to(a, in, in->ip.daddr, in->tcp.dest);
}

/*
 * Gives the connection from the server to the agent. While the agent does not listen, the connection stays with its
 * server, and its client sends the packet again. If its socket here ended, nobody would have the connection.
 */
static __noinline int pass_to_agent(struct arrival *a, const struct lccp_header *h, struct inner *in, struct bpf_sock *sk)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	struct door *d = door_of(sk, tcp, h);

	if (!tcp || !d)
		return TCX_DISCARD;
	/* The packet has come round twice: both times the server's program had the socket in use. */
	if (rounds_of(a) > 1)
		return discard(a, COUNTER_DS_DOOR_LATER);
	if (!is_agent_there(a, in))
		return discard(a, COUNTER_DS_UNASSIGNED);
	settle_at_door(d, tcp, in);
	struct door reads = reading_door(a, in, d->asker);
	if (a->broken)
		reads.flags |= DOOR_BROKEN;
	reads.attempt = attempt_of(d);
	reads.pool = d->pool;
	reads.generation = d->generation;
	reads.be_cwnd = window_to_give(tcp);
	return pass_to_socket(a, h, in, sk, &reads);
}

/* Gives the connection from the agent to the server, with the request that the agent has read. */
static __noinline int pass_to_server(struct arrival *a, const struct lccp_header *h, struct inner *in, struct bpf_sock *sk)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	const struct have_read *read = bpf_sk_storage_get(&have_read, sk, 0, 0);
	const struct door *d = door_of(sk, tcp, h);

	if (!tcp || !d || !read)
		return TCX_DISCARD;
	struct door begun = *d;
	begun.flags = DOOR_FROM_AGENT | (read->flags & READ_SWITCHES ? DOOR_SWITCHES : 0);
	begun.owes = 1;
	begun.owed = a->end;
	begun.busy = 0;
	begun.requests = 1;
	count(a->counters, COUNTER_DS_DOOR_READ);
	int verdict = pass_to_socket(a, h, in, sk, &begun);
	if (verdict == END_SOCKET)
		tally_at_door(begun.route, begun.pool, 0, COUNT_REQUEST);
	return verdict;
}

/* Begins the new socket of a connection with this packet. The connection is on its way between two sockets here. */
static __noinline int take_passing(struct arrival *a, struct lccp_header *h, struct inner *in, const struct passing *on)
{
	if (!on)
		return TCX_DISCARD;
	if (!(on->door.flags & DOOR_READING) && !is_of_agent(a))
		return discard(a, COUNTER_DS_DOOR_LATER);
	if (!begin_as_now(a->skb, in, on->ack, on->clock))
		return discard(a, COUNTER_DS_DOOR_UNRENEWED);
	h->tcb = on->tcb;
	h->be_data = on->door.asker;
	keep_door(h, &on->door);
	return on->door.flags & DOOR_READING ? ADOPT_TO_READ : ADOPT_HERE;
}

/*
 * Has the agent adopt a connection whose door has begun. While the agent's process is being restarted, nobody else may
 * answer: the client sends the packet again.
 */
static __always_inline int adopt_to_read(struct arrival *a, struct lccp_header *h, struct inner *in)
{
	if (!assign_own(a, h, in, a->settings->reader_port))
		return discard(a, COUNTER_DS_UNASSIGNED);
	/* The connection will leave this socket as well: what comes meanwhile is bound to it (keep_for()). */
	handed_over_now();
	expect(a->skb, h, in);
	return pass_in(a, in, COUNTER_DS_DOOR_READS);
}

/* Returns what the agent has read, if its request begins with this packet and nothing has come since; or 0. */
static __noinline const struct have_read *find_read(struct arrival *a, struct bpf_sock *sk, const struct inner *in,
						    const struct door *d)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	/* A clone that has come back has found the agent's socket busy: the agent sends it in again. */
	if (!tcp || !d || a->sent_in != AGENT_METADATA || a->mark || bpf_ntohl(in->tcp.seq) != d->request ||
	    (sk->state != STATE_ESTABLISHED && sk->state != STATE_CLOSE_WAIT))
		return 0;
	const struct have_read *read = bpf_sk_storage_get(&have_read, sk, 0, 0);
	if (!read || tcp->write_seq != bpf_ntohl(in->tcp.ack_seq))
		return 0;
	a->end = tcp->rcv_nxt;
	/*
	 * TCP may be about to have more, of the same batch: then it would not believe a RST at the number that the
	 * socket expected before.
	 */
	if (is_before(a->end, d->next) && moment() - d->since <= FORGET_AFTER)
		return 0;
	return read->end == a->end ? read : 0;
}

#endif
