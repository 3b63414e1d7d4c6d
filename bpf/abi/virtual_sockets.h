/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Virtual TCP sockets (docs/virtual-sockets.md): what the hooks of a control group and the agent share. A program here is
 * one that runs in the control group, not a BPF program. Nothing else uses this, so it is not in `abi.h`. Addresses are
 * 16 bytes; an IPv4 address is v4-mapped.
 */
#ifndef BATON_ABI_VIRTUAL_SOCKETS_H
#define BATON_ABI_VIRTUAL_SOCKETS_H

enum app_limit {
	MAX_APP_LISTENERS = 4096,
	MAX_APP_ARRIVALS = 65536,      /* entries of app_arrivals, and of app_answers */
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
	unsigned long long alive_until; /* until when the agent counts as alive: coarse monotonic clock, ns. The agent
	                                   renews it */
	unsigned short be_agent_port;   /* the agent's port at 127.0.0.1 and ::1: connect() is led there, and
	                                   the agent answers from there */
	unsigned short reserved[3];
};

/* A network that programs reach without the agent, such as the cluster's nodes: key for a longest-prefix match. */
struct app_direct_key {
	unsigned int bits;              /* prefix length of `ip`; for IPv4 that of the IPv4 prefix plus 96 */
	unsigned char ip[16];
};

enum app_socket_flag {
	APP_SOCKET_BOUND = 1,           /* `local` is what bind() asked for; with APP_SOCKET_ANSWERED it is the
	                                   connection's own end */
	APP_SOCKET_CALLS = 2,           /* `peer` is the address that the program wants; the kernel was told the
	                                   agent's instead */
	APP_SOCKET_ANSWERED = 4,        /* established: the connection's TCP is at the I/O server; `local` and
	                                   `peer` are its ends there */
	APP_SOCKET_ONLY_IPV6 = 8,       /* for a bound socket: IPV6_V6ONLY is set */
	APP_SOCKET_IPV6 = 16,           /* for a bound socket: AF_INET6 */
};

enum app_family_flag {
	APP_FAMILY_V4 = 1,
	APP_FAMILY_V6 = 2,
};

/*
 * Socket options that have to be set at the I/O server. The values of APP_OPTION_KEEP_IDLE and those behind it are in
 * app_options.number, in this order.
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

/* A socket as its program sees it. It is kept in the socket's storage and ends with the socket. */
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
	struct app_address at;          /* the loopback address and port that the kernel has for it */
	struct app_address wanted;      /* the address and port that its program sees */
	struct app_options options;     /* options that accepted connections inherit */
	unsigned int flags;             /* enum app_socket_flag */
};

enum app_event_kind {
	APP_EVENT_CALL = 1,             /* a program connects or still waits; repeated with each SYN */
	APP_EVENT_CALL_ENDED = 2,       /* the connect() has failed, or the program has given it up */
	APP_EVENT_LISTENERS = 3,        /* a listener was added, removed or got options: the agent reads
	                                   app_listeners */
	APP_EVENT_OPTIONS = 4,          /* a connection got options */
	APP_EVENT_BIND_TAKEN = 5,       /* bind() was refused: the port is taken at the I/O server */
};

struct app_event {
	/*
	 * The socket's cookie. With APP_EVENT_OPTIONS: the cookie of a socket that connected, or the number of an
	 * arrival. No later connection has the same one.
	 */
	unsigned long long cookie;
	struct app_address at;          /* for a call: the socket's own end, on loopback; with
	                                   APP_EVENT_BIND_TAKEN: the address that was wanted */
	struct app_address other;       /* for a call: the address that the program wants */
	struct app_options options;     /* for a call, and for options */
	unsigned int kind;              /* enum app_event_kind */
	unsigned int seq;               /* for a call: sequence number of its SYN */
	unsigned int reserved;
};

/* What the hooks count: every decision. The metrics' labels are made of these names: do not change them. */
enum app_counter {
	COUNTER_APP_CONNECT,            /* a connect() that goes through the agent */
	COUNTER_APP_CONNECT_DIRECT,     /* a connect() to this node or to a network in app_direct: left alone */
	COUNTER_APP_CONNECT_NO_AGENT,   /* refused with ENETUNREACH: the daemon has given no sign of life for too
	                                   long */
	COUNTER_APP_SYN_HELD,           /* a SYN that waits for the far end; counted each time that it is sent */
	COUNTER_APP_SYN_LOST,           /* such a SYN that the agent does not hear of, because the ring is full */
	COUNTER_APP_SYN_LET_GO,         /* a SYN that is let through because there is no agent anymore: the kernel
	                                   answers it with a RST */
	COUNTER_APP_CONNECTED,          /* a far end answered */
	COUNTER_APP_CALL_ENDED,         /* a connect() that failed, or was given up */
	COUNTER_APP_BIND,               /* a bind() to the wildcard address or to a cluster address: the socket was
	                                   bound to loopback */
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
	COUNTER_APP_NO_MEMORY,          /* no memory to note anything about a socket: bind() and connect() fail with
	                                   ENOMEM, accept() and options go on */
	COUNTER_APP_MAX,
};

struct app_counters {
	unsigned long long value[COUNTER_APP_MAX];
};

#endif
