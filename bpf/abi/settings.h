/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the daemon tells the programs: settings, services, pools, routes and nodes; also the limits of all maps. */
#ifndef BATON_ABI_SETTINGS_H
#define BATON_ABI_SETTINGS_H

#include "abi/lccp.h"

enum limit {
	MAX_SERVICES = 64,
	MAX_POOLS = 128,
	MAX_HOSTS = 64,                /* host patterns of all services */
	MAX_ROUTES = 8192,             /* of all services, hosts by paths */
	HOST_BYTES = 64,               /* longest host name of a route, with the byte that ends it */
	PATH_BYTES = 120,              /* longest path of a route */
	MAX_LARGE = 16384,             /* paths of large content, for all services together */
	MAX_DATA_SERVERS = 256,
	MAX_INTERFACES = 4,            /* interfaces of a node that its programs are attached to */
	MAX_PEERS = 512,               /* nodes of all roles */
	ALSO_MACS = 4,                 /* MAC addresses that a node has besides its interface's own */
	WINDOW = 1024,                 /* messages of a channel that its two ends remember */
	SEND_BUFFER_MESSAGES = 8192,   /* messages of all channels that can be sent again */
	SENT_FRAME_BYTES = 1600,
	CHOICES_PER_POOL = 16381,      /* prime: the Maglev table size */
	CHOICE_BANKS = 2,              /* one is read while the daemon writes the other */
	STRAYS = 4096,
	USED_COOKIE_SET_BITS = 17,     /* 131,072 sets */
	USED_COOKIES_PER_SET = 16,     /* a power of two */
	/*
	 * Messages that the CLAIMs of each processor may cause in a tick, by class: see
	 * connection_server/find/claim_budget.h.
	 */
	CLAIM_BUDGET_PROVED = 65536,
	CLAIM_BUDGET_LIKELY = 16384,
	CLAIM_BUDGET_STRANGER = 8192,
	CLAIM_SOURCES = 4096,          /* sources that are told apart; a power of two */
	CLAIM_REFUSALS = 1 << 18,      /* entries for refused packets, chosen by a hash; a power of two */
	CLAIM_BELIEVED = 16384,        /* addresses of clients whose connections were found */
	GIVEN_FLOWS = 131072,          /* connections that a data server remembers to have given away */
	YIELDS = 16384,                /* connections that a data server is about to give away */
	BEGUN_FLOWS = 131072,          /* connections that the switch has to remember one by one */
	HELD_FRAME_BYTES = 2272,       /* room that a waiting frame of up to this length takes in its ring */
	HELD_JUMBO_BYTES = 9728,       /* room that a longer waiting frame takes; no frame is longer than this */
	HELD_RING_BYTES = 1 << 22,     /* a power of two; 1,800 first requests that wait for a migration */
	ANSWERS = 16384,               /* remembered answers of a dispatcher on another node */
	ASKING_PATIENCE_NS = 100000000, /* how long a sign of life of the daemon, which asks the dispatcher, counts */
	ADOPT_ATTEMPTS = 8,            /* after this many attempts the request counts as refused by all */
	TICK_SHIFT = 30,               /* a tick is 2^30 ns, or 1.07 s: a shift replaces a division */
	SENT_SHIFT = 20,               /* a unit of 2^20 ns, or 1.05 ms, for times that matter only for a short while */
	TALLIED_ROUTES = 2048,         /* numbers for routes; those below MAX_SERVICES count the requests that no
	                                  route of that service takes */
	KEPT_BYTES = 1360,             /* longest request that is kept: what one segment holds */
	TOLD_BYTES = 1344,             /* longest request that its owner keeps: what fits HEAD beside the head of a
	                                  response */
	OWNER_KEEPS = 4096,            /* requests that a data server keeps which is no connection server, until
	                                  their responses have begun */
	QUIET_POINTS = 131072,         /* connections at rest whose quiet point a connection server remembers */
	ORPHANS = 4096,                /* entries that one run of the find_flows program finds at most */
	HEAD_BYTES = 1024,             /* how many bytes of a response's beginning user space is shown */
	HEADS_RING_BYTES = 1 << 20,    /* a power of two */
	NO_DATA_SERVER = 65535,
	NO_POOL = 65535,
};

