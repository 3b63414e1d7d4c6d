/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every struct and constant that two parties must agree on: the wire (LCCP) and the maps
 * (programs and daemon). The Rust types are generated from the BTF of this file (crates/abi),
 * so constants are enums: a #define never reaches BTF.
 *
 * Addresses are 16 bytes everywhere; IPv4 is written as v4-mapped (::ffff:a.b.c.d).
 * Fields named be_* hold network byte order; all others are host order.
 */
#ifndef BATON_ABI_H
#define BATON_ABI_H

/* ---- LCCP: every message between nodes --------------------------------------------------- */

enum lccp_constant {
	LCCP_VERSION = 1,
	LCCP_HEADER_BYTES = 80,
	LCCP_TAGGED_BYTES = 72,   /* the header without its tag */
	LCCP_OVERHEAD_BYTES = 100, /* what an outer IPv4 header and LCCP add to a client's packet */
	LCCP_MAX_BODY = 1024,
};

/* Which component of the receiving node a message is for. */
enum lccp_receptor {
	LCCP_RECEPTOR_CS = 1,     /* the CS program */
	LCCP_RECEPTOR_DS = 2,     /* the DS program */
	LCCP_RECEPTOR_DAEMON = 3, /* the daemon, through a raw socket */
};

enum lccp_command {
	LCCP_ADOPT = 1,   /* DM1: adopt this connection; carries the client's packet */
	LCCP_REFUSED = 2, /* no listener here; carries the client's packet back */
	LCCP_FORWARD = 3, /* a client's packet for an owner that is behind a router */
	LCCP_HELLO = 4,   /* heartbeat, load and health; has a body */
};

/* lccp_header.data of a REFUSED: why. */
enum lccp_refusal {
	LCCP_REFUSAL_NO_LISTENER = 1,
	LCCP_REFUSAL_NOT_ASSIGNED = 2, /* the kernel would not make a socket of it */
};

/* lccp_tcb.options */
enum lccp_tcb_option {
	LCCP_TCB_SACK = 1,
	LCCP_TCB_WSCALE = 2,
};

struct lccp_flow {
	unsigned char client[16];
	unsigned char cluster[16];
	unsigned short be_client_port;
	unsigned short be_cluster_port;
};

/* The part of a TCB entry that travels: what no later packet of the client repeats. */
struct lccp_tcb {
	unsigned short be_mss;         /* largest segment the client takes, bytes */
	unsigned char snd_wscale;      /* the client's announced scale, 0-14 */
	unsigned char rcv_wscale;      /* the scale the SYN-ACK announced, 0-14 */
	unsigned char options;         /* enum lccp_tcb_option */
	unsigned char attempt;         /* how many DSs have refused this request before */
	unsigned short reserved;
	unsigned long long be_resume;  /* response bytes the client already has */
};

/* Then: `be_body_length` bytes of body under the tag, or (body length 0) the client's packet. */
struct lccp_header {
	unsigned char version;
	unsigned char receptor;
	unsigned char command;
	unsigned char flags;           /* 0; a receiver ignores bits it does not know */
	unsigned short be_body_length;
	unsigned short reserved;
	struct lccp_flow flow;
	unsigned int be_data;          /* by command */
	struct lccp_tcb tcb;
	unsigned long long be_clock;   /* the sender's wall clock, nanoseconds since 1970 */
	unsigned long long be_tag;     /* SipHash-2-4 of the 72 bytes before, then of the body */
};

enum lccp_health {
	LCCP_HEALTH_UNKNOWN = 0,
	LCCP_HEALTH_PASSING = 1,
	LCCP_HEALTH_FAILING = 2,
};

/* Body of HELLO: this, then `be_services` times a struct lccp_hello_service. */
struct lccp_hello {
	unsigned long long be_incarnation; /* start of the sending daemon, nanoseconds since 1970 */
	unsigned short be_cpu_permille;
	unsigned short be_services;
	unsigned int reserved;
};

