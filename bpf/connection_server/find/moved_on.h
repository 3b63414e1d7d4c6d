/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The entry of a connection that its owner has handed on: by a message (moved.h), or on this very node
 * (data_server/handover/moved.h).
 */
#ifndef BATON_CONNECTION_SERVER_FIND_MOVED_ON_H
#define BATON_CONNECTION_SERVER_FIND_MOVED_ON_H

#include "connection_server/tally.h"
#include "connection_server/tcb.h"

/*
 * Whether the carried packet lies behind the request with which the connection was handed over. The message says where
 * that begins.
 */
static __always_inline bool is_behind_request(const struct lccp_header *h)
{
	return bpf_be64_to_cpu(h->tcb.be_resume) >> 32 == MOVED_BEHIND;
}

/*
 * The sequence number of the request with which the connection was handed over. Only the packet that begins there is
 * adopted, because not every packet behind it may begin a connection.
 */
static __always_inline u32 moved_with(const struct lccp_header *h, const struct tcphdr *tcp)
{
	return is_behind_request(h) ? (u32)bpf_be64_to_cpu(h->tcb.be_resume) : bpf_ntohl(tcp->seq);
}

/*
 * Notes with which request the owner was given the connection. Until the client has something of the response, the
 * request is adopted if it comes again, because its ADOPT may be lost. A packet behind the request may be older than the
 * entry, so its acknowledgement need not be the entry's.
 */
static __always_inline void note_moved_with(struct tcb *tcb, const struct lccp_header *h, const struct tcphdr *tcp)
{
	if (!is_behind_request(h) && bpf_ntohl(tcp->ack_seq) != tcb->last_ack)
		return;
	tcb->request_seq = moved_with(h, tcp);
	tcb->attempt = h->tcb.attempt;
	tcb->nones = 0;
	tcb->state |= TCB_ADOPTING | TCB_WAITING;
}

/*
 * The index of the data server that has the connection, as far as is known here, and hands it on. While a response moves,
 * that is the one before, until it has let the connection go.
 */
static __always_inline u16 holder(const struct tcb *tcb)
{
	return is_moving(tcb) ? tcb->previous : tcb->owner;
}

/* Whether the connection was handed over with a later request than the one with which its entry's owner was given it. */
static __always_inline bool went_later(const struct tcb *tcb, const struct lccp_header *h, const struct tcphdr *tcp)
{
	return (int)(moved_with(h, tcp) - tcb->request_seq) > 0;
}

/*
 * Notes that the connection is at data server `next`, as the MOVED around this packet says. `is_from_holder`: the data
 * server that has it has told so. Any other is believed only if it names the entry's owner and a later request than the
 * entry does: then the entry knows that owner by an older message. While a response is to go on at another data server,
 * only a later request proves that the response is over. False if the message changes nothing.
 */
static __always_inline bool note_moved_on(struct tcb *tcb, u16 next, bool is_from_holder, const struct lccp_header *h,
					  const struct tcphdr *tcp)
{
	bool resumes = tcb->state & TCB_RESUMING;

	if (!is_from_holder) {
		if (next != tcb->owner || resumes || !went_later(tcb, h, tcp))
			return false;
		note_moved_with(tcb, h, tcp);
		return true;
	}
	if (resumes && (next == tcb->owner || next == holder(tcb) || !went_later(tcb, h, tcp)))
		return false;
	tcb->state &= ~(resumes ? TCB_RESUMING | TCB_ADOPTING : 0);
	tally_connection(next, true);
	give_to(tcb, next, NO_DATA_SERVER);
	note_moved_with(tcb, h, tcp);
	return true;
}

#endif