enum role {
	ROLE_CS = 1,
	ROLE_DS = 2,
	ROLE_SWITCH = 4,
};

/* Ethernet types of frames that baton's own nodes send each other. */
enum ether_type {
	ETHER_SWITCHED = 0x88b5,       /* a client's whole frame, from the switch to a CS (IEEE 802: experimental) */
};

/* Marks of packets. A mark tells the DS program that it has put a packet back on its own ingress already. */
enum mark {
	/* These packets come to this node's interface once more: */
	MARK_BEHIND_BATCH = 0x62617474, /* a packet that waits for the packets before it */
	MARK_BEHIND_AGAIN = 0x62617475, /* a packet that waits once more for the packets before it */
	MARK_OF_AGENT = 0x62617476,     /* a packet that the agent sent in, and that waits in the same way or begins
	                                   the next socket of its connection */
	MARK_REQUEUED = 0x62617477,     /* any other packet, put back behind a RST that ends an older connection */
	MARK_RELAY_LOCAL = 0x62617472,  /* a packet that a routing rule of the relay keeps on this host */
	MARK_RELAY_SOCKET = 0x62617473, /* a packet of the relay's socket to a server in a container */
};

enum metadata {
	CARRIED_METADATA = 0x62617477,  /* in front of frames that a connection server has taken out of a message */
	AGENT_METADATA = 0x62617478,    /* in front of frames that the agent of a data server sends in */
	LEAVE_METADATA = 0x62617479,    /* in front of empty ACKs by which the data server's daemon makes idle
	                                   connections leave */
	EARLY_METADATA = 0x6261747a,    /* in front of data that has waited in user space because it came too early */
	QUIET_METADATA = 0x6261747b,    /* in front of empty ACKs by which the data server's daemon asks whether
	                                   connections are at rest */
	MOVE_METADATA = 0x62620000,     /* in front of empty ACKs with which the agent has a connection of its own move;
	                                   the low 16 bits are the slot of the data server that it moves to */
	EARLY_BYTES = 2048,             /* room in the ring for early data that is no longer than this */
	EARLY_MERGED_BYTES = 65536,     /* room in the ring for early data that the kernel has merged */
	EARLY_RING_BYTES = 1 << 24,     /* a power of two: room for 256 merged pieces */
};

/*
 * The settings of a node, at index 0 of an array map. Cookie keys: [0] current, [1] previous (all zero: none); a node
 * that is not a connection server has no cookie keys. The hash key and the seed derived from it are the same at all
 * nodes of a cluster; here only connection servers and the switch have them.
 */
struct settings {
	unsigned long long cookie_key[2][2];
	unsigned long long hash_key[2]; /* of the hashes of paths and hosts: see routing/route.h */
	long long clock_offset_ns;     /* wall clock minus monotonic clock */
	unsigned long long clock_window_ns; /* LCCP older or newer than this is stale */
	unsigned long long stray_grace_ns;  /* how long packets of an unknown flow are dropped in silence before a
	                                       RST is sent */
	unsigned long long netns;      /* cookie of this node's network namespace */
	unsigned char address[16];     /* this node's own address, source of LCCP */
	unsigned short mss;            /* announced to clients: MTU less headers and LCCP overhead */
	unsigned short relay_port;     /* the daemon's own listener on 127.0.0.1, host order; 0: none */
	unsigned char rcv_wscale;      /* announced to clients */
	unsigned char protocol;        /* IP protocol of LCCP */
	unsigned char roles;           /* enum role */
	unsigned char also_macs;       /* how many of `also_mac` are set */
	unsigned char macs[MAX_INTERFACES][6];      /* of this node's interfaces; unused elements repeat the first */
	unsigned int ifindexes[MAX_INTERFACES];     /* of the same interfaces; clients' packets come by the first */
	unsigned char also_mac[ALSO_MACS][6]; /* frames to these MAC addresses are for this node as well */
	unsigned short resume_port;    /* the resume agent's listener on 127.0.0.1, host order; 0: none */
	unsigned char interfaces;      /* how many this node has, at most MAX_INTERFACES */
	unsigned char reserved;
	unsigned short data_servers;   /* how many data servers the cluster has: the most messages that one CLAIM may
	                                  cost */
	unsigned short slot;           /* index of this node itself in data_servers; NO_DATA_SERVER: it has none */
	unsigned int hash_seed;        /* seed of the hashes of clients: see hash_client() */
	unsigned short reader_port;    /* listener on 127.0.0.1 of the agent that reads requests, host order; 0: none */
	unsigned short reserved_half;
	unsigned int since_ms;         /* since when this connection server has been in front: wall clock, in the
	                                  unit of its timestamps; 0: always */
	unsigned int lease;            /* how long a data server may send that hears no connection server, in 1.05
	                                  ms; 0: always. See data_server/fence.h */
};

