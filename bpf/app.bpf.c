// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Virtual TCP sockets on an application node: the TCP of the programs in one control group is on another node. Their
 * sockets are real ones, over loopback, to an agent. These hooks lead them to it, and show them the addresses that they
 * asked for or that their clients have.
 */
#include "virtual_sockets/socket.h"
#include "virtual_sockets/bind.h"
#include "virtual_sockets/connect.h"
#include "virtual_sockets/hold.h"
#include "virtual_sockets/names.h"
#include "virtual_sockets/options.h"
#include "virtual_sockets/events.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
