// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The one object: all programs over the same maps. */
#include "connection_server/connection_server.h"
#include "connection_server/daemon/pass_up.h"
#include "connection_server/orphans/move.h"
#include "connection_server/orphans/find_flows.h"
#include "connection_server/daemon/sweep.h"
#include "data_server/data_server.h"
#include "data_server/egress.h"
#include "data_server/relay_answer.h"
#include "switch/switch.h"

/* "Dual BSD/GPL" is how the kernel spells a licence under which GPL-only helpers may be called. */
char LICENSE[] SEC("license") = "Dual BSD/GPL";
