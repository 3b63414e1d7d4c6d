// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The one object: all programs over the same maps. */
#include "cs/cs.h"
#include "cs/pass_up.h"
#include "cs/move.h"
#include "cs/muster.h"
#include "cs/sweep.h"
#include "ds/ds.h"
#include "ds/head.h"
#include "ds/relay_answer.h"
#include "switch/switch.h"

/* "Dual BSD/GPL" is how the kernel spells a licence under which GPL-only helpers may be called. */
char LICENSE[] SEC("license") = "Dual BSD/GPL";
