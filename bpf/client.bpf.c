// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* An aware client: an object of its own, since client hosts are no nodes and have no cluster key. */
#include "aware_client/sockets.h"
#include "aware_client/way.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
