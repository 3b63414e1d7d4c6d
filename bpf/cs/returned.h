/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* KEEP and NONE: a connection is not where the connection server believed it to be. */
#ifndef BATON_CS_RETURNED_H
#define BATON_CS_RETURNED_H

#include "answer.h"
#include "claim.h"
#include "go_on.h"
#include "keep.h"
#include "moved.h"
#include "strict.h"

/* The daemon resets the client: this frame did not come from it, so the way back is the kernel's to find. */
static __always_inline int leave_reset_to_daemon(struct packet *p, struct tcb *tcb)
{
	settle(tcb, tcb->last_ack);
	bpf_map_delete_elem(&tcbs, &p->flow);
	return XDP_PASS;
}

static __always_inline int have_reset_for(struct packet *p, struct tcb *tcb, enum closed_reason why)
{
	close_for(p, tcb, why);
	return leave_reset_to_daemon(p, tcb);
}

/* Nobody can ever say where a response on this connection ends; or what it lacks does not come any more. */
static __always_inline int have_reset(struct packet *p, struct tcb *tcb)
{
	return have_reset_for(p, tcb, tcb->missing & MISSING_COUNT ? CLOSED_LOST : CLOSED_UNKNOWN);
}

/* Nobody has the connection any more. */
static __always_inline int have_orphan_reset(struct packet *p, struct tcb *tcb)
{
	count(p->counters, COUNTER_CS_ORPHAN_RESET);
	return leave_reset_to_daemon(p, tcb);
}

/* The owner could not let go, and the request is for another pool. Its client sends it again, and it is tried again. */
static __noinline int withheld(struct packet *p, struct lccp_header *h)
{
	struct tcb *tcb = answered_entry(p, h);
	struct carried c;

	if (!tcb || !is_strict(tcb) || !read_carried(p, h, &c) || bpf_ntohl(c.tcp.seq) != tcb->request_seq)
		return drop(p, COUNTER_LCCP_MISMATCH);
	/* The next one may have said already that it has not got the connection (NONE). */
	if (is_from(p, tcb->previous))
		swap_owners(tcb);
	else if (!is_from(p, tcb->owner) || tcb->state & TCB_ADOPTING || !is_unsure(tcb))
		return drop(p, COUNTER_LCCP_MISMATCH);
	tally_kept(tcb, bpf_ntohl(h->be_data));
	if (h->be_data != bpf_htonl(LCCP_KEEP_UNKNOWN)) {
		take_back(tcb, tcb->request_seq);
		/* Some of it may be in user space, too, which has acknowledged that: what comes behind that is the rest. */
		tcb->state |= TCB_PUNTED;
		return drop(p, COUNTER_CS_WITHHELD);
	}
	if (tcb->options & LCCP_TCB_ELSEWHERE)
		return have_reset(p, tcb);
	/* Its owner is of the right pool, and gets this request when it comes again. The next one is asked about (BEGINS). */
	tcb->state &= ~(TCB_ADOPTING | TCB_RELEASED);
	pin(p, tcb);
	return drop(p, COUNTER_CS_KEPT);
}

/* Who was the owner when BEGINS left: a request has come since that it may be about to hand over. */
static __always_inline bool was_asked(struct packet *p, const struct tcb *tcb)
{
	return is_from(p, tcb->owner) || (tcb->state & TCB_ADOPTING && is_from(p, tcb->previous));
}