struct lccp_hello_service {
	unsigned char cluster[16];
	unsigned short be_port;
	unsigned char health;          /* enum lccp_health */
	unsigned char reserved;
	unsigned int be_connections;   /* established, of this service */
};

/* ---- maps: programs and daemon ------------------------------------------------------------ */

enum limit {
	MAX_SERVICES = 64,
	MAX_DATA_SERVERS = 256,
	CHOICES_PER_SERVICE = 16381,   /* prime: the Maglev table size */
	CHOICE_BANKS = 2,              /* one is read while the daemon writes the other */
	STRAYS = 4096,
	ADOPT_ATTEMPTS = 8,            /* then the request counts as refused by all */
	TICK_SHIFT = 30,               /* a tick is 2^30 ns: 1.07 s, and no division to get it */
	NO_DATA_SERVER = 65535,
};

enum role {
	ROLE_CS = 1,
	ROLE_DS = 2,
};

/* Marks a packet that the DS program has put back on its own ingress, so that it does so once. */
enum mark {
	MARK_REQUEUED = 0x6261746f,
};

/* Index 0 of an array map. Keys: [0] current, [1] previous (all zero: none). */
struct settings {
	unsigned long long cookie_key[2][2];
	unsigned long long lccp_key[2][2];
	long long clock_offset_ns;     /* wall clock minus monotonic clock */
	unsigned long long clock_window_ns; /* LCCP older or newer than this is stale */
	unsigned long long stray_grace_ns;  /* how long an unknown flow is met with silence before a RST */
	unsigned char address[16];     /* this node's own address, source of LCCP */
	unsigned short mss;            /* announced to clients: MTU less headers and LCCP overhead */
	unsigned short relay_port;     /* host order; the daemon's own listener on 127.0.0.1, 0: none */
	unsigned char rcv_wscale;      /* announced to clients */
	unsigned char protocol;        /* IP protocol of LCCP */
	unsigned char roles;           /* enum role */
	unsigned char reserved;
};

/* A service, or, with port 0, just a cluster address: what is malformed has no port to look up. */
struct service_key {
	unsigned int cluster;          /* see struct tcb_key */
	unsigned short be_port;
	unsigned short reserved;
};

enum policy {
	POLICY_TURN = 0,   /* walk the choices: round robin, weighted round robin */
	POLICY_CLIENT = 1, /* index the choices by a hash of the client's address: Maglev */
};

enum service_flag {
	SERVICE_SPLIT_AT_ACK = 1, /* the server speaks first: adopt at the handshake's last ACK */
};

struct service {
	unsigned short id;             /* 0 .. MAX_SERVICES-1 */
	unsigned char policy;          /* enum policy */
	unsigned char flags;           /* enum service_flag */
	unsigned int first_choice;     /* where the live bank begins in the choices map */
	unsigned int choices;          /* how many are set; 0: no DS */
	unsigned int hash_seed;
};

enum data_server_flag {
	DATA_SERVER_PRESENT = 1,
	DATA_SERVER_LOCAL = 2,     /* this very node */
	DATA_SERVER_ROUTED = 4,    /* behind a router: client packets travel inside FORWARD */
};

struct data_server {
	unsigned char address[16];
	unsigned char mac[6];          /* next hop */
	unsigned char source_mac[6];   /* of our interface towards it */
	unsigned int ifindex;
	unsigned char flags;           /* enum data_server_flag */
	unsigned char reserved[7];
};

/*
 * A node has few cluster addresses, so 32 bits, in network byte order, tell them apart: an IPv4 address
 * as it is, an IPv6 address by its four words XORed. What cannot be told apart is refused when configured.
 */
struct tcb_key {
	unsigned char client[16];
	unsigned int cluster;
	unsigned short be_client_port;
	unsigned short be_cluster_port;
};

enum tcb_state {
	TCB_FIN = 1,   /* the client sent FIN */
	TCB_RST = 2,   /* the client sent RST */
};

