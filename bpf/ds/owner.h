/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The owner of a connection sees to whose each of its requests is. Nobody else need know: the connection server forwards
 * what comes, and the door here (door.h) lets in what this data server is to answer. With a request for another one the
 * connection goes there, as ADOPT, and its socket here ends without a word on the wire; the connection server is told
 * (MOVED). Until it knows, what it sends here is sent on.
 *
 * What one packet does not decide ends its connection.
 */
#ifndef BATON_DS_OWNER_H
#define BATON_DS_OWNER_H

#include "asked.h"
#include "cut.h"
#include "door.h"
#include "end.h"
#include "given.h"
#include "judge.h"
#include "own_cs.h"
#include "packet.h"
#include "plain.h"
#include "send.h"
#include "window.h"
#include "../claimed.h"

/* What is found out about a packet, where it is not done with (enum tcx_action_base): its caller has the stack to do it. */
enum found {
	LET_IN = 100,              /* TCP may see it: `a->kept` bytes of its payload, if not 0 */
	ADOPT_HERE,                /* the same of an ADOPT */
	HAND_ON,                   /* the connection goes to `a->next` with it */
	PASS_ON,                   /* an ADOPT that is for `a->next` */
	REFUSE,                    /* and one that is for nobody */
	NOT_HERE,                  /* its connection is not here, and was not */
};

enum {
	FORGET_AFTER = 64,         /* longer than a packet is on its way from here to TCP; 1.05 ms each */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct door);
} doors SEC(".maps");

/* Of connections whose sockets are being made. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct tcb_key);
	__type(value, struct door);
} doors_begun SEC(".maps");

/* Whether owners see to the requests of this service. */
static __always_inline bool is_owners(__be32 cluster, __be16 port)
{
	const struct service *service = service_at(cluster, port);

	return service && service->flags & SERVICE_OWNER;
}

static __always_inline u32 moment(void)
{
	return bpf_ktime_get_coarse_ns() >> SENT_SHIFT;
}

/* The door of the connection on this socket; 0: it began before there were doors, or elsewhere in its numbers. */
static __noinline struct door *door_of(struct bpf_sock *sk, const struct tcp_sock *tcp, const struct lccp_header *h)
{
	struct door *d = bpf_sk_storage_get(&doors, sk, 0, 0);

	if (d || !tcp)
		return d;
	struct tcb_key flow = flow_of(h);
	struct door *begun = bpf_map_lookup_elem(&doors_begun, &flow);
	/* Another processor may have put it where it belongs meanwhile. */
	if (!begun)
		return bpf_sk_storage_get(&doors, sk, 0, 0);
	/* TCP may be at work on another processor: it has come so far at least, or the socket is an earlier one's. */
	if (is_before(tcp->rcv_nxt, begun->request))
		return 0;
	d = bpf_sk_storage_get(&doors, sk, begun, BPF_SK_STORAGE_GET_F_CREATE);
	/* Or it is making the first storage of this socket (kernel/bpf/bpf_local_storage.c: -EAGAIN). */
	if (!d)
		d = bpf_sk_storage_get(&doors, sk, begun, BPF_SK_STORAGE_GET_F_CREATE);
	/* There is no memory: it stays where it is. */
	if (!d)
		return begun;
	bpf_map_delete_elem(&doors_begun, &flow);
	return d;
}

/* The socket here ends in silence. The client, if it has not gone elsewhere, is reset when nobody claims its connection. */
static __noinline int end_here(struct arrival *a, struct inner *in, const struct tcp_sock *tcp, enum counter why)
{
	if (!unwrap(a, in))
		return TCX_DISCARD;
	in->tcp_at += OUTER_BYTES; /* as become_reset() takes it */
	if (!become_reset(a->skb, in, tcp->rcv_nxt))
		return TCX_DISCARD;
	count(a->counters, why);
	return TCX_GO_ON;
}

