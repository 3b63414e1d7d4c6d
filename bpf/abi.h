/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every struct and constant that two parties must agree on: the wire (LCCP) and the maps
 * (programs and daemon). The Rust types are generated from the BTF of this file (crates/abi),
 * so constants are enums: a #define never reaches BTF.
 *
 * Addresses are 16 bytes everywhere; IPv4 is written as v4-mapped (::ffff:a.b.c.d). Where 32 bits must
 * do, a *short address*, in network byte order, tells the few addresses of a cluster apart: an IPv4
 * address as it is, an IPv6 address by its four words XORed. Two that are alike cannot be configured.
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
	LCCP_HANDOVER = 5, /* to the owner: give this connection to another DS; carries the client's request */
	LCCP_KEEP = 6,    /* the owner will not; carries the request back, which it has delivered itself */
	LCCP_NONE = 7,    /* nobody here has this connection; carries the client's packet back */
	LCCP_SYNC = 8,    /* daemon to daemon: the number of the last message sent to you (data) */
	LCCP_AGAIN = 9,   /* daemon to daemon: these did not come; the body is a list of be16 numbers */
	LCCP_SIZES = 14,  /* daemon to daemon: paths whose content is large; has a body */
};

/*
 * lccp_header.data: of HANDOVER the short address of the next DS; of FORWARD that of the DS which has the
 * connection if the receiver has not, or 0; of ADOPT that of the CS which is to hear of a refusal; of
 * REFUSED and KEEP why.
 */

enum lccp_refusal {
	LCCP_REFUSAL_NO_LISTENER = 1,
	LCCP_REFUSAL_NOT_ASSIGNED = 2, /* the kernel would not make a socket of it */
	LCCP_REFUSAL_NO_WAY = 3,       /* of a HANDOVER: let go here, and no way to the next DS is known */
};

enum lccp_keep {
	LCCP_KEEP_STATE = 1,           /* the connection is being closed */
	LCCP_KEEP_UNSENT = 2,          /* the client has not acknowledged all of the response */
	LCCP_KEEP_UNREAD = 3,          /* the server has not read all of the requests before */
	LCCP_KEEP_SEQUENCE = 4,        /* this is not the next byte: sent again, or one before is missing */
	LCCP_KEEP_NO_WAY = 5,          /* the owner knows no way to the next DS, nor to the CS */
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
	unsigned short be_cwnd;        /* the owner's congestion window, segments; 0: as of a new connection */
	unsigned long long be_resume;  /* response bytes the client already has */
};

