/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way up of a frame that user space ran through the connection server's program, and that this very node is to have:
 * that program has done all that it does with it, and must not do it again.
 */
#ifndef BATON_CONNECTION_SERVER_DAEMON_PASS_UP_H
#define BATON_CONNECTION_SERVER_DAEMON_PASS_UP_H

#include "xdp/packet.h"

SEC("xdp")
int baton_pass_up(struct xdp_md *ctx)
{
	return XDP_PASS;
}

#endif
