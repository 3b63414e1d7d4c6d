/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Virtual TCP sockets: what the programs of a control group and the agent agree on. This is kept apart from `abi.h`
 * because nothing else shares it. Addresses are 16 bytes; IPv4 is written as v4-mapped.
 */
#ifndef BATON_ABI_VIRTUAL_SOCKETS_H
#define BATON_ABI_VIRTUAL_SOCKETS_H

enum app_limit {
	MAX_APP_LISTENERS = 4096,
	MAX_APP_ARRIVALS = 65536,      /* connections that the agent has made and the program's side has not accepted
	                                  yet */
	MAX_APP_DIRECT = 256,          /* networks that are reached without the agent */
	MAX_APP_CLUSTER = 64,          /* cluster addresses */
	MAX_APP_TAKEN = 1024,          /* ports that are in use by others at the I/O server */
	APP_OPTION_NUMBERS = 6,
	APP_EVENT_BYTES = 1 << 20,     /* size of the ring */
};

struct app_address {
	unsigned char ip[16];
	unsigned short be_port;
	unsigned short reserved[3];
};

struct app_settings {
	unsigned long long alive_until; /* coarse monotonic clock; the agent moves it on. After that time there is no
	                                   agent */
	unsigned short be_agent_port;   /* the agent's port at 127.0.0.1 and ::1; what comes from there is the
	                                   agent's answer */
	unsigned short reserved[3];
};

/* A network outside the cluster, as a key for a longest-prefix match. */
struct app_direct_key {
	unsigned int bits;              /* prefix length of `ip`; for IPv4 that of the IPv4 prefix plus 96 */
	unsigned char ip[16];
};

enum app_socket_flag {
	APP_SOCKET_BOUND = 1,           /* `local` is the address that the program asked for, or the one that it has */
	APP_SOCKET_CALLS = 2,           /* `peer` is the address that the program wants; the kernel was told the
	                                   agent's instead */
	APP_SOCKET_ANSWERED = 4,        /* connected: its far end is at the I/O server */
	APP_SOCKET_ONLY_IPV6 = 8,       /* for a listener: it takes no IPv4 */
	APP_SOCKET_IPV6 = 16,           /* for a listener: AF_INET6 */
};

enum app_family_flag {
	APP_FAMILY_V4 = 1,
	APP_FAMILY_V6 = 2,
};

/*
 * Options that matter where the client is. Those with a number stand in app_options.number in the order of their bits,
 * from APP_OPTION_KEEP_IDLE on.
 */
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

/* What a program has set on its socket. An option that is not in `given` was left as it is. */
struct app_options {
	unsigned char given;            /* bits of enum app_option */
	unsigned char on;               /* values of the two switches, as bits of enum app_option */
	unsigned short reserved;
	unsigned int number[APP_OPTION_NUMBERS];
};

/* What a socket seems to be to its program. It is kept with the socket and ends with it. */
struct app_socket {
	struct app_address local;
	struct app_address peer;
	unsigned long long cookie;      /* of a listener: its key in app_listeners; of a connection: the `cookie` in
	                                   its app_event */
	struct app_options options;
	unsigned int flags;             /* enum app_socket_flag */
};

/* A connection that the agent makes to a listener. The key is the agent's own end of it. */
struct app_arrival {
	struct app_address local;       /* the cluster's end of the connection, as the client sees it */
	struct app_address peer;        /* the client's end */
	unsigned long long number;      /* the agent's number for the connection, which no socket has as its cookie */
};

struct app_listener {
	struct app_address at;          /* where the kernel has it */
	struct app_address wanted;      /* where its program believes it to be */
	struct app_options options;     /* options that accepted connections inherit */
	unsigned int flags;             /* enum app_socket_flag */
};

enum app_event_kind {
	APP_EVENT_CALL = 1,             /* a program connects or still waits; repeated with each SYN */
	APP_EVENT_CALL_ENDED = 2,       /* the program has given up the connect */
	APP_EVENT_LISTENERS = 3,        /* a listener has come, ended or got options: the map app_listeners has all
	                                   of them */
	APP_EVENT_OPTIONS = 4,          /* a connection got options */
	APP_EVENT_BIND_TAKEN = 5,       /* a program wanted a port that it cannot have */
};

struct app_event {
	/*
	 * Cookie of the socket. With APP_EVENT_OPTIONS it is that of the socket that connected, or the arrival's
	 * number; never a later connection's.
	 */
	unsigned long long cookie;
	struct app_address at;          /* the socket's own end, on loopback; for a bind the address that was wanted */
	struct app_address other;       /* for a call: the address that the program wants */
	struct app_options options;     /* for a call, and for options */
	unsigned int kind;              /* enum app_event_kind */
	unsigned int seq;               /* for a call: sequence number of its SYN */
	unsigned int reserved;
};

/* What the programs count: every decision. Names are the metric's label: keep them stable. */
enum app_counter {
	COUNTER_APP_CONNECT,            /* a connect() that goes through the agent */
	COUNTER_APP_CONNECT_DIRECT,     /* a connect() to loopback or to a network outside the cluster: left alone */
	COUNTER_APP_CONNECT_NO_AGENT,   /* refused with ENETUNREACH: the daemon has given no sign of life for too
	                                   long */
	COUNTER_APP_SYN_HELD,           /* a SYN that waits for the far end; counted each time that it is sent */
	COUNTER_APP_SYN_LOST,           /* such a SYN that the agent does not hear of, because the ring is full */
	COUNTER_APP_SYN_LET_GO,         /* such a SYN for which there no longer is an agent: it goes to a port where
	                                   nobody listens */
	COUNTER_APP_CONNECTED,          /* a far end answered */
	COUNTER_APP_CALL_ENDED,         /* a connect() that failed, or was given up */
	COUNTER_APP_BIND,               /* a bind() to any address or to a cluster address: the socket was bound to
	                                   loopback */
	COUNTER_APP_BIND_DIRECT,        /* a bind() to another address: left alone */
	COUNTER_APP_BIND_TAKEN,         /* refused with EADDRINUSE: another socket has the port at the I/O server */
	COUNTER_APP_LISTEN,             /* a listener of the cluster */
	COUNTER_APP_LISTEN_DIRECT,      /* a listener of this node alone */
	COUNTER_APP_LISTEN_FULL,        /* no room to note another listener: the cluster does not hear of it */
	COUNTER_APP_LISTEN_ENDED,
	COUNTER_APP_ACCEPTED,           /* a client's connection was accepted, with the client's address */
	COUNTER_APP_ACCEPTED_DIRECT,    /* a connection from this node itself was accepted */
	COUNTER_APP_OPTION,             /* an option was set that matters at the I/O server */
	COUNTER_APP_OPTION_LOST,        /* an option of a connection that the agent does not hear of, because the
	                                   ring is full */
	COUNTER_APP_NO_MPTCP,           /* socket(IPPROTO_MPTCP) refused: programs fall back to TCP */
	COUNTER_APP_NO_MEMORY,          /* refused with ENOMEM: nothing could be noted about a socket */
	COUNTER_APP_MAX,
};

struct app_counters {
	unsigned long long value[COUNTER_APP_MAX];
};

#endif
