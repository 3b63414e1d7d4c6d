/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Maps: what is known of this client's connections to services. The process that attaches the programs writes settings
 * and services.
 */
#ifndef BATON_AWARE_CLIENT_MAPS_H
#define BATON_AWARE_CLIENT_MAPS_H

#include "abi/aware_client.h"
#include "include/kernel.h"

MAP(client_settings, ARRAY, 1, u32, struct client_settings);
MAP(client_services, HASH, MAX_CLIENT_SERVICES, struct client_service, u32);

/* What is known of a connection to a service. It is kept in the storage of the connection's socket. */
struct client_socket {
	__be32 server;             /* its data server; 0: not known, or not to be used */
	u32 is_back;               /* 1: its packets go by the connection server for good, whatever options come */
	u32 expected;              /* the next byte that was missing when the client last sent */
	u32 segments;              /* segments with data that had come when that byte began to be missing */
	u64 since;                 /* when that byte began to be missing, in ns */
	u32 probes;                /* probes sent since the last segment came */
	u32 heard;                 /* segments that had come before the first of these probes */
};

SOCKET_STORAGE(client_sockets, struct client_socket);

/* The data servers of connections that may have no socket anymore, for packets that the kernel still sends of these. */
MAP(client_flows, LRU_HASH, CLIENT_FLOWS, struct client_flow, __be32);

MAP(client_counters, PERCPU_ARRAY, 1, u32, struct client_counters);

static __always_inline void count_client(enum client_counter what)
{
	u32 zero = 0;
	struct client_counters *counters = bpf_map_lookup_elem(&client_counters, &zero);

	if (counters)
		counters->value[what]++;
}

static __always_inline const struct client_settings *own_settings(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&client_settings, &zero);
}

#endif
