/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A dispatcher on another node says which data server of a pool is to answer a request (SERVICE_ASKS). The door asks for its word
 * where this node would choose: for the first request of a connection, and where a connection does not stay.
 *
 *  door:    an answer is known, and good ------------------> its data server is to answer: this one, or another
 *           none is ----> the request waits (early.h), and what is asked about it goes to user space with it
 *  daemon:  QUERY to the dispatcher; REPLY, or its time is over: the answer, or that there is none, is known for a while
 *  door:    the request comes again, and finds that
 *
 * Nobody depends on it: without an answer this node chooses, and so it does while the dispatcher counts as dead, or the daemon gives
 * no sign of life. Whom another data server has chosen asks no more.
 */
#ifndef BATON_DATA_SERVER_DOOR_DISPATCHER_H
#define BATON_DATA_SERVER_DOOR_DISPATCHER_H

#include "data_server/packet.h"
#include "routing/dispatcher.h"
#include "routing/request.h"
#include "routing/route.h"

/* Until when the daemon is known to ask (coarse monotonic, ns); the daemon's to write. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} asking SEC(".maps");

/* What a dispatcher says, if it is no data server. */
enum no_word {
	WORD_NONE = NO_DATA_SERVER,        /* nothing: this node chooses */
	WORD_AWAITED = NO_DATA_SERVER - 1, /* nothing yet: it is to be asked, and the request waits */
};

static __always_inline bool does_daemon_ask(const struct settings *settings)
{
	u32 zero = 0;
	u64 *until = bpf_map_lookup_elem(&asking, &zero);

	/* It is the agent's node that has what waits come again. */
	return settings->reader_port && until && bpf_ktime_get_coarse_ns() < *until;
}

/* What requests that this one is like have in common. Its place is in this processor's text. */
static __noinline struct answer_key *name_question(const struct arrival *a, const struct lccp_header *h, const struct pool *pool,
						   u32 index, const struct request *r)
{
	struct text *text = text_of_this_cpu();

	if (!text || !r || !pool)
		return 0;
	text->question = (struct answer_key){
		.hash = hash_host_and_path(r->host, hash_request(r)) | 1,
		.client = pool->policy == POLICY_CLIENT ? hash_client(h->flow.client, a->settings->hash_seed) : 0,
		.pool = index,
	};
	return &text->question;
}

/* What the dispatcher of a service says about a request for this pool: an index of a data server, or enum no_word. */
static __noinline u32 word_of_dispatcher(struct arrival *a, const struct lccp_header *h, u32 service, u32 index,
					 const struct request *r)
{
	const struct pool *pool = pool_at(index);

	if (!r || !pool || !pool->choices || (!r->path && !r->target))
		return WORD_NONE;
	const struct answer_key *key = name_question(a, h, pool, index, r);
	if (!key)
		return WORD_NONE;
	const struct answer *answer = bpf_map_lookup_elem(&answers, key);
	if (answer && bpf_ktime_get_coarse_ns() < answer->until) {
		if (is_member(pool, answer->owner)) {
			count(a->counters, COUNTER_DS_ANSWERED);
			return answer->owner;
		}
		if (answer->owner == NO_DATA_SERVER) {
			count(a->counters, COUNTER_DS_UNANSWERED);
			return WORD_NONE;
		}
	}
	if (dispatcher_rests(service)) {
		count(a->counters, COUNTER_DS_ASK_DEAD);
		return WORD_NONE;
	}
	if (!does_daemon_ask(a->settings)) {
		count(a->counters, COUNTER_DS_ASK_STALE);
		return WORD_NONE;
	}
	return WORD_AWAITED;
}

#endif