/* What the CS remembers of one connection. With its map overhead 128 bytes: see ARCHITECTURE. */
struct tcb {
	unsigned int adopt_seq;        /* the packet the owner adopted from */
	unsigned int adopt_ack;
	unsigned int last_seq;         /* highest client byte seen + 1 */
	unsigned int last_ack;         /* highest acknowledgement seen */
	unsigned int response_start;   /* server seq at which the current response begins */
	unsigned int seen;             /* last packet: coarse monotonic clock >> TICK_SHIFT */
	unsigned short owner;          /* index into data_servers */
	unsigned short mss;
	unsigned char snd_wscale;
	unsigned char rcv_wscale;
	unsigned char options;         /* enum lccp_tcb_option */
	unsigned char state;           /* enum tcb_state */
	unsigned short service;        /* its id */
	unsigned short reserved[3];
};

/* Argument and result of the sweep program, which expires TCB entries. */
struct sweep {
	unsigned int idle_ticks;       /* for open connections */
	unsigned int closing_ticks;    /* after FIN or RST */
	unsigned int live;             /* result: entries kept */
	unsigned int expired;          /* result: entries removed */
};

/* Every decision and every drop. Names are the metric's label: keep them stable. */
enum counter {
	/* both programs */
	COUNTER_BAD_IP,              /* lying lengths, header too short */
	COUNTER_BAD_TCP,
	COUNTER_FRAGMENT,            /* dropped: a fragment has no ports */
	COUNTER_LCCP_SHORT,
	COUNTER_LCCP_BAD_VERSION,
	COUNTER_LCCP_BAD_TAG,
	COUNTER_LCCP_STALE,
	COUNTER_LCCP_UNKNOWN,        /* right tag, but no such command for this receptor */
	COUNTER_LCCP_MISMATCH,       /* header's flow and carried packet differ */
	COUNTER_LCCP_TO_DAEMON,
	/* CS */
	COUNTER_CS_SYN,              /* answered */
	COUNTER_CS_SYN_BAD_OPTIONS,
	COUNTER_CS_HANDSHAKE_ACK,    /* dropped: the request follows */
	COUNTER_CS_ADOPT,            /* DM1 sent for a new entry */
	COUNTER_CS_ADOPT_AGAIN,      /* the request was retransmitted */
	COUNTER_CS_FORWARD,
	COUNTER_CS_FORWARD_BYTES,
	COUNTER_CS_NO_DATA_SERVER,   /* nobody to choose: reset */
	COUNTER_CS_OWNER_GONE,       /* the entry's owner is not configured any more: reset */
	COUNTER_CS_REFUSED,          /* a DS refused; tried the next */
	COUNTER_CS_REFUSED_BY_ALL,
	COUNTER_CS_STRAY,            /* unknown flow, within its grace */
	COUNTER_CS_STRAY_RESET,
	COUNTER_CS_ICMP,             /* an ICMP error about a response, passed to the owner */
	COUNTER_CS_FIN,
	COUNTER_CS_RST,
	COUNTER_CS_TCB_FULL,
	COUNTER_CS_TOO_BIG,          /* would not fit with LCCP around it */
	COUNTER_CS_RESPONSE_BYTES,   /* from the cluster address through the CS: must stay 0 */
	/* DS */
	COUNTER_DS_ADOPTED,
	COUNTER_DS_ADOPTED_RELAY,    /* into the daemon's listener: the server's is MPTCP */
	COUNTER_DS_DUPLICATE,        /* ADOPT for a connection that is here already: delivered */
	COUNTER_DS_TIME_WAIT_ENDED,
	COUNTER_DS_STALE_ENDED,      /* an older connection with the same ports */
	COUNTER_DS_REFUSED,
	COUNTER_DS_FORWARDED,        /* unwrapped */
	COUNTER_DS_DELIVERED,        /* plain packets with a socket */
	COUNTER_DS_UNASSIGNED,       /* the kernel refused the socket (tcp_syncookies=0?) */
	COUNTER_DS_NO_SOCKET,        /* dropped in silence: a RST is the CS's to send */
	COUNTER_MAX,
};

struct counters {
	unsigned long long value[COUNTER_MAX];
};

#endif
