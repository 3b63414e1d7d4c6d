/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs by which the daemon handles entries whose data server is dead or drains. baton_find_flows() finds those of them
 * that are not at rest, by a walk in the kernel. baton_change() changes one entry in place, so that what a processor
 * notes in it at the same time is not lost.
 */
#ifndef BATON_CONNECTION_SERVER_ORPHANS_FIND_FLOWS_H
#define BATON_CONNECTION_SERVER_ORPHANS_FIND_FLOWS_H

#include "connection_server/orphans/keep.h"
#include "connection_server/orphans/quiet_point.h"
#include "connection_server/tcb.h"

struct bpf_map;

static long find_entry(struct bpf_map *map, struct tcb_key *flow, struct tcb *tcb, struct find_flows *m)
{
	if ((tcb->owner != m->owner && !(is_moving(tcb) && tcb->previous == m->owner)) || tcb->state & TCB_RST)
		return 0;
	if (is_entry_at_rest(flow, tcb))
		return 0;
	if (m->found >= m->first) {
		u32 index = m->found - m->first;
		struct orphan *orphan = bpf_map_lookup_elem(&orphans, &index);
		if (!orphan)
			return 1;
		orphan->key = *flow;
		orphan->tcb = *tcb;
	}
	m->found++;
	return 0;
}

SEC("syscall")
int baton_find_flows(struct find_flows *argument)
{
	struct find_flows m = *argument;

	m.found = 0;
	bpf_for_each_map_elem(&tcbs, find_entry, &m, 0);
	argument->found = m.found;
	return 0;
}

SEC("syscall")
int baton_change(struct change *change)
{
	struct tcb_key key = change->key;
	struct tcb *tcb = bpf_map_lookup_elem(&tcbs, &key);

	change->found = 0;
	if (!tcb || tcb->owner != change->owner)
		return 0;
	/*
	 * The owner has told where the current request begins. The daemon knows the connection by that number from
	 * here on.
	 */
	const struct kept_request *kept = kept_of(&key, tcb);
	if (kept && kept->request_seq == change->request_seq)
		tcb->request_seq = kept->request_seq;
	if (tcb->request_seq != change->request_seq)
		return 0;
	tcb->previous = NO_DATA_SERVER;
	tcb->owner = change->next;
	tcb->state = (tcb->state & ~change->clear) | change->set;
	change->tcb = *tcb;
	change->found = 1;
	return 0;
}

#endif
