// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Redirectable sockets say in the handshake that they speak EOP. An object of its own: it belongs to the ends
 * of connections, which need not be nodes.
 */
#include "eop/announce.h"
#include "eop/handshake.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
