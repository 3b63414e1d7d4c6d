/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A packet of a connection that has an entry. */
#ifndef BATON_CS_KNOWN_H
#define BATON_CS_KNOWN_H

#include "forwarder.h"
#include "handover.h"
#include "hold.h"
#include "packet.h"
#include "punt.h"
#include "renew.h"
#include "strict.h"

enum {
	AT_COURSE = 400,           /* and the course: what receive_known() says if it is no XDP action */
};

/*
 * A packet that goes on with a connection, and maybe begins a request. An XDP action; or a course that take_course() takes,
 * with a request that is in this processor's text, and the next owner.
 */
static __always_inline int receive_known(struct packet *p, struct tcb *tcb, struct text *text)
{
	enum course course = COURSE_FOLLOW;
	struct request *r = 0;

	bool strict = is_strict(tcb);
	if (tcb->state & TCB_PUNTED && !strict && waits_for_next(p, tcb))
		return XDP_DROP;
	if (strict ? may_be_request(p, tcb) : p->frame.payload && !(tcb->state & TCB_PINNED)) {
		if (is_of_next_request(p, tcb) && is_on_hold())
			return hold_back(p);
		r = blank_request();
	}
	/* User space sends a head again with what its client had got long ago. */
	if (strict && (r || (p->frame.payload && was_read(p))))
		renew_ack(p, tcb);
	if (r)
		course = set_course(p, tcb, r, &text->next);
	switch (course) {
	case COURSE_HAND_OVER:
	case COURSE_UNAVAILABLE:
	case COURSE_REFUSED:
	case COURSE_CLOSED:
		return AT_COURSE + course;
	case COURSE_AGAIN:
		return ask_again(p, tcb);
	case COURSE_COME:
		return ask_what_has_come(p, tcb);
	case COURSE_PUNTED:
	case COURSE_WITHHELD:
		/* It may be the only one to say so, until it has got to its owner. */
		if (strict)
			note_ack(tcb, p->frame.tcp);
		return XDP_DROP;
	default:
		note_packet(tcb, p);
		return follow(p, tcb);
	}
}

static __always_inline int take(enum course course, struct packet *p, struct tcb *tcb, const struct text *text)
{
	switch (course) {
	case COURSE_HAND_OVER:
		return hand_over(p, tcb, &text->request, text->next);
	case COURSE_UNAVAILABLE:
	case COURSE_REFUSED:
		if (was_carried(p))
			return XDP_DROP;
		bpf_map_delete_elem(&tcbs, &p->flow);
		return answer_itself(p, course == COURSE_REFUSED);
	default:
		if (was_carried(p))
			return XDP_DROP;
		settle(tcb, bpf_ntohl(p->frame.tcp->ack_seq));
		bpf_map_delete_elem(&tcbs, &p->flow);
		return send_reset(p);
	}
}

#endif