/* A service, or just a cluster address if the port is 0: a malformed packet has no port to look up. */
struct service_key {
	unsigned int cluster;          /* short address */
	unsigned short be_port;
	unsigned short reserved;
};

enum service_flag {
	SERVICE_SPLIT_AT_ACK = 1, /* the server speaks first: adopt at the handshake's last ACK */
	SERVICE_PATHS = 4,        /* it has routes */
	SERVICE_HOSTS = 8,        /* some of its routes name hosts */
	SERVICE_DOWN = 16,        /* no pool of the service has a data server */
	SERVICE_TLS = 32,         /* clients speak TLS: only what they say first is read */
	SERVICE_ASKS = 64,        /* a dispatcher on another node chooses its data servers */
	SERVICE_SIZES = 128,      /* large content has a pool of its own */
	SERVICE_RESUME = 256,     /* some responses can go on from another data server, should their own die */
	SERVICE_DIRECT = 512,     /* aware clients may send to their data servers themselves */
	SERVICE_RESUME_REST = 1024, /* with SERVICE_RESUME: responses to requests that no route takes can go on as
	                               well */
	SERVICE_TARGETS = 2048,   /* the path of a request affects routing, so it is read as servers read it */
	SERVICE_REFUSES = 4096,   /* with SERVICE_TLS: the agent refuses a connection that no route takes */
	SERVICE_OWNER = 8192,     /* the owner of a connection routes its further requests: see
	                             data_server/door/at_door.h */
	SERVICE_STAYS = 16384,    /* with SERVICE_OWNER: a connection never leaves the data server that first
	                             answered on it */
};

struct service {
	unsigned short id;             /* 0 .. MAX_SERVICES-1 */
	unsigned short pool;           /* for requests that no route takes */
	unsigned short flags;          /* enum service_flag */
	unsigned short large;          /* pool of large content, with SERVICE_SIZES */
};

enum policy {
	POLICY_TURN = 0,   /* take the choices in turn: round robin, weighted round robin, least loaded */
	POLICY_CLIENT = 1, /* index the choices by a hash of the client's address: Maglev */
	POLICY_PATH = 2,   /* index the choices by a hash of the request's path: Maglev, LARD */
};

/* Key of a connection server as a data server sees it on its LAN. The value is its short address. */
struct sender_key {
	unsigned char mac[6];
	unsigned short reserved;
};

enum pool_flag {
	POOL_PER_REQUEST = 1, /* a data server is chosen for every request; else the owner stays while it is a member */
	POOL_NOBODY = 2,      /* no data server answers for the pool: its choices are nodes that can tell clients so,
	                         and none of them is a member */
};

/* Data servers that can answer alike. */
struct pool {
	unsigned long long id;         /* derived from its name, so that the next daemon finds it again; 0: there is
	                                  no such pool */
	unsigned int first_choice;     /* where the current bank begins in the choices map */
	unsigned int choices;          /* how many choices are set; 0: no data server */
	unsigned int hash_seed;        /* as in struct settings */
	unsigned short generation;     /* when it changes, every connection chooses anew at its next request */
	unsigned char policy;          /* enum policy */
	unsigned char flags;           /* enum pool_flag */
	unsigned long long members[MAX_DATA_SERVERS / 64]; /* which data servers are among the choices, one bit for
	                                                      each index */
};

/*
 * Key of a host that routes name, for the longest match: the name backwards in small letters. An exact name ends with a
 * 0, a wildcard (*.example.org) with its dot. The value is the host's number, from 1.
 */
struct host_key {
	unsigned int prefix_bits;      /* of what follows */
	unsigned char name[HOST_BYTES];
};

