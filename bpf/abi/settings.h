/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the daemon tells the programs: settings, services, pools, routes and nodes; and limits of all maps. */
#ifndef BATON_ABI_SETTINGS_H
#define BATON_ABI_SETTINGS_H

#include "abi/lccp.h"

enum limit {
	MAX_SERVICES = 64,
	MAX_POOLS = 128,
	MAX_HOSTS = 64,                /* host patterns of all services */
	MAX_ROUTES = 8192,             /* of all services, hosts by paths */
	HOST_BYTES = 64,               /* longest host name of a route and what ends it */
	PATH_BYTES = 120,              /* longest path of a route */
	MAX_LARGE = 16384,             /* paths of large content, of all services */
	MAX_DATA_SERVERS = 256,
	MAX_INTERFACES = 4,            /* of a node, that its programs are at */
	MAX_PEERS = 512,               /* nodes of all roles */
	ALSO_MACS = 4,                 /* MAC addresses that a node has besides its interface's own */
	WINDOW = 1024,                 /* messages of a channel that its two ends remember */
	OUTBOX = 8192,                 /* messages of all channels that can be sent again */
	OUTBOX_FRAME_BYTES = 1600,
	CHOICES_PER_POOL = 16381,      /* prime: the Maglev table size */
	CHOICE_BANKS = 2,              /* one is read while the daemon writes the other */
	STRAYS = 4096,
	USED_COOKIE_SET_BITS = 17,     /* 131,072 sets */
	USED_COOKIES_PER_SET = 16,     /* a power of two */
	/* Messages that CLAIMs of each processor may cause in a tick, by what speaks for them: see connection_server/find/claim_budget.h. */
	CLAIM_BUDGET_PROVED = 65536,
	CLAIM_BUDGET_LIKELY = 16384,
	CLAIM_BUDGET_STRANGER = 8192,
	CLAIM_SOURCES = 4096,          /* that are told apart; a power of two */
	CLAIM_REFUSALS = 1 << 18,      /* packets that were refused, by a hash; a power of two */
	CLAIM_BELIEVED = 16384,        /* addresses of clients whose connections were found */
	GIVEN_FLOWS = 131072,          /* connections that a data server remembers to have given away */
	YIELDS = 16384,                /* connections that a data server is about to give away */
	BEGUN_FLOWS = 131072,          /* connections that the switch has to remember one by one */
	HELD_FRAME_BYTES = 2272,       /* frames up to this length take so much room in the ring of those that wait, */
	HELD_JUMBO_BYTES = 9728,       /* and longer ones so much: none is longer */
	HELD_RING_BYTES = 1 << 22,     /* a power of two; 1,800 first requests that wait for a migration */
	ANSWERS = 16384,               /* of a dispatcher on another node, remembered */
	ASKING_PATIENCE_NS = 100000000, /* so long a sign of life of who asks it counts */
	ADOPT_ATTEMPTS = 8,            /* then the request counts as refused by all */
	TICK_SHIFT = 30,               /* a tick is 2^30 ns: 1.07 s, and no division to get it */
	SENT_SHIFT = 20,               /* for what is older than milliseconds soon: 1.05 of them */
	TALLIED_ROUTES = 2048,         /* numbers of routes; below MAX_SERVICES: what no route of a service takes */
	KEPT_BYTES = 1360,             /* longest request that is kept: what one segment holds */
	TOLD_BYTES = 1344,             /* the same where its owner keeps it: what HEAD holds beside the head of a response */
	OWNER_KEEPS = 4096,            /* so many a data server keeps that is no connection server: until their responses have begun */
	QUIET_POINTS = 131072,         /* connections that are at rest, of which a connection server remembers where */
	ORPHANS = 4096,                /* entries that one muster finds at most */
	HEAD_BYTES = 1024,             /* of how a response begins, that user space is shown */
	HEADS_RING_BYTES = 1 << 20,    /* a power of two */
	NO_DATA_SERVER = 65535,
	NO_POOL = 65535,
};

enum role {
	ROLE_CS = 1,
	ROLE_DS = 2,
	ROLE_SWITCH = 4,
};

/* Ethernet types of frames that are ours. */
enum ether_type {
	ETHER_SWITCHED = 0x88b5,       /* a client's whole frame, from the switch to a CS (IEEE 802: experimental) */
};

/* Marks a packet that the DS program has put back on its own ingress, so that it does so once. */
enum mark {
	/* Of packets that come to this node's interface once more: */
	MARK_BEHIND_BATCH = 0x62617474, /* one that waits for those before it, */
	MARK_BEHIND_AGAIN = 0x62617475, /* and waits once more, */
	MARK_OF_AGENT = 0x62617476,     /* one that the agent sent in, and that waits so, or begins the next socket of its connection, */
	MARK_REQUEUED = 0x62617477,     /* and any other, behind a RST that ends an older connection */
	MARK_RELAY_LOCAL = 0x62617472,  /* of packets that a routing rule of the relay keeps on this host */
	MARK_RELAY_SOCKET = 0x62617473, /* of the relay's sockets to a server that is in a container */
};

