/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* NONE: the connection is not here. */
#ifndef BATON_DATA_SERVER_NONE_H
#define BATON_DATA_SERVER_NONE_H

#include "data_server/local_connection_server.h"
#include "data_server/packet.h"
#include "data_server/send.h"

/*
 * Answers with NONE, around the packet, to the connection server that sent it. That one believed that the connection is
 * here; it may know better where the connection is. A packet that came back before (`attempt`) ends here.
 */
static __always_inline int send_none(struct arrival *a, struct lccp_header *h, const struct inner *in)
{
	const struct data_server *asker = peer(a->sender);

	if (!asker || h->tcb.attempt)
		return discard(a, COUNTER_DS_NO_SOCKET);
	if (is_own_cs(asker))
		return none_here(a, h, in);
	h->receptor = LCCP_RECEPTOR_CS;
	h->command = LCCP_NONE;
	h->be_data = 0;
	if (!make_message(a, h, in, asker, a->sender))
		return TCX_DISCARD;
	count(a->counters, COUNTER_DS_NONE);
	return bpf_redirect(asker->ifindex, 0);
}

#endif