/*
 * Key of a route, for the longest match of the request target's first bytes. Host 0 stands for any host. The lower half
 * of the value is a pool, or NO_POOL for the service's own pool. Above it are flags and the route's number, by which it
 * is tallied.
 */
struct route_key {
	unsigned int prefix_bits;      /* of what follows */
	unsigned short service;
	unsigned short host;
	unsigned char path[PATH_BYTES];
};

enum route_flag {
	ROUTE_POOL = 0xffff,       /* mask of the pool */
	ROUTE_NUMBER_SHIFT = 16,
	ROUTE_NUMBER = 0x1fff,     /* mask of the number, when shifted down */
	ROUTE_RESUME = 0x20000000, /* responses to its requests can go on from another data server */
	ROUTE_UNDECIDED = 0x80000000, /* conditions on more than host and path apply: only the agent can tell which
	                                 data server its requests belong to */
};

/* A path of large content. hash_path() computes the hash. */
struct large_key {
	unsigned long long path;
	unsigned int service;
	unsigned int reserved;
};

enum data_server_flag {
	DATA_SERVER_PRESENT = 1,
	DATA_SERVER_LOCAL = 2,     /* this node itself */
	DATA_SERVER_ROUTED = 4,    /* clients' packets travel inside FORWARD, because the node is behind a router or
	                              is a CS itself */
	DATA_SERVER_DEAD = 8,      /* neither its daemon nor its program answers */
	DATA_SERVER_DEAF = 16,     /* it is alive and refuses messages, because its clock is wrong */
	DATA_SERVER_ASKED_FOR = 32, /* with DATA_SERVER_DEAD: the other data servers are being asked whether they
	                               have its connections */
};

struct data_server {
	unsigned char address[16];
	unsigned char mac[6];          /* MAC address of the next hop */
	unsigned char source_mac[6];   /* MAC address of our interface towards it */
	unsigned int ifindex;
	unsigned char flags;           /* enum data_server_flag */
	unsigned char reserved;
	unsigned short channel;        /* index into channels; 0: messages to it have no numbers */
	unsigned char reserved_bytes[4];
	unsigned long long key[2];     /* the current key for messages to it, which this node shares with it */
};

/*
 * The keys that this node shares with another one, by that one's short address. It has such an entry for itself as well
 * if its own programs send each other messages.
 */
struct peer_keys {
	unsigned long long key[2][2];  /* for messages between the two: [0] current, [1] previous (all zero: none) */
	unsigned int leads;            /* not 0: the other node has the cluster's secret, and may give the commands
	                                  in LCCP_LEADING */
	unsigned int is_cs;            /* not 0: the other node is a connection server */
};

/*
 * The sender's half of a channel. Messages that move a connection (ADOPT) are numbered from each node to each other
 * one, and the sender keeps copies of them for a while.
 */
struct channel {
	unsigned int next;             /* number of the next message, of which the lower 16 bits are sent */
	unsigned int slots[WINDOW];    /* where the last messages are in the send buffer, by number modulo WINDOW */
};

/* A copy of a message that was sent, in the send buffer. */
struct sent_message {
	unsigned short channel;
	unsigned short sequence;
	unsigned int bytes;            /* length of the frame; 0: it was too long to be kept */
	unsigned int ifindex;          /* the interface that the frame left by */
	unsigned int sent;             /* when it was sent: coarse monotonic clock >> SENT_SHIFT */
	unsigned char frame[SENT_FRAME_BYTES];
};

/*
 * The receiver's half of a channel: the last numbers that came, each at its number modulo WINDOW, with 16 bits of the
 * message's tag. A message that comes a second time has the same tag. A different message with the same number has
 * another tag: its sender has begun to count anew, or reaches this node by another channel.
 */
struct receive_window {
	unsigned short came[WINDOW];
	unsigned short tags[WINDOW];
};

struct tcb_key {
	unsigned char client[16];
	unsigned int cluster;          /* short address */
	unsigned short be_client_port;
	unsigned short be_cluster_port;
};

/*
 * The sender whose message was last refused for its clock. The tag was right, so the message is that node's, but it may
 * be an old one.
 */
struct stale_sender {
	long long ahead_ns;            /* its clock less ours */
	unsigned long long seen_ns;    /* coarse monotonic clock */
};

#endif