/* The entry of this very node's connection server. */
static __noinline void moved_on_here(const struct lccp_header *h, __be32 next)
{
	struct tcb_key flow;
	struct tcb *tcb = own_entry(h, &flow);
	u32 owner = data_server_at(next);

	if (!tcb || !is_this_node(tcb->owner) || owner == NO_DATA_SERVER)
		return;
	settle(tcb, tcb->last_ack);
	give_to(tcb, owner, NO_DATA_SERVER, 1);
}

/* Tells the connection server that sent the packet, or that the ADOPT names, who has the connection now. */
static __noinline void tell_moved(struct arrival *a, struct lccp_header *h, const struct inner *in, __be32 next)
{
	__be32 asker_address = h->be_data;
	const struct data_server *asker = peer(asker_address);

	if (!asker)
		return;
	if (is_own_cs(asker)) {
		moved_on_here(h, next);
		return;
	}
	h->receptor = LCCP_RECEPTOR_CS;
	h->command = LCCP_MOVED;
	h->be_data = next;
	h->be_sequence = 0;
	send_copy(a, h, in, asker, asker_address);
	h->be_data = asker_address;
}

/* With this request the connection is the next one's: it adopts it, and what its socket here has left is nothing. */
static __noinline int hand_on_request(struct arrival *a, struct lccp_header *h, struct inner *in, struct bpf_sock *sk)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	__be32 next_address = a->next, asker = a->asker;
	const struct data_server *next = peer(next_address);

	if (!tcp || !next || !make_room(a, in))
		return discard(a, next ? COUNTER_DS_DOOR_LATER : COUNTER_DS_NO_WAY);
	h->be_body_length = 0;
	h->flags = 0;
	h->tcb = part_of(tcp);
	note_handover(h, in, next_address);
	h->tcb.be_cwnd = window_to_give(tcp);
	h->be_data = asker;
	h->receptor = LCCP_RECEPTOR_DS;
	h->command = LCCP_ADOPT;
	if (!send_copy(a, h, in, next, next_address))
		return TCX_DISCARD;
	tell_moved(a, h, in, next_address);
	return end_here(a, in, tcp, COUNTER_DS_DOOR_HANDED_ON);
}

/*
 * Whether the connection can go: nothing of it is on its way, its server has read all that came, and each request that was
 * let in has its whole response.
 */
static __always_inline bool is_quiet(struct bpf_sock *sk, const struct tcp_sock *tcp, const struct door *d,
				     const struct inner *in)
{
	return sk->state == STATE_ESTABLISHED && tcp->rcv_nxt == bpf_ntohl(in->tcp.seq) && tcp->copied_seq == tcp->rcv_nxt &&
	       tcp->write_seq == bpf_ntohl(in->tcp.ack_seq) && has_answered(sk, tcp->write_seq, d->requests);
}

static __always_inline int hand_on_or_wait(struct arrival *a, struct inner *in, struct bpf_sock *sk, const struct door *d,
					   u16 owner)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	const struct data_server *next = data_server(owner);

	if (!tcp || !next)
		return TCX_DISCARD;
	if (is_quiet(sk, tcp, d, in)) {
		a->next = unmap_address(next->address);
		a->asker = d->asker;
		return HAND_ON;
	}
	if (cannot_be_followed(sk))
		return end_here(a, in, tcp, COUNTER_DS_DOOR_STAYS);
	return discard(a, COUNTER_DS_DOOR_WITHHELD);
}

/* What of the packet is before `end` is delivered. */
static __always_inline int let_in_until(struct arrival *a, const struct inner *in, u32 end)
{
	u32 seq = bpf_ntohl(in->tcp.seq), bytes = payload_of(in);

	a->kept = 0;
	if (is_before(end, seq + bytes)) {
		a->kept = end - seq;
		count(a->counters, COUNTER_DS_DOOR_CUT);
	}
	return LET_IN;
}

