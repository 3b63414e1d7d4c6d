/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decides whether a packet may cause a CLAIM to the data servers. Anybody can forge such a packet, and each costs one
 * message for every data server of the service. So packets are told apart by what speaks for them, each class has a
 * budget of messages of its own, and no class can spend that of another:
 *
 *   proved    the client echoes a timestamp of ours, which a stranger cannot know
 *   likely    the client's address had a connection found lately; or the same segment came before and was refused, as a
 *             client's retransmission does and a flood of random packets does not
 *   stranger  anything else: a client without timestamps, or a forger
 *
 * Once half of a budget is spent, each source (a /24 network, by a hash) is limited to a small share of it, so that
 * one loud source leaves room for others. Each processor counts for itself, and starts again at zero with each tick of
 * the clock.
 */
#ifndef BATON_CONNECTION_SERVER_FIND_CLAIM_BUDGET_H
#define BATON_CONNECTION_SERVER_FIND_CLAIM_BUDGET_H

#include "connection_server/begin/timestamp.h"
#include "include/bounds.h"
#include "include/clock.h"
#include "include/hash.h"
#include "xdp/packet.h"

enum {
	SOURCE_SHARE = 16,         /* a source's share is a budget divided by this */
	WHOLE_SHARE = 8,           /* a budget divided by this is for CLAIMs with data, unless proved */
	BELIEVED_TICKS = 256,      /* how long the client's address of a connection that was found is believed */
	REFUSAL_SHIFT = 27,        /* refusals are dated in units of 134 ms: clients retransmit later */
	REFUSAL_UNITS = 224,       /* a refusal counts for 30 s: clients wait no longer */
};

static __always_inline u32 source_of(const struct packet *p)
{
	u32 network = bpf_ntohl(unmap_address(p->flow.client)) >> 8;

	return mix(mix(network ^ secret_of(p->settings)) ^ network) & (CLAIM_SOURCES - 1);
}

/*
 * The place in which a refusal of this segment is noted. `what` is set to the value that identifies the segment there;
 * its lowest byte is left for the time.
 */
static __always_inline u32 *refusal_of(const struct packet *p, u32 *what)
{
	u32 ports = (u32)p->flow.be_client_port << 16 | p->flow.be_cluster_port;
	u32 flow = hash_client(p->flow.client, ports ^ secret_of(p->settings));
	u32 seq = p->frame.tcp->seq;
	u32 slot = WRAPPED(mix(flow ^ seq), CLAIM_REFUSALS);

	*what = mix(flow + seq * 0x9e3779b9) & ~0xff;
	return bpf_map_lookup_elem(&claim_refusals, &slot);
}

static __always_inline u8 refusal_time(void)
{
	return bpf_ktime_get_coarse_ns() >> REFUSAL_SHIFT;
}

static __always_inline bool was_refused_before(const struct packet *p)
{
	u32 what, *noted = refusal_of(p, &what);

	if (!noted || (*noted & ~0xff) != what || !*noted)
		return false;
	u8 age = refusal_time() - (u8)*noted;
	return age > 0 && age <= REFUSAL_UNITS;
}

static __always_inline void note_refusal(const struct packet *p)
{
	u32 what, *noted = refusal_of(p, &what);

	if (noted && (*noted & ~0xff) != what)
		*noted = what | refusal_time();
}

/* Remembers the flow's client address: a connection of it was found. */
static __always_inline void believe(const struct tcb_key *flow)
{
	u32 now = tick_now();
	__be32 client = unmap_address(flow->client);

	bpf_map_update_elem(&believed, &client, &now, BPF_ANY);
}

static __always_inline bool is_believed(const struct tcb_key *flow)
{
	__be32 client = unmap_address(flow->client);
	const u32 *when = bpf_map_lookup_elem(&believed, &client);

	return when && tick_now() - *when < BELIEVED_TICKS;
}

static __noinline u32 class_of(struct packet *p)
{
	if (echoes_us(p))
		return CLAIM_PROVED;
	return is_believed(&p->flow) || was_refused_before(p) ? CLAIM_LIKELY : CLAIM_STRANGER;
}

/* How many messages the CLAIMs of this class may cause on one processor in a tick. */
static __always_inline u32 budget_of(u32 class)
{
	switch (class) {
	case CLAIM_PROVED:
		return CLAIM_BUDGET_PROVED;
	case CLAIM_LIKELY:
		return CLAIM_BUDGET_LIKELY;
	default:
		return CLAIM_BUDGET_STRANGER;
	}
}

static __always_inline enum counter limit_of(u32 class)
{
	switch (class) {
	case CLAIM_PROVED:
		return COUNTER_CS_CLAIM_LIMIT;
	case CLAIM_LIKELY:
		return COUNTER_CS_CLAIM_LIMIT_LIKELY;
	default:
		return COUNTER_CS_CLAIM_LIMIT_STRANGER;
	}
}

/* What this processor has spent in this tick; 0 if it cannot be known. */
static __always_inline struct claims *claims_now(void)
{
	u32 zero = 0, now = tick_now();
	struct claims *c = bpf_map_lookup_elem(&claims, &zero);

	if (c && c->tick != now) {
		__builtin_memset(c, 0, sizeof(*c));
		c->tick = now;
	}
	return c;
}

/*
 * Whether the packet's source may cause `cost` more messages, which are then counted. The limit `most` holds only once
 * half of the budget is spent.
 */
static __always_inline bool is_within_share(const struct packet *p, u32 cost, u32 most, bool half_spent)
{
	u32 source = source_of(p), now = tick_now();
	struct claim_source *s = bpf_map_lookup_elem(&claim_sources, &source);

	if (!s)
		return false;
	if (s->tick != now) {
		s->tick = now;
		s->sent = 0;
	}
	if (half_spent && s->sent + cost > most)
		return false;
	s->sent += cost;
	return true;
}

enum {
	CLAIM_WHOLE = 0,           /* CLAIM goes with the client's data */
	CLAIM_HEADERS = -1,        /* CLAIM goes without it */
};

/*
 * How the data servers are asked: CLAIM_WHOLE, CLAIM_HEADERS, or if they are not, the counter that says why. With
 * CLAIM_HEADERS the owner says that it has the connection, and the client has to send its data again. That is the
 * price when much is asked for that nothing speaks for.
 */
static __noinline int may_claim(struct packet *p)
{
	struct claims *c = claims_now();
	u32 class = class_of(p);
	u32 cost = 1 + p->settings->data_servers, budget = budget_of(class);

	if (!c)
		return limit_of(class);
	u32 spent = c->spent[WRAPPED(class, 4)];
	if (spent >= budget) {
		note_refusal(p);
		return limit_of(class);
	}
	if (!is_within_share(p, cost, budget / SOURCE_SHARE, spent >= budget / 2)) {
		note_refusal(p);
		return COUNTER_CS_CLAIM_LIMIT_SOURCE;
	}
	c->spent[WRAPPED(class, 4)] = spent + cost;
	return class == CLAIM_PROVED || spent < budget / WHOLE_SHARE ? CLAIM_WHOLE : CLAIM_HEADERS;
}

/*
 * Whether the data servers may be asked for a known connection, whose packet an owner has sent back. It spends
 * CLAIM_PROVED's budget.
 */
static __always_inline bool may_claim_known(const struct settings *s)
{
	struct claims *c = claims_now();

	if (!c || c->spent[CLAIM_PROVED] >= CLAIM_BUDGET_PROVED)
		return false;
	c->spent[CLAIM_PROVED] += 1 + s->data_servers;
	return true;
}

#endif
