/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * By ALIVE a connection server that has not heard of this node's daemon for a while asks whether the host lives. This
 * program answers: the daemon may be dead while the servers are not.
 */
#ifndef BATON_DATA_SERVER_ALIVE_H
#define BATON_DATA_SERVER_ALIVE_H

#include "data_server/fence.h"
#include "data_server/packet.h"
#include "data_server/refuse.h"
#include "lccp/seal.h"

static __always_inline int answer_alive(struct arrival *a, const struct peer_keys *shared, struct lccp_header *h,
					u32 inner_bytes)
{
	if (h->be_data)
		hear_of_own_death();
	h->receptor = LCCP_RECEPTOR_DAEMON;
	seal_at_ds(a, shared->key[0], h, between(own_address(a), a->sender), inner_bytes);
	if (!turn_around(a->skb) || bpf_skb_store_bytes(a->skb, LCCP_AT, h, sizeof(*h), 0))
		return TCX_DISCARD;
	count(a->counters, COUNTER_DS_ALIVE);
	return bpf_redirect(a->skb->ifindex, 0);
}

#endif
