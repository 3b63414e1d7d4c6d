/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Doors are kept with the sockets of their connections, or by the connections' ports while the sockets are being
 * made.
 */
#ifndef BATON_DATA_SERVER_DOOR_DOORS_H
#define BATON_DATA_SERVER_DOOR_DOORS_H

#include "data_server/door/door.h"
#include "data_server/handover/handed_over.h"
#include "data_server/packet.h"

/*
 * What a function has found out about a packet that it is not done with; all other values are verdicts (enum
 * tcx_action_base). The caller carries it out, because it has the stack to do so.
 */
enum found {
	LET_IN = 100,              /* TCP may see it; only `a->kept` bytes of its payload if that is not 0 */
	BEGINS_HERE,               /* it is an ADOPT, or as good as one: judge whose its connection is */
	ADOPT_HERE,                /* an ADOPT for this data server: a socket is made of it */
	ADOPT_TO_READ,             /* an ADOPT whose request the agent is to read: the agent adopts */
	IS_READ,                   /* the agent has its connection */
	HAND_ON,                   /* the connection goes to data server `a->next` with it */
	TO_AGENT,                  /* the connection goes to the agent here, which reads the request that it begins */
	TO_SERVER,                 /* the connection goes from the agent to the server, with a request that was read */
	END_SOCKET,                /* it becomes the RST that ends its socket, which expects `a->end` */
	PASS_ON,                   /* an ADOPT that is for data server `a->next` */
	AWAITS_WORD,               /* an ADOPT about whose request a dispatcher is to be asked */
	REFUSE,                    /* an ADOPT that is for nobody */
	REFUSE_DESERTED,           /* an ADOPT for this data server, where no server listens */
	RECEIVED_BEFORE,           /* its data is here up to `a->end`: the node that keeps it is told */
	NOT_YET,                   /* it waits */
	NOT_HERE,                  /* its connection is not here, and was not */
};

SOCKET_STORAGE(doors, struct door);

/*
 * Doors of connections whose sockets are being made. They stay when the sockets have been made (DOOR_BORN), as they
 * were at that time.
 */
MAP(doors_begun, LRU_HASH, 65536, struct tcb_key, struct door);

enum {
	BEGUN_FOR = 256,           /* in 1.05 ms: longer than TCP takes to make a socket, if it makes one */
	FORGET_AFTER = 64,         /* in 1.05 ms: longer than a packet is on its way from here to TCP */
	LATE_FOR = GIVEN_TICKS << (TICK_SHIFT - SENT_SHIFT), /* GIVEN_TICKS in 1.05 ms */
};

/* Whether the owners of this service's connections judge their requests at a door. */
static __always_inline bool is_owners(__be32 cluster, __be16 port)
{
	const struct service *service = service_at(cluster, port);

	return service && service->flags & SERVICE_OWNER;
}

static __always_inline u32 moment(void)
{
	return bpf_ktime_get_coarse_ns() >> SENT_SHIFT;
}

/*
 * Returns the door of the connection on this socket, and moves it there from `doors_begun` if it is new. 0: the
 * connection began before there were doors, or the new door's sequence numbers are not this socket's.
 */
