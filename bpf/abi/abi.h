/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every struct and constant that two parties must agree on: the wire (LCCP) and the maps
 * (programs and daemon). The Rust types are generated from the BTF of these files (crates/abi),
 * so constants are enums: a #define never reaches BTF.
 *
 * Addresses are 16 bytes everywhere; IPv4 is written as v4-mapped (::ffff:a.b.c.d). Where 32 bits must
 * do, a *short address*, in network byte order, tells the few addresses of a cluster apart: an IPv4
 * address as it is, an IPv6 address by its four words XORed. Two that are alike cannot be configured.
 * Fields named be_* hold network byte order; all others are host order.
 */
#ifndef BATON_ABI_ABI_H
#define BATON_ABI_ABI_H

#include "abi/connection_server.h"
#include "abi/counters.h"
#include "abi/daemons.h"
#include "abi/data_server.h"
#include "abi/lccp.h"
#include "abi/settings.h"

#endif
