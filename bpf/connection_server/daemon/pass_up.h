/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Passes a frame up to this node's kernel, after user space has run it through the connection server's program and that
 * program has passed it to this very node. The connection server's program must not see the frame again.
 *
 * A data server's daemon sends its own frames in the same way (enum metadata).
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