static __noinline struct door *door_of(struct bpf_sock *sk, const struct tcp_sock *tcp, const struct lccp_header *h)
{
	struct door *d = bpf_sk_storage_get(&doors, sk, 0, 0);

	if (d || !tcp)
		return d;
	struct tcb_key flow = flow_of(h);
	struct door *begun = bpf_map_lookup_elem(&doors_begun, &flow);
	/* Another processor may have moved it to the socket meanwhile. */
	if (!begun || begun->flags & DOOR_BORN)
		return bpf_sk_storage_get(&doors, sk, 0, 0);
	/*
	 * TCP may be at work on another processor, but has come to the door's request at least. If not, the socket is
	 * an earlier connection's.
	 */
	if (is_before(tcp->rcv_nxt, begun->request))
		return 0;
	/* Without memory for it on the socket, another processor has taken it there. */
	if (begun->busy)
		return begun;
	d = bpf_sk_storage_get(&doors, sk, begun, BPF_SK_STORAGE_GET_F_CREATE);
	/*
	 * Another processor may be making the first storage of this socket, and then this door (-EAGAIN and -EEXIST in
	 * kernel/bpf/bpf_local_storage.c), so the third try finds it.
	 */
	if (!d)
		d = bpf_sk_storage_get(&doors, sk, begun, BPF_SK_STORAGE_GET_F_CREATE);
	if (!d)
		d = bpf_sk_storage_get(&doors, sk, begun, BPF_SK_STORAGE_GET_F_CREATE);
	/* There is no memory: the door stays where it is. */
	if (!d)
		return begun;
	begun->flags |= DOOR_BORN;
	return d;
}

/* Keeps the door of a connection whose socket is being made. */
static __noinline void keep_door(const struct lccp_header *h, const struct door *d)
{
	struct tcb_key flow = flow_of(h);

	bpf_map_update_elem(&doors_begun, &flow, d, BPF_ANY);
	/* The connection may have been here before and given away: that note no longer holds. */
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
 * Takes the door; false if it does not become free in time. Packets of one connection may come to several processors by
 * different ways, but only one processor at a time has a packet at the door. That one leaves the door soon, because
 * nothing else runs on it meanwhile; so the others wait for it.
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

/*
 * Whether the connection is to leave its socket with this packet. Its door stays taken until that is done, so that
 * another processor neither lets in what goes elsewhere, nor sends the connection to a second place.
 */
static __always_inline bool is_to_leave(int verdict)
{
	return verdict == HAND_ON || verdict == TO_AGENT || verdict == TO_SERVER;
}

/*
 * Whether the connection has left this socket a moment ago, so that TCP is about to end it. If TCP has not done so after
 * FORGET_AFTER, it has dropped the RST, as it does if the packet's checksum is wrong.
 */
static __always_inline bool has_just_left(struct door *d)
{
	if (!(d->flags & DOOR_LEFT))
		return false;
	if (moment() - d->since <= FORGET_AFTER)
		return true;
	d->flags &= ~DOOR_LEFT;
	return false;
}

/* Whether the socket may still be in the making. If it takes longer than BEGUN_FOR, TCP has refused to make it. */
static __always_inline bool is_young(const struct door *begun)
{
	return moment() - begun->since < BEGUN_FOR;
}

/* Returns the door of a connection whose socket is being made; or 0. */
static __noinline const struct door *being_adopted(const struct lccp_header *h)
{
	struct tcb_key flow = flow_of(h);
	const struct door *begun = bpf_map_lookup_elem(&doors_begun, &flow);

	return begun && !(begun->flags & DOOR_BORN) && is_young(begun) ? begun : 0;
}

/* Forgets the door of a connection for which no socket was made. */
static __noinline void forget_beginning(const struct lccp_header *h)
{
	struct tcb_key flow = flow_of(h);

	bpf_map_delete_elem(&doors_begun, &flow);
}

/*
 * Notes whether a connection that was idle when it came here has had its first request, for beginning_of() when the
 * socket has ended.
 */
static __noinline void note_has_asked(const struct lccp_header *h, bool has_asked)
{
	struct tcb_key flow = flow_of(h);
	struct door *begun = bpf_map_lookup_elem(&doors_begun, &flow);

	if (begun && begun->flags & DOOR_BORN)
		begun->requests = has_asked;
}

/* Whether a socket here had the request that begins at `seq`. */
static __noinline bool has_been_here(const struct lccp_header *h, u32 seq)
{
	struct tcb_key flow = flow_of(h);
	const struct door *begun = bpf_map_lookup_elem(&doors_begun, &flow);

	return begun && begun->flags & DOOR_BORN && begun->request - seq < BEHIND_SEQ;
}

#endif
