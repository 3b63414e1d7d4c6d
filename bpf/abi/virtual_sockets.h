/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Virtual TCP sockets: what the programs of a control group and the agent agree on. A part of `abi.h`, kept
 * apart because nothing else shares it. Addresses are 16 bytes; IPv4 is written as v4-mapped.
 */
#ifndef BATON_ABI_VIRTUAL_SOCKETS_H
#define BATON_ABI_VIRTUAL_SOCKETS_H

enum app_limit {
	MAX_APP_LISTENERS = 4096,
	MAX_APP_ARRIVALS = 65536,      /* connections between the agent's connect() and the program's side of it */
	MAX_APP_DIRECT = 256,          /* networks that are reached without the agent */
	MAX_APP_CLUSTER = 64,          /* cluster addresses */
	MAX_APP_TAKEN = 1024,          /* ports that somebody else has at the I/O server */
	APP_OPTION_NUMBERS = 6,
	APP_EVENT_BYTES = 1 << 20,     /* of the ring */
};

struct app_address {
	unsigned char ip[16];
	unsigned short be_port;
	unsigned short reserved[3];
};

struct app_settings {
	unsigned long long alive_until; /* coarse monotonic clock; the agent moves it on. Later: nobody answers */
	unsigned short be_agent_port;   /* at 127.0.0.1 and ::1: what comes from there is the agent's answer */
	unsigned short reserved[3];
};

/* A network that is not the cluster's: for a longest-prefix match. */
struct app_direct_key {
	unsigned int bits;              /* of `ip`; an IPv4 prefix and 96 */
	unsigned char ip[16];
};

enum app_socket_flag {
	APP_SOCKET_BOUND = 1,           /* `local` is what the program asked for, or what it has */
	APP_SOCKET_CALLS = 2,           /* `peer` is whom it wants; the kernel was told the agent */
	APP_SOCKET_ANSWERED = 4,        /* connected: its far end is at the I/O server */
	APP_SOCKET_ONLY_IPV6 = 8,       /* of a listener: takes no IPv4 */
	APP_SOCKET_IPV6 = 16,           /* of a listener: AF_INET6 */
};

enum app_family_flag {
	APP_FAMILY_V4 = 1,
	APP_FAMILY_V6 = 2,
};

/* Options that matter where the client is. The numbers have bits in their order, from APP_OPTION_KEEP_IDLE. */
enum app_option {
	APP_OPTION_NODELAY = 1,
	APP_OPTION_KEEPALIVE = 2,
	APP_OPTION_KEEP_IDLE = 4,
	APP_OPTION_KEEP_INTERVAL = 8,
	APP_OPTION_KEEP_PROBES = 16,
	APP_OPTION_USER_TIMEOUT = 32,
	APP_OPTION_SEND_BUFFER = 64,
	APP_OPTION_RECEIVE_BUFFER = 128,
};

/* What a program has set on its socket. What is not given it has left as it is. */
struct app_options {
	unsigned char given;            /* bits of enum app_option */
	unsigned char on;               /* of the two switches */
	unsigned short reserved;
	unsigned int number[APP_OPTION_NUMBERS];
};

/* What a socket seems to be to its program. Lives and dies with the socket. */
struct app_socket {
	struct app_address local;
	struct app_address peer;
	unsigned long long cookie;      /* of a listener: its key in app_listeners; of a connection: app_event's */
	struct app_options options;
	unsigned int flags;             /* enum app_socket_flag */
};

/* A connection that the agent makes to a listener, by the agent's own end of it. */
struct app_arrival {
	struct app_address local;       /* the cluster's end, as the client sees it */
	struct app_address peer;        /* the client */
	unsigned long long number;      /* the agent's for it, which no socket has as its cookie */
};

struct app_listener {
	struct app_address at;          /* where the kernel has it */
	struct app_address wanted;      /* where its program believes it to be */
	struct app_options options;     /* which connections have from it */
	unsigned int flags;             /* enum app_socket_flag */
};

enum app_event_kind {
	APP_EVENT_CALL = 1,             /* a program connects, or still waits; repeated with its SYN */
	APP_EVENT_CALL_ENDED = 2,       /* it has given up */
	APP_EVENT_LISTENERS = 3,        /* one has come, gone or got options: the map says which there are */
	APP_EVENT_OPTIONS = 4,          /* of a connection */
	APP_EVENT_BIND_TAKEN = 5,       /* a program wanted a port that it cannot have */
};

struct app_event {
	/* The socket's. Of options: the socket's that called, or the arrival's number; never a later connection's. */
	unsigned long long cookie;
	struct app_address at;          /* the socket's own end, on loopback; of a bind what was wanted */
	struct app_address other;       /* of a call: whom the program wants */
	struct app_options options;     /* of a call, and of options */
	unsigned int kind;              /* enum app_event_kind */
	unsigned int seq;               /* of a call: its SYN's */
	unsigned int reserved;
};

/* Every decision. Names are the metric's label: keep them stable. */
enum app_counter {
	COUNTER_APP_CONNECT,            /* a connect() that goes through the agent */
	COUNTER_APP_CONNECT_DIRECT,     /* one to loopback or to a network that is not the cluster's: left alone */
	COUNTER_APP_CONNECT_NO_AGENT,   /* refused with ENETUNREACH: the daemon has given no sign for too long */
	COUNTER_APP_SYN_HELD,           /* a SYN that waits for the far end, each time that it is sent */
	COUNTER_APP_SYN_LOST,           /* one of these that the agent does not hear of: the ring is full */
	COUNTER_APP_SYN_LET_GO,         /* one for which there is no agent any more: it goes where nobody listens */
	COUNTER_APP_CONNECTED,          /* a far end answered */
	COUNTER_APP_CALL_ENDED,         /* a connect() that failed, or was given up */
	COUNTER_APP_BIND,               /* to any or to a cluster address: bound to loopback */
	COUNTER_APP_BIND_DIRECT,        /* to another address: left alone */
	COUNTER_APP_BIND_TAKEN,         /* refused with EADDRINUSE: somebody else has the port at the I/O server */
	COUNTER_APP_LISTEN,             /* a listener of the cluster */
	COUNTER_APP_LISTEN_DIRECT,      /* a listener of this node alone */
	COUNTER_APP_LISTEN_FULL,        /* no room to note another: the cluster does not hear of it */
	COUNTER_APP_LISTEN_ENDED,
	COUNTER_APP_ACCEPTED,           /* a client's connection, with the client's address */
	COUNTER_APP_ACCEPTED_DIRECT,    /* a connection of this node itself */
	COUNTER_APP_OPTION,             /* one that matters at the I/O server */
	COUNTER_APP_OPTION_LOST,        /* of a connection, and the agent does not hear of it: the ring is full */
	COUNTER_APP_NO_MPTCP,           /* socket(IPPROTO_MPTCP) refused: programs fall back to TCP */
	COUNTER_APP_NO_MEMORY,          /* a socket about which nothing could be noted: refused with ENOMEM */
	COUNTER_APP_MAX,
};

struct app_counters {
	unsigned long long value[COUNTER_APP_MAX];
};

#endif
