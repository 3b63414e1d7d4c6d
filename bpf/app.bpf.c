// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Virtual TCP sockets: programs of one control group, whose TCP lives on another node. Their sockets are real
 * ones, over loopback, to an agent; these hooks lead them there and show them the addresses that they mean.
 */
#include "app/socket.h"
#include "app/bind.h"
#include "app/connect.h"
#include "app/hold.h"
#include "app/names.h"
#include "app/options.h"
#include "app/events.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
