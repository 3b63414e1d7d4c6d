/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * LCCP at the switch. Messages to its daemon are verified and passed up. All others are dropped: its program takes
 * none.
 */
#ifndef BATON_SWITCH_RECEIVE_LCCP_H
#define BATON_SWITCH_RECEIVE_LCCP_H

#include "lccp/for_daemon.h"

static __noinline int receive_lccp_at_switch(struct packet *p)
{
	struct lccp_header h;

	if (!is_to_this_node(p))
		return XDP_PASS;
	if (!read_header(p, &h))
		return drop(p, COUNTER_LCCP_SHORT);
	if (!verify_at_xdp(p, &h))
		return XDP_DROP;
	return h.receptor == LCCP_RECEPTOR_DAEMON ? pass_to_daemon(p) : drop(p, COUNTER_LCCP_UNKNOWN);
}

#endif
