/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs of an aware client and the process that attaches them agree on. It is kept apart from `abi.h`
 * because nothing else shares it.
 */
#ifndef BATON_ABI_AWARE_CLIENT_H
#define BATON_ABI_AWARE_CLIENT_H

enum client_limit {
	MAX_CLIENT_SERVICES = 256,
	CLIENT_FLOWS = 16384,          /* connections whose last packets are led to their data server without a
	                                  socket */
};

/* Addresses and masks are in network byte order. */
struct client_settings {
	unsigned long long netns;      /* cookie of the network namespace whose sockets these programs handle */
	unsigned int lan;              /* network of the interface: an address in it needs no router */
	unsigned int lan_mask;
	unsigned int within;           /* network in which data servers are believed to be */
	unsigned int within_mask;      /* 0: data servers may be anywhere */
	unsigned int silence;          /* seconds without a packet after which a data server is asked whether it is
	                                  there; 0: never */
	unsigned int reserved;
};

struct client_service {
	unsigned int address;
	unsigned short be_port;
	unsigned short reserved;
};

struct client_flow {
	unsigned int client;
	unsigned int cluster;
	unsigned short be_client_port;
	unsigned short be_cluster_port;
};

/* Names are the metric's label: keep them stable. */
enum client_counter {
	CLIENT_AWARE,                  /* connections to services; their first packets say that this client is aware */
	CLIENT_TOLD,                   /* of these, a data server has said where it is */
	CLIENT_MOVED,                  /* of these, another data server has said that it has the connection now */
	CLIENT_NOT_BELIEVED,           /* ignored: the named address is where no data server is, or the packet is
	                                  outside the connection's numbers */
	CLIENT_DIRECT,                 /* packets sent to a data server on this LAN */
	CLIENT_WRAPPED,                /* packets sent to a data server behind a router, inside another packet */
	CLIENT_NO_ROOM,                /* dropped: no room for another header */
	CLIENT_RETURNED,               /* connections returned to the connection server, because the data server did
	                                  not answer */
	CLIENT_COUNTERS,
};

struct client_counters {
	unsigned long long value[CLIENT_COUNTERS];
};

#endif
