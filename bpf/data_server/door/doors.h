/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the doors of connections are kept: with their sockets, or by the ports of those that are being made. */
#ifndef BATON_DATA_SERVER_DOOR_DOORS_H
#define BATON_DATA_SERVER_DOOR_DOORS_H

#include "data_server/door/door.h"
#include "data_server/handover/handed_over.h"
#include "data_server/packet.h"

/* What is found out about a packet, where it is not done with (enum tcx_action_base): its caller has the stack to do it. */
enum found {
	LET_IN = 100,              /* TCP may see it: `a->kept` bytes of its payload, if not 0 */
	BEGINS_HERE,               /* an ADOPT, or as good as one: whose its connection is is to be judged */
	ADOPT_HERE,                /* LET_IN of an ADOPT */
	ADOPT_TO_READ,             /* or the agent is to read what it begins: it adopts */
	IS_READ,                   /* the agent has its connection */
	HAND_ON,                   /* the connection goes to `a->next` with it */
	TO_AGENT,                  /* or from the server here to the agent, which reads the request that it begins */
	TO_SERVER,                 /* or back, with a request that has been read */
	END_SOCKET,                /* it becomes the RST that ends its socket, which expects `a->end` */
	PASS_ON,                   /* an ADOPT that is for `a->next` */
	AWAITS_WORD,               /* one of which a dispatcher is to be asked */
	REFUSE,                    /* and one that is for nobody */
	RECEIVED_BEFORE,           /* what it brings is here up to `a->end`: who keeps it is told */
	NOT_YET,                   /* it waits */
	NOT_HERE,                  /* its connection is not here, and was not */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct door);
} doors SEC(".maps");

/* Of connections whose sockets are being made; and of those that have been made (DOOR_BORN), as they were then. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct tcb_key);
	__type(value, struct door);
} doors_begun SEC(".maps");

enum {
	BEGUN_FOR = 256,           /* longer than a socket takes that is made at all; 1.05 ms each */
	FORGET_AFTER = 64,         /* longer than a packet is on its way from here to TCP; the same */
};

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
	if (!begun || begun->flags & DOOR_BORN)
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
	begun->flags |= DOOR_BORN;
	return d;
}

/* The door of a connection whose socket is being made. */
static __noinline void keep_door(const struct lccp_header *h, const struct door *d)
{
	struct tcb_key flow = flow_of(h);

	bpf_map_update_elem(&doors_begun, &flow, d, BPF_ANY);
	/* It may have been here before: now it is again. */
	bpf_map_delete_elem(&given, &flow);
}

enum {
	TURN_TRIES = 4096,         /* some microseconds, longer than a packet is at a door */
};

struct turn_wait {
	struct door *door;
	bool is_taken;
};

static __always_inline bool try_door(struct door *d)
{
	return !__sync_val_compare_and_swap(&d->busy, 0, 1);
}

static long await_door(u32 index, struct turn_wait *w)
{
	w->is_taken = try_door(w->door);
	return w->is_taken;
}

/*
 * One processor at a time has a packet at a door: they may come to several, by different ways. Who has it goes on at once, as
 * nothing else runs there meanwhile; so the others wait for it.
 */
static __noinline bool take_door(struct door *d)
{
	if (!d)
		return false;
	struct turn_wait wait = { .door = d };

	if (try_door(d))
		return true;
	bpf_loop(TURN_TRIES, await_door, &wait, 0);
	return wait.is_taken;
}

static __always_inline void leave_door(struct door *d)
{
	__sync_fetch_and_sub(&d->busy, 1);
}

/* TCP may have refused to make the socket. */
static __always_inline bool is_young(const struct door *begun)
{
	return moment() - begun->since < BEGUN_FOR;
}

/* The door of a connection of which a socket is being made; or 0. */
static __noinline const struct door *being_adopted(const struct lccp_header *h)
{
	struct tcb_key flow = flow_of(h);
	const struct door *begun = bpf_map_lookup_elem(&doors_begun, &flow);

	return begun && !(begun->flags & DOOR_BORN) && is_young(begun) ? begun : 0;
}

/* No socket was made of it. */
static __noinline void forget_beginning(const struct lccp_header *h)
{
	struct tcb_key flow = flow_of(h);

	bpf_map_delete_elem(&doors_begun, &flow);
}

/* Whether a socket here had the request that begins at `seq`. */
static __noinline bool has_been_here(const struct lccp_header *h, u32 seq)
{
	struct tcb_key flow = flow_of(h);
	const struct door *begun = bpf_map_lookup_elem(&doors_begun, &flow);

	return begun && begun->flags & DOOR_BORN && begun->request - seq < BEHIND_SEQ;
}

#endif
