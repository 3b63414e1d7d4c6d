/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* LCCP, the messages between nodes, at the connection server. Those to the daemon are passed up. */
#ifndef BATON_CONNECTION_SERVER_RECEIVE_LCCP_H
#define BATON_CONNECTION_SERVER_RECEIVE_LCCP_H

#include "connection_server/find/moved.h"
#include "connection_server/find/none.h"
#include "connection_server/find/refused.h"
#include "lccp/for_daemon.h"
#include "lccp/seal.h"
#include "xdp/packet.h"

static __noinline int receive_lccp(struct packet *p)
{
	struct text *scratch = text_of_this_cpu();

	/* The header is copied to `scratch`, because the stack has no room for it. */
	if (!scratch)
		return XDP_ABORTED;
	struct lccp_header *h = &scratch->received;
	if (!is_to_this_node(p))
		return XDP_PASS;
	if (!read_header(p, h))
		return drop(p, COUNTER_LCCP_SHORT);
	/*
	 * A message is verified once, where it is consumed. The data server's program runs behind this one on this
	 * node.
	 */
	if (h->receptor != LCCP_RECEPTOR_CS && p->settings->roles & ROLE_DS)
		return XDP_PASS;
	if (!verify_at_xdp(p, h))
		return XDP_DROP;
	if (h->receptor == LCCP_RECEPTOR_DAEMON)
		return pass_to_daemon(p);
	if (h->receptor != LCCP_RECEPTOR_CS || h->be_body_length)
		return drop(p, COUNTER_LCCP_UNKNOWN);
	switch (h->command) {
	case LCCP_REFUSED:
		return refused(p, h);
	case LCCP_NONE:
		return none(p, h);
	case LCCP_MOVED:
		return moved(p, h);
	default:
		return drop(p, COUNTER_LCCP_UNKNOWN);
	}
}

#endif