enum metadata {
	CARRIED_METADATA = 0x62617477,  /* in front of frames that a connection server has taken out of a message, */
	AGENT_METADATA = 0x62617478,    /* and of those that the agent of a data server sends in, */
	LEAVE_METADATA = 0x62617479,    /* and of empty ACKs with which its daemon has idle connections leave, */
	EARLY_METADATA = 0x6261747a,    /* and of what has waited there because it came too early; */
	QUIET_METADATA = 0x6261747b,    /* of empty ACKs with which its daemon asks whether connections are at rest */
	EARLY_BYTES = 2048,             /* what comes too early and is no longer takes so much room in the ring, */
	EARLY_MERGED_BYTES = 65536,     /* and what the kernel has merged so much */
	EARLY_RING_BYTES = 1 << 24,     /* a power of two: 256 of those that are merged */
};

/*
 * Index 0 of an array map. Cookie keys: [0] current, [1] previous (all zero: none); a node that is no connection server
 * has none of them. The hash key and the seed made of it are the same at all nodes of a cluster; only connection servers
 * and the switch have them here.
 */
struct settings {
	unsigned long long cookie_key[2][2];
	unsigned long long hash_key[2]; /* of the hashes of paths and hosts: see routing/route.h */
	long long clock_offset_ns;     /* wall clock minus monotonic clock */
	unsigned long long clock_window_ns; /* LCCP older or newer than this is stale */
	unsigned long long stray_grace_ns;  /* how long an unknown flow is met with silence before a RST */
	unsigned long long netns;      /* cookie of the network namespace that this node is in */
	unsigned char address[16];     /* this node's own address, source of LCCP */
	unsigned short mss;            /* announced to clients: MTU less headers and LCCP overhead */
	unsigned short relay_port;     /* host order; the daemon's own listener on 127.0.0.1, 0: none */
	unsigned char rcv_wscale;      /* announced to clients */
	unsigned char protocol;        /* IP protocol of LCCP */
	unsigned char roles;           /* enum role */
	unsigned char also_macs;       /* how many of `also_mac` are set */
	unsigned char macs[MAX_INTERFACES][6];      /* of its interfaces; those beyond repeat the first */
	unsigned int ifindexes[MAX_INTERFACES];     /* the same; clients come by the first */
	unsigned char also_mac[ALSO_MACS][6]; /* frames to these are for this node as well */
	unsigned short resume_port;    /* host order; the resume agent's listener on 127.0.0.1, 0: none */
	unsigned char interfaces;      /* how many this node has, at most MAX_INTERFACES */
	unsigned char reserved;
	unsigned short data_servers;   /* how many the cluster has: what one CLAIM may cost */
	unsigned short slot;           /* of this node itself in data_servers; NO_DATA_SERVER: it has none */
	unsigned int hash_seed;        /* of the hashes of clients: see hash_client() */
	unsigned short reader_port;    /* host order; the listener on 127.0.0.1 of the agent that reads requests, 0: none */
	unsigned short reserved_half;
	unsigned int since_ms;         /* since when this connection server is in front: wall clock, as its timestamps have it; 0: ever */
	unsigned int lease;            /* so long a data server may speak that hears no connection server: see data_server/fence.h; 1.05 ms each, 0: ever */
};

/* A service, or, with port 0, just a cluster address: what is malformed has no port to look up. */
struct service_key {
	unsigned int cluster;          /* short address */
	unsigned short be_port;
	unsigned short reserved;
};

enum service_flag {
	SERVICE_SPLIT_AT_ACK = 1, /* the server speaks first: adopt at the handshake's last ACK */
	SERVICE_PATHS = 4,        /* it has routes */
	SERVICE_HOSTS = 8,        /* some of them name hosts */
	SERVICE_DOWN = 16,        /* no pool of it has a data server */
	SERVICE_ASKS = 64,        /* a dispatcher on another node chooses its data servers */
	SERVICE_SIZES = 128,      /* large content has a pool of its own */
	SERVICE_RESUME = 256,     /* some responses can go on from another data server, should their own die */
	SERVICE_DIRECT = 512,     /* aware clients may send to their data servers themselves */
	SERVICE_RESUME_REST = 1024, /* with SERVICE_RESUME: those to requests that no route takes */
	SERVICE_TARGETS = 2048,   /* the path of a request decides something: it is read as servers read it */
	SERVICE_OWNER = 8192,     /* the owner of a connection sees to whose its further requests are: see data_server/door/at_door.h */
	SERVICE_STAYS = 16384,    /* with SERVICE_OWNER: a connection never leaves the data server that has answered on it */
};

struct service {
	unsigned short id;             /* 0 .. MAX_SERVICES-1 */
	unsigned short pool;           /* of requests that no route takes */
	unsigned short flags;          /* enum service_flag */
	unsigned short large;          /* pool of large content, with SERVICE_SIZES */
};

