/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the agent has read has been acknowledged, so its client does not send it again. The agent's node keeps it, and
 * sends it in again and again, as a client would, until it hears that the connection's socket has it, wherever that is
 * by then:
 *
 *  agent --a frame of the client--> its own node's door --FORWARD, KEPT--> ... --FORWARD, KEPT--> the door of the socket
 *                                                        (ADOPT, KEPT: the request with which the connection has gone)
 *  agent <--map `keeping`------------- its own node's program <--RECEIVED-------------------------- which has it already
 *
 * So if such data is dropped anywhere on its way, that costs time, but no byte is lost.
 */
#ifndef BATON_DATA_SERVER_AGENT_KEPT_H
#define BATON_DATA_SERVER_AGENT_KEPT_H

#include "data_server/door/door.h"
#include "data_server/packet.h"
#include "data_server/plain.h"
#include "data_server/send.h"

/* How far the sockets of connections have received what the agent here keeps of these connections. */
MAP(keeping, LRU_HASH, 65536, struct tcb_key, struct kept);

/* Notes that the connection's socket has all before `end`; or, with `is_gone`, that there is no such socket. */
static __noinline void note_received(const struct lccp_header *h, u32 end, bool is_gone)
{
	struct tcb_key flow = flow_of(h);
	struct kept *before = bpf_map_lookup_elem(&keeping, &flow);

	if (!before)
		return;
	if (is_gone)
		before->gone++;
	else if (is_before(before->received, end))
		before->received = end;
}

/*
 * Returns the node that keeps the packet's data, and sends it until it hears that it has arrived; 0: the client does.
 */
static __always_inline __be32 take_keeper(const struct arrival *a, struct lccp_header *h)
{
	if (is_of_agent(a))
		return own_address(a);
	if (h->command == LCCP_FORWARD)
		return h->flags & LCCP_FLAG_KEPT ? h->be_data : 0;
	if (!is_adopt_again(h))
		return 0;
	__be32 keeper = bpf_htonl(bpf_be64_to_cpu(h->tcb.be_resume));
	h->tcb.be_resume = 0;
	return keeper;
}

/*
 * Tells the node that keeps the packet's data that all before `a->end` is here, and need not be sent again; or, with
 * `is_gone`, that the connection is not here.
 */
static __noinline int tell_received(struct arrival *a, struct lccp_header *h, struct inner *in, bool is_gone)
{
	enum counter how = is_gone ? COUNTER_DS_DOOR_GONE : COUNTER_DS_DOOR_REPEATED;
	struct passage back = { peer(a->keeper), a->keeper, how };

	if (a->keeper == own_address(a)) {
		note_received(h, a->end, is_gone);
		return discard(a, how);
	}
	if (!make_room(a, in))
		return discard(a, COUNTER_DS_NO_WAY);
	h->receptor = LCCP_RECEPTOR_DS;
	h->command = LCCP_RECEIVED;
	h->flags = is_gone ? LCCP_FLAG_GONE : 0;
	h->be_data = is_gone ? 0 : bpf_htonl(a->end);
	h->tcb = (struct lccp_tcb){};
	return send_message(a, h, in, &back);
}

/* Handles RECEIVED. */
static __noinline int hear_received(struct arrival *a, const struct lccp_header *h)
{
	note_received(h, bpf_ntohl(h->be_data), h->flags & LCCP_FLAG_GONE);
	return discard(a, COUNTER_DS_DOOR_RECEIVED);
}

#endif