/* The owner's answer to BEGINS. A request begins there, and comes again; or none does any more. */
static __noinline int told(struct packet *p, struct lccp_header *h)
{
	struct tcb *tcb = answered_entry(p, h);
	u32 why = bpf_ntohl(h->be_data);

	struct carried c;

	if (!tcb || !read_carried(p, h, &c))
		return drop(p, COUNTER_LCCP_MISMATCH);
	if (why == LCCP_KEEP_MISSING && is_strict(tcb) && was_asked(p, tcb)) {
		if (ends_as_missing(tcb, (u32)bpf_be64_to_cpu(h->tcb.be_resume), is_from(p, tcb->owner)))
			return have_reset_for(p, tcb, CLOSED_CHANGED);
		return drop(p, COUNTER_CS_MISSING);
	}
	if (!is_from(p, tcb->owner))
		return drop(p, COUNTER_LCCP_MISMATCH);
	if (why == LCCP_KEEP_COME) {
		count(p->counters, COUNTER_CS_COME);
		return pass_to_daemon(p);
	}
	u32 payload = bpf_ntohs(c.ip.tot_len) - (c.ip.ihl + c.tcp.doff) * 4;
	bool elsewhere = !continues(tcb, &c.tcp);
	if (elsewhere) {
		count(p->counters, COUNTER_CS_JUMPED);
		note_jump(tcb, bpf_ntohl(c.tcp.seq) + payload, bpf_ntohl(c.tcp.ack_seq));
		if (!(tcb->state & TCB_PINNED))
			pin(p, tcb);
	}
	if (why == LCCP_KEEP_MORE)
		return XDP_DROP;
	if (!is_unsure(tcb))
		return drop(p, COUNTER_LCCP_MISMATCH);
	if (why == LCCP_KEEP_TUNNEL) {
		tcb->options |= LCCP_TCB_TUNNEL;
		return drop(p, COUNTER_CS_TUNNEL);
	}
	if (why == LCCP_KEEP_UNKNOWN)
		return have_reset(p, tcb);
	begin_at(tcb, (u32)bpf_be64_to_cpu(h->tcb.be_resume), h->tcb.attempt);
	count(p->counters, COUNTER_CS_UNPINNED);
	return GO_ON_WITH_CARRIED;
}

/*
 * The owner refused a handover and has delivered the request itself, or a RELEASE, which was about none: it
 * stays the owner. Late, when the connection has moved on, this is wrong, and the next packet's NONE takes it
 * back.
 */
static __noinline int kept(struct packet *p, struct lccp_header *h)
{
	struct tcb *tcb = answered_entry(p, h);

	if (!tcb || !is_from(p, tcb->previous))
		return drop(p, COUNTER_LCCP_MISMATCH);
	swap_owners(tcb);
	if (h->be_data != bpf_htonl(LCCP_KEEP_BUSY))
		tally_kept(tcb, bpf_ntohl(h->be_data));
	tcb->state &= ~(TCB_ADOPTING | TCB_RELEASED);
	/* Of a request it is answered so only where the server has switched to another protocol. */
	if (is_strict(tcb) && h->be_data != bpf_htonl(LCCP_KEEP_BUSY))
		stay(tcb);
	return drop(p, COUNTER_CS_KEPT);
}

enum returned {
	RETURNED_REQUEST = 1,      /* the current request itself */
	RETURNED_EARLIER,          /* bytes in front of it, which the client sends first as long as nobody has them */
	RETURNED_DATA,             /* other bytes of the client */
	RETURNED_EMPTY,
};

/* What has come back. */
static __noinline enum returned what_returned(struct packet *p, struct lccp_header *h, const struct tcb *tcb)
{
	struct carried c;

	if (!read_carried(p, h, &c) || bpf_ntohs(c.ip.tot_len) <= (c.ip.ihl + c.tcp.doff) * 4)
		return RETURNED_EMPTY;
	int before = tcb->request_seq - bpf_ntohl(c.tcp.seq);
	return !before ? RETURNED_REQUEST : before > 0 ? RETURNED_EARLIER : RETURNED_DATA;
}

/* The current request was to come from a data server that is dead, and has not. */
static __always_inline bool is_lost_with(const struct data_server *previous, const struct tcb *tcb, enum returned what)
{
	return previous && previous->flags & DATA_SERVER_PRESENT && previous->flags & DATA_SERVER_DEAD &&
	       (tcb->state & (TCB_ADOPTING | TCB_RESUMING)) == TCB_ADOPTING &&
	       (what == RETURNED_REQUEST || (what == RETURNED_EARLIER && is_strict(tcb)));
}

/*
 * More of the first request has come to its owner ahead of the ADOPT: on a card with several queues another processor may
 * have the one than the other. It goes there once more.
 */
