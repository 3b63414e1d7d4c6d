/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A dispatcher on another node says which data server of a pool is to answer a request (SERVICE_ASKS). The door asks it
 * where this node would choose: for the first request of a connection, and where a connection does not stay.
 *
 *  door:    an answer is known, and good ------------------> its data server is to answer: this one, or another
 *           no answer is known ----> the request waits (early.h), and the question about it goes to user space with it
 *  daemon:  sends QUERY to the dispatcher; after REPLY or a timeout, the answer or its lack is known for a while
 *  door:    the request comes again, and finds the answer
 *
 * Nothing depends on the dispatcher. This node chooses itself if there is no answer, while the dispatcher counts as
 * dead, and while the daemon gives no sign of life. A data server that another one has chosen does not ask again.
 */
#ifndef BATON_DATA_SERVER_DOOR_DISPATCHER_H
#define BATON_DATA_SERVER_DOOR_DISPATCHER_H

#include "data_server/packet.h"
#include "routing/dispatcher.h"
#include "routing/request.h"
#include "routing/route.h"

/* The time until which the daemon is known to ask (coarse monotonic, ns). Only the daemon writes it. */
MAP(asking, ARRAY, 1, u32, u64);

/* What word_of_dispatcher() returns if the dispatcher names no data server. */
enum no_word {
	WORD_NONE = NO_DATA_SERVER,        /* no answer: this node chooses */
	WORD_AWAITED = NO_DATA_SERVER - 1, /* no answer yet: the dispatcher is to be asked, and the request waits */
};

static __always_inline bool does_daemon_ask(const struct settings *settings)
{
	u32 zero = 0;
	u64 *until = bpf_map_lookup_elem(&asking, &zero);

	/* Only a node with an agent has what waits come again. */
	return settings->reader_port && until && bpf_ktime_get_coarse_ns() < *until;
}

/*
 * Returns the key under which the answer to this request is kept; requests that get the same answer have the same key.
 * It lies in this processor's text. 0: it cannot be made.
 */
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

/*
 * Returns what the dispatcher of a service says about a request for this pool: the index of a data server, or an enum
 * no_word.
 */
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