enum policy {
	POLICY_TURN = 0,   /* walk the choices: round robin, weighted round robin, least loaded */
	POLICY_CLIENT = 1, /* index the choices by a hash of the client's address: Maglev */
	POLICY_PATH = 2,   /* index the choices by a hash of the request's path: Maglev, LARD */
};

/* A connection server as a data server sees it on its LAN. The value: its short address. */
struct sender_key {
	unsigned char mac[6];
	unsigned short reserved;
};

enum pool_flag {
	POOL_PER_REQUEST = 1, /* every request chooses; else the owner stays while it is a member */
	POOL_NOBODY = 2,      /* nobody answers for it: its choices are who can say so to clients, and none of them a member */
};

/* Data servers that can answer alike. */
struct pool {
	unsigned long long id;         /* of its name, for the next daemon; 0: there is none */
	unsigned int first_choice;     /* where the live bank begins in the choices map */
	unsigned int choices;          /* how many are set; 0: no DS */
	unsigned int hash_seed;        /* as settings have it */
	unsigned short generation;     /* another one: every connection chooses anew at its next request */
	unsigned char policy;          /* enum policy */
	unsigned char flags;           /* enum pool_flag */
	unsigned long long members[MAX_DATA_SERVERS / 64]; /* bit by index: who is among the choices */
};

/*
 * Hosts that routes name, for the longest match: the name backwards, in small letters. An exact name
 * ends with a 0, a wildcard (*.example.org) with its dot. The value: the host's number, from 1.
 */
struct host_key {
	unsigned int prefix_bits;      /* of what follows */
	unsigned char name[HOST_BYTES];
};

/*
 * Routes, for the longest match of the request target's first bytes. Host 0 is any. The value: a pool, or
 * NO_POOL for that of the service, in its lower half; above it the route's number, by which it is tallied,
 * and flags.
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
	ROUTE_UNDECIDED = 0x80000000, /* there are rules on more than host and path: only the agent can say whose its requests are */
};

/* A path of large content: hash_path() makes its hash. */
struct large_key {
	unsigned long long path;
	unsigned int service;
	unsigned int reserved;
};

enum data_server_flag {
	DATA_SERVER_PRESENT = 1,
	DATA_SERVER_LOCAL = 2,     /* this very node */
	DATA_SERVER_ROUTED = 4,    /* client packets travel inside FORWARD: behind a router, or a CS itself */
	DATA_SERVER_DEAD = 8,      /* neither its daemon nor its program answers */
	DATA_SERVER_DEAF = 16,     /* it lives and refuses messages, because its clock is wrong */
	DATA_SERVER_ASKED_FOR = 32, /* of a dead one: the others are being asked whether they have its connections */
};

struct data_server {
	unsigned char address[16];
	unsigned char mac[6];          /* next hop */
	unsigned char source_mac[6];   /* of our interface towards it */
	unsigned int ifindex;
	unsigned char flags;           /* enum data_server_flag */
	unsigned char reserved;
	unsigned short channel;        /* index into channels; 0: messages to it are not numbered */
	unsigned char reserved_bytes[4];
	unsigned long long key[2];     /* of messages to it: the current one that this node shares with it */
};

/*
 * What this node shares with another one, by that one's short address; with itself as well, if its own programs send
 * to each other.
 */
struct peer_keys {
	unsigned long long key[2][2];  /* of messages between the two: [0] current, [1] previous (all zero: none) */
	unsigned int leads;            /* not 0: the other one has the secret, and may give commands of LCCP_LEADING */
	unsigned int is_cs;            /* not 0: it is a connection server */
};

/*
 * Messages that move a connection (ADOPT) are numbered, from each node to each other one, and
 * kept for a while: the sender's half of a channel,
 */
struct channel {
	unsigned int next;             /* number of the next message; its lower 16 bits are sent */
	unsigned int slots[WINDOW];    /* where in the outbox the last ones are, by number modulo WINDOW */
};

/* a message that was sent, */
struct posted {
	unsigned short channel;
	unsigned short sequence;
	unsigned int bytes;            /* of the frame; 0: it was too long to be kept */
	unsigned int ifindex;          /* the interface that it left by */
	unsigned int sent;             /* when: coarse monotonic clock >> SENT_SHIFT */
	unsigned char frame[OUTBOX_FRAME_BYTES];
};

/*
 * and the receiver's half: the last numbers that came, each at its number modulo WINDOW, and 16 bits of the message's tag. A
 * message that comes again has the same. Another one with this number has not: its sender has begun to count anew, or leads
 * here by another channel.
 */
struct inbox {
	unsigned short came[WINDOW];
	unsigned short tags[WINDOW];
};

struct tcb_key {
	unsigned char client[16];
	unsigned int cluster;          /* short address */
	unsigned short be_client_port;
	unsigned short be_cluster_port;
};

/* Who was refused for its clock last: the message's tag was right, so it is that node's, but maybe an old one. */
struct stale_sender {
	long long ahead_ns;            /* its clock less ours */
	unsigned long long seen_ns;    /* coarse monotonic clock */
};

#endif