static __always_inline bool came_ahead(struct packet *p, const struct lccp_header *h, const struct tcb *tcb)
{
	return (tcb->state & (TCB_ADOPTING | TCB_RESUMING)) == TCB_ADOPTING && tcb->previous == NO_DATA_SERVER &&
	       h->be_data == bpf_htonl(LCCP_NONE_PLAIN) && is_from(p, tcb->owner);
}

/*
 * The owner does not have the connection. If there was a handover, one of its messages was lost: the one
 * before is the owner, and gets the packet. A packet that comes back a second time ends here, and the
 * client's next one tries again. Where nobody had it before, another connection server has moved it
 * on: CLAIM finds it. Not while it is being adopted, because then its owner may be about to have it;
 * and not when the client has ended it.
 */
static __noinline int none(struct packet *p, struct lccp_header *h)
{
	struct tcb *tcb = answered_entry(p, h);

	if (!tcb && h->tcb.attempt)
		return unclaimed(p);
	if (!tcb)
		return drop(p, COUNTER_LCCP_MISMATCH);
	const struct data_server *owner = data_server(tcb->owner);
	if (owner && came_ahead(p, h, tcb)) {
		h->tcb.attempt = 1;
		count(p->counters, COUNTER_CS_AHEAD);
		return send_on(p, h, owner, LCCP_FORWARD, 0);
	}
	enum returned what = is_strict(tcb) ? what_returned(p, h, tcb) : RETURNED_REQUEST;
	/* It begins there with the current request, and who had what was before that is dead. */
	if (what == RETURNED_EARLIER && is_from(p, tcb->owner) && tcb->previous == NO_DATA_SERVER &&
	    (tcb->state & (TCB_ADOPTING | TCB_RESUMING)) == TCB_ADOPTING)
		return have_orphan_reset(p, tcb);
	/* On the way of a connection other packets find nothing where it has gone already, or has not come to yet. */
	const struct data_server *to = data_server(tcb->previous);
	bool is_lost = is_from(p, tcb->owner) && is_lost_with(to, tcb, what_returned(p, h, tcb));
	if (tcb->state & TCB_ADOPTING && what != RETURNED_REQUEST && !is_lost)
		return drop(p, COUNTER_LCCP_MISMATCH);
	/* Who was to hand it over was not the owner. Whoever is, the client's next packet finds it: see claim.h. */
	if (tcb->state & TCB_ADOPTING && tcb->options & LCCP_TCB_ELSEWHERE && is_from(p, tcb->previous)) {
		settle(tcb, tcb->last_ack);
		bpf_map_delete_elem(&tcbs, &p->flow);
		return drop(p, COUNTER_CS_NONE);
	}
	if (!is_from(p, tcb->owner))
		return drop(p, COUNTER_LCCP_MISMATCH);
	count(p->counters, COUNTER_CS_NONE);
	/* While it moves, who is to have it has nothing yet: whether it ever comes there the daemon finds out. */
	if (!to || !(to->flags & DATA_SERVER_PRESENT) || is_moving(tcb))
		return tcb->state & (TCB_ADOPTING | TCB_RESUMING | TCB_FIN | TCB_RST) ? XDP_DROP : claim_anew(p, h);
	/* Nor can it. Of the request that is kept the daemon knows whether it began in the middle of a response. */
	if (is_lost)
		return is_kept(&p->flow, tcb) ? drop(p, COUNTER_CS_ORPHAN_WAITS)
					      : have_orphan_reset(p, tcb);
	swap_owners(tcb);
	/* The request has come to nobody, and must not come to this one. */
	if (tcb->options & LCCP_TCB_ELSEWHERE) {
		tally_none(tcb);
		go_back(tcb);
		return XDP_DROP;
	}
	bool again = h->tcb.attempt++;
	if (again)
		tally_moved(tcb);
	else
		tally_none(tcb);
	/* Somebody has answered the request: should it be neither of the two, they are not asked in turns. */
	if (!(tcb->state & TCB_ADOPTING))
		tcb->previous = NO_DATA_SERVER;
	/* Of bytes that were not judged this one is asked when they come again. */
	if (again || what == RETURNED_DATA)
		return XDP_DROP;
	return send_on(p, h, to, LCCP_FORWARD, 0);
}

#endif
