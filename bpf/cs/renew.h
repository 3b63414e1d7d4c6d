/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A packet that user space held back, or the network, acknowledges what its client had then. The client has acknowledged
 * more since, and may not say so again where it counts on it that this packet has come. Its owner hands over only who has
 * heard the whole response before.
 */
#ifndef BATON_CS_RENEW_H
#define BATON_CS_RENEW_H

#include "packet.h"
#include "../checksum.h"

static __noinline void renew_ack(struct packet *p, const struct tcb *tcb)
{
	struct tcphdr *tcp = p->frame.tcp;
	__be32 before = tcp->ack_seq, now = bpf_htonl(tcb->last_ack);

	if (!tcp->ack || (int)(bpf_ntohl(before) - tcb->last_ack) >= 0)
		return;
	tcp->ack_seq = now;
	tcp->check = checksum_changed(tcp->check, before, now);
	count(p->counters, COUNTER_CS_RENEWED);
}

#endif
