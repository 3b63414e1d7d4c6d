/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client's packet that a data server's answer has brought back: see go_on.h. Its Ethernet addresses do not lead
 * back to the client.
 */
#ifndef BATON_CONNECTION_SERVER_CARRIED_H
#define BATON_CONNECTION_SERVER_CARRIED_H

#include "xdp/packet.h"

/*
 * Whether this frame was carried in a message and taken out here (go_on.h). XDP metadata in front of the frame says
 * so; a frame that has come by a card has none.
 */
static __always_inline bool was_carried(const struct xdp_md *ctx)
{
	const u32 *at = (void *)(long)ctx->data_meta;

	return (void *)(at + 1) <= (void *)(long)ctx->data && *at == CARRIED_METADATA;
}

#endif