/* Then: `be_body_length` bytes of body under the tag, or (body length 0) the client's packet. */
struct lccp_header {
	unsigned char version;
	unsigned char receptor;
	unsigned char command;
	unsigned char flags;           /* 0; a receiver ignores bits it does not know */
	unsigned short be_body_length;
	unsigned short be_sequence;    /* of ADOPT and HANDOVER from this sender to this receiver; 0: none */
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

/*
 * Body of SIZES: this, then `be_paths` hashes of paths (be64). All parts of one generation together are
 * what is large at the sender; another generation replaces them.
 */
struct lccp_sizes {
	unsigned char cluster[16];
	unsigned long long be_generation;
	unsigned short be_port;
	unsigned short be_part;        /* from 0 */
	unsigned short be_parts;
	unsigned short be_paths;       /* in this part */
};

/* ---- maps: programs and daemon ------------------------------------------------------------ */

enum limit {
	MAX_SERVICES = 64,
	MAX_POOLS = 128,
	MAX_HOSTS = 64,                /* host patterns of all services */
	MAX_ROUTES = 8192,             /* of all services, hosts by paths */
	HOST_BYTES = 64,               /* longest host name of a route and what ends it */
	PATH_BYTES = 120,              /* longest path of a route */
	MAX_LARGE = 16384,             /* paths of large content, of all services */
	MAX_DATA_SERVERS = 256,
	MAX_PEERS = 512,               /* nodes of all roles */
	WINDOW = 256,                  /* messages of a channel that its two ends remember */
	OUTBOX = 2048,                 /* messages of all channels that can be sent again */
	OUTBOX_FRAME_BYTES = 1600,
	CHOICES_PER_POOL = 16381,      /* prime: the Maglev table size */
	CHOICE_BANKS = 2,              /* one is read while the daemon writes the other */
	STRAYS = 4096,
	ADOPT_ATTEMPTS = 8,            /* then the request counts as refused by all */
	TICK_SHIFT = 30,               /* a tick is 2^30 ns: 1.07 s, and no division to get it */
	NO_DATA_SERVER = 65535,
	NO_POOL = 65535,
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
	unsigned long long netns;      /* cookie of the network namespace that this node is in */
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
	unsigned int cluster;          /* short address */
	unsigned short be_port;
	unsigned short reserved;
};

enum service_flag {
	SERVICE_SPLIT_AT_ACK = 1, /* the server speaks first: adopt at the handshake's last ACK */
	SERVICE_HANDOVER = 2,     /* HTTP/1: every request may be another data server's */
	SERVICE_PATHS = 4,        /* it has routes */
	SERVICE_HOSTS = 8,        /* some of them name hosts */
	SERVICE_DOWN = 16,        /* no pool of it has a data server */
	SERVICE_SIZES = 128,      /* large content has a pool of its own */
};

struct service {
	unsigned short id;             /* 0 .. MAX_SERVICES-1 */
	unsigned short pool;           /* of requests that no route takes */
	unsigned char flags;           /* enum service_flag */
	unsigned char reserved;
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
};

/* Data servers that can answer alike. */
struct pool {
	unsigned long long id;         /* of its name, for the next daemon; 0: there is none */
	unsigned int first_choice;     /* where the live bank begins in the choices map */
	unsigned int choices;          /* how many are set; 0: no DS */
	unsigned int hash_seed;
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

/* Routes, for the longest match of the request target's first bytes. Host 0 is any. The value: a pool. */
struct route_key {
	unsigned int prefix_bits;      /* of what follows */
	unsigned short service;
	unsigned short host;
	unsigned char path[PATH_BYTES];
};

/* A path of large content: see find_large() for its hash. */
struct large_key {
	unsigned long long path;
	unsigned int service;
	unsigned int reserved;
};

enum data_server_flag {
	DATA_SERVER_PRESENT = 1,
	DATA_SERVER_LOCAL = 2,     /* this very node */
	DATA_SERVER_ROUTED = 4,    /* client packets travel inside FORWARD: behind a router, or a CS itself */
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
};

/*
 * Messages that move a connection (ADOPT, HANDOVER) are numbered, from each node to each other one, and
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
	unsigned char frame[OUTBOX_FRAME_BYTES];
};

/* and the receiver's half: the last numbers that came, each at its number modulo WINDOW. */
struct inbox {
	unsigned short came[WINDOW];
};

struct tcb_key {
	unsigned char client[16];
	unsigned int cluster;          /* short address */
	unsigned short be_client_port;
	unsigned short be_cluster_port;
};

enum tcb_state {
	TCB_FIN = 1,      /* the client sent FIN */
	TCB_RST = 2,      /* the client sent RST */
	TCB_PINNED = 4,   /* the owner stays: where a request begins is not sure, or no handover is wanted */
	TCB_ADOPTING = 8, /* the current request went out with ADOPT or HANDOVER; nothing was answered yet */
};

/* What the CS remembers of one connection. With its map overhead 128 bytes: see ARCHITECTURE. */
struct tcb {
	unsigned int request_seq;      /* where the current request begins */
	unsigned int response_start;   /* where the current response begins: the request's acknowledgement */
	unsigned int last_seq;         /* highest client byte seen + 1 */
	unsigned int last_ack;         /* highest acknowledgement seen */
	unsigned int seen;             /* last packet: coarse monotonic clock >> TICK_SHIFT */
	unsigned short owner;          /* index into data_servers */
	unsigned short previous;       /* who had it before the last handover, or NO_DATA_SERVER */
	unsigned short pool;           /* that the current request was routed to */
	unsigned short generation;     /* of the pool when it chose the owner */
	unsigned short mss;
	unsigned char snd_wscale;
	unsigned char rcv_wscale;
	unsigned char options;         /* enum lccp_tcb_option */
	unsigned char state;           /* enum tcb_state */
	unsigned short reserved;
	unsigned int reserved_word;
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
	COUNTER_LCCP_MISSED,         /* did not come, and was asked for again */
	COUNTER_LCCP_SENT_AGAIN,     /* asked for again, and was still there */
	/* CS */
	COUNTER_CS_SYN,              /* answered */
	COUNTER_CS_SYN_BAD_OPTIONS,
	COUNTER_CS_HANDSHAKE_ACK,    /* dropped: the request follows */
	COUNTER_CS_ADOPT,            /* DM1 sent for a new entry */
	COUNTER_CS_ADOPT_AGAIN,      /* the request was retransmitted */
	COUNTER_CS_FORWARD,
	COUNTER_CS_FORWARD_BYTES,
	COUNTER_CS_REQUEST,          /* a further request on a connection that may move */
	COUNTER_CS_PINNED,           /* a connection that can move no more */
	COUNTER_CS_HANDOVER,         /* sent to an owner */
	COUNTER_CS_HANDOVER_AGAIN,   /* the request was retransmitted */
	COUNTER_CS_QUEUED,           /* sent after a HANDOVER, the same way */
	COUNTER_CS_KEPT,             /* an owner refused a handover */
	COUNTER_CS_NONE,             /* a DS does not have a connection: back to the one before */
	COUNTER_CS_NO_DATA_SERVER,   /* nobody to choose: reset */
	COUNTER_CS_UNAVAILABLE,      /* the same for a request of HTTP: answered with 503 */
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
	COUNTER_CS_NO_ROOM,          /* the driver leaves no room in the frame for an answer's headers */
	COUNTER_CS_RESPONSE_BYTES,   /* from the cluster address through the CS: must stay 0 */
	/* DS */
	COUNTER_DS_ADOPTED,
	COUNTER_DS_WINDOW,           /* an adopted connection began with its last owner's congestion window */
	COUNTER_DS_ADOPTED_RELAY,    /* into the daemon's listener: the server's is MPTCP */
	COUNTER_DS_DUPLICATE,        /* ADOPT for a connection that is here already: delivered */
	COUNTER_DS_TIME_WAIT_ENDED,
	COUNTER_DS_STALE_ENDED,      /* an older connection with the same ports */
	COUNTER_DS_REFUSED,
	COUNTER_DS_FORWARDED,        /* unwrapped */
	COUNTER_DS_DELIVERED,        /* plain packets with a socket */
	COUNTER_DS_UNASSIGNED,       /* the kernel refused the socket (tcp_syncookies=0?) */
	COUNTER_DS_HANDED_OVER,      /* to another DS; the socket here ended */
	COUNTER_DS_PASSED_ON,        /* HANDOVER or FORWARD of a connection that is not here (any more) */
	COUNTER_DS_NO_WAY,           /* one of these two, but no way to the next DS is known: back to the CS */
	COUNTER_DS_KEPT_STATE,       /* handovers refused, by enum lccp_keep */
	COUNTER_DS_KEPT_UNSENT,
	COUNTER_DS_KEPT_UNREAD,
	COUNTER_DS_KEPT_SEQUENCE,
	COUNTER_DS_KEPT_NO_WAY,
	COUNTER_DS_NONE,             /* a packet of no connection here, sent back to its CS */
	COUNTER_DS_NO_SOCKET,        /* dropped in silence: a RST is the CS's to send */
	COUNTER_MAX,
};

struct counters {
	unsigned long long value[COUNTER_MAX];
};

#endif