/* A request begins with this packet, and TCP has all that is before it. */
static __always_inline int judge_next(struct arrival *a, struct lccp_header *h, struct inner *in, struct bpf_sock *sk,
				      struct door *d)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	struct judged j = {};

	if (!tcp)
		return TCX_DISCARD;
	if (a->asker)
		d->asker = a->asker;
	switch (judge_request(a, h, in, d, &j)) {
	case JUDGED_HERE:
		let_in(d, j.head, j.body);
		d->since = moment();
		d->pool = j.pool;
		d->generation = j.generation;
		d->requests++;
		count(a->counters, COUNTER_DS_DOOR_REQUEST);
		return let_in_until(a, in, d->next);
	case JUDGED_ELSEWHERE:
		return hand_on_or_wait(a, in, sk, d, j.owner);
	case JUDGED_NOBODY:
		return end_here(a, in, tcp, COUNTER_DS_DOOR_NOBODY);
	default:
		return end_here(a, in, tcp, COUNTER_DS_DOOR_UNREADABLE);
	}
}

/* The current request, of which TCP has nothing yet, comes again. */
static __always_inline int judge_again(struct arrival *a, const struct inner *in, const struct tcp_sock *tcp, struct door *d)
{
	struct request *r = blank_request();

	if (r && read_request_inside(a->skb, in, r) && is_let_in(d, r->end, r->body))
		return let_in_until(a, in, d->next);
	if (moment() - d->since > FORGET_AFTER && forget_request(d, tcp->rcv_nxt))
		d->requests--;
	return discard(a, COUNTER_DS_DOOR_CHANGED);
}

/* Whether a socket is being made of the connection. */
static __noinline bool is_being_adopted(const struct lccp_header *h)
{
	struct tcb_key flow = flow_of(h);

	return bpf_map_lookup_elem(&doors_begun, &flow) != 0;
}

/* TCP has not seen what is before it, which may be in the same batch: once more through here, behind that. */
static __always_inline int put_behind_batch(struct arrival *a)
{
	if (a->rounds > 1)
		return discard(a, COUNTER_DS_DOOR_LATER);
	a->skb->mark = a->rounds ? MARK_BEHIND_AGAIN : MARK_BEHIND_BATCH;
	count(a->counters, COUNTER_DS_DOOR_BATCH);
	return bpf_redirect(a->skb->ifindex, BPF_F_INGRESS);
}

/* What becomes of a packet of the connection on `sk`: LET_IN, HAND_ON, or it is done with. */
static __noinline int at_door(struct arrival *a, struct lccp_header *h, struct inner *in, struct bpf_sock *sk)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	u32 seq = bpf_ntohl(in->tcp.seq), bytes = payload_of(in);

	a->kept = 0;
	/* Of its first packet, whatever that is: then it need not be kept elsewhere any more. */
	struct door *d = door_of(sk, tcp, h);
	if (!bytes || !tcp)
		return LET_IN;
	if (!d)
		return end_here(a, in, tcp, COUNTER_DS_DOOR_UNKNOWN);
	switch (course_at_door(d, tcp->rcv_nxt, seq, bytes)) {
	case DOOR_DELIVER:
		return LET_IN;
	case DOOR_CUT:
		return let_in_until(a, in, d->next);
	case DOOR_CUT_OLD:
		return let_in_until(a, in, d->request);
	case DOOR_AFTER_BATCH:
		return put_behind_batch(a);
	case DOOR_JUDGE:
		return judge_next(a, h, in, sk, d);
	case DOOR_JUDGE_AGAIN:
		return judge_again(a, in, tcp, d);
	default:
		return discard(a, COUNTER_DS_DOOR_LATER);
	}
}

/* Takes what is around the packet off, and what of it is not let in. */
static __noinline int pass_in(struct arrival *a, struct inner *in, enum counter how)
{
	if (!unwrap(a, in))
		return TCX_DISCARD;
	if (a->kept && !cut(a->skb, in, in->tcp_at, a->kept))
		return TCX_DISCARD;
	count(a->counters, how);
	return TCX_GO_ON;
}

#endif
