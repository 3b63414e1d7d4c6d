/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A client's packet that a data server's answer has brought back: see go_on.h. Its Ethernet header's addresses answer nobody. */
#ifndef BATON_CONNECTION_SERVER_CARRIED_H
#define BATON_CONNECTION_SERVER_CARRIED_H

#include "xdp/packet.h"

/* Stands in front of such a frame, as XDP metadata: none that has come by a card has any. */
static __always_inline bool was_carried(const struct xdp_md *ctx)
{
	const u32 *at = (void *)(long)ctx->data_meta;

	return (void *)(at + 1) <= (void *)(long)ctx->data && *at == CARRIED_METADATA;
}

#endif
