// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Virtual TCP sockets: programs of one control group, whose TCP lives on another node. Their sockets are real
 * ones, over loopback, to an agent; these hooks lead them there and show them the addresses that they mean.
 */
#include "virtual_sockets/socket.h"
#include "virtual_sockets/bind.h"
#include "virtual_sockets/connect.h"
#include "virtual_sockets/hold.h"
#include "virtual_sockets/names.h"
#include "virtual_sockets/options.h"
#include "virtual_sockets/events.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
