/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * By MOVED the owner of a connection tells the connection server which data server has it. If the connection server is
 * on this very node, its entry is changed here.
 */
#ifndef BATON_DATA_SERVER_HANDOVER_MOVED_H
#define BATON_DATA_SERVER_HANDOVER_MOVED_H

#include "connection_server/find/moved_on.h"
#include "data_server/local_connection_server.h"
#include "data_server/packet.h"
#include "data_server/send.h"

/* Changes the entry of this very node's connection server. */
static __noinline void moved_on_here(struct arrival *a, const struct lccp_header *h, const struct inner *in, __be32 next)
{
	struct tcb_key flow;
	struct tcb *tcb = own_entry(h, &flow);
	u32 owner = data_server_at(next);

	if (!tcb || owner == NO_DATA_SERVER)
		return;
	if (note_moved_on(tcb, owner, is_this_node(holder(tcb)), h, &in->tcp))
		count(a->counters, COUNTER_CS_MOVED_ON);
}

/*
 * Tells the connection server that `next` has the connection. `h->be_data` is that connection server: it sent the
 * packet, or the ADOPT names it.
 */
static __noinline void tell_moved(struct arrival *a, struct lccp_header *h, const struct inner *in, __be32 next)
{
	__be32 asker_address = h->be_data;
	const struct data_server *asker = peer(asker_address);

	if (!asker)
		return;
	if (is_own_cs(asker)) {
		moved_on_here(a, h, in, next);
		return;
	}
	h->receptor = LCCP_RECEPTOR_CS;
	h->command = LCCP_MOVED;
	h->be_data = next;
	h->be_sequence = 0;
	send_copy(a, h, in, asker, asker_address);
	h->be_data = asker_address;
}

#endif
