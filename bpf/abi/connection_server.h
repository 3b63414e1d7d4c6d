/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the connection server and the switch remember: entries, tallies, claims, and what the daemon changes in them. */
#ifndef BATON_ABI_CONNECTION_SERVER_H
#define BATON_ABI_CONNECTION_SERVER_H

#include "abi/settings.h"

enum tcb_state {
	TCB_FIN = 1,      /* the client sent FIN */
	TCB_RST = 2,      /* the client sent RST */
	TCB_AT_DOOR = 4,  /* the owner judges and counts the connection's requests: see data_server/door/at_door.h */
	TCB_ADOPTING = 8, /* the connection went to its owner with ADOPT, and nothing has been answered yet */
	TCB_WAITING = 16, /* nothing of the response is acknowledged, so the response begins at last_ack */
	TCB_RESUMING = 64, /* the owner has the rest of the response and waits for the connection */
};

/* What the CS remembers of one connection. An entry takes 128 bytes with its map overhead. */
struct tcb {
	unsigned int request_seq;      /* sequence number at which the request begins that the connection went to its
	                                  owner with */
	unsigned int last_seq;         /* highest client byte seen + 1 */
	unsigned int last_ack;         /* highest acknowledgement seen */
	unsigned int seen;             /* when the last packet came: coarse monotonic clock >> TICK_SHIFT */
	unsigned short owner;          /* index into data_servers */
	unsigned short previous;       /* index of the data server that has the connection while its response moves
	                                  (connection_server/orphans/move.h); else NO_DATA_SERVER */
	unsigned short pool;           /* that the connection's first request was routed to */
	unsigned short route;          /* number of the route that the first request took */
	unsigned short mss;
	unsigned char snd_wscale;
	unsigned char rcv_wscale;
	unsigned char options;         /* enum lccp_tcb_option */
	unsigned char state;           /* enum tcb_state */
	unsigned char attempt;         /* of the ADOPT with which the connection went to its owner: see struct lccp_tcb */
	unsigned char nones;           /* while the connection is being adopted: lower 4 bits: in how many ticks its owner
	                                  said NONE; upper 4 bits: lower half byte of the last of these ticks */
	unsigned int counted;          /* acknowledgement up to which response bytes were tallied; unused with
	                                  TCB_AT_DOOR */
};

/*
 * The text of a request, as the client sent it, whose response may go on from another data server. The owner keeps it
 * (data_server/door/keep_request.h), and its daemon tells the connection servers' daemons.
 */
struct kept_request {
	unsigned int request_seq;      /* sequence number at which the request begins */
	unsigned int response_start;   /* sequence number of the response's first byte */
	unsigned short bytes;
	unsigned short pool;           /* where the owner keeps it: index here of the pool that the request is for,
	                                  or NO_POOL */
	unsigned int reserved;
	unsigned char text[KEPT_BYTES];
};

/*
 * A point at which a connection was at rest, as its owner said: each request had its whole response, and the client had
 * all of that. A packet that begins at `seq` and acknowledges up to `ack` begins a request, and its client has nothing
 * of the response to that request.
 */
struct quiet_point {
	unsigned int seq;
	unsigned int ack;
	unsigned int owner;            /* index of the data server that reported it */
};

/* An entry whose data server died in the middle of a response, or may have. */
struct orphan {
	struct tcb_key key;
	struct tcb tcb;
	unsigned int reserved;
};

/* Argument and result of the find_flows program, which finds the orphans of a data server. */
struct find_flows {
	unsigned int owner;            /* index of the data server */
	unsigned int first;            /* how many are known from earlier runs */
	unsigned int found;            /* result: how many there are, up to first + ORPHANS */
};

/* Argument and result of the change program: it changes an entry in place if the entry is as the daemon expects. */
struct change {
	struct tcb_key key;
	unsigned int request_seq;      /* condition: this is where the current request begins */
	unsigned short owner;          /* condition: this is the index of the owner */
	unsigned short next;           /* index of the new owner; the entry has no previous one then */
	unsigned char set;             /* bits to set (enum tcb_state); `clear` has the bits to clear */
	unsigned char clear;
	unsigned short found;          /* result: 1 if the conditions held */
	struct tcb tcb;                /* result: the entry after the change; valid if found */
};

enum move_step {
	MOVE_BEGIN = 1,                /* the connection is to become the next owner's; until it does, packets go by
	                                  way of its last owner */
	MOVE_BACK = 2,                 /* the connection stays at its last owner after all */
	MOVE_DONE = 3,                 /* the next owner has the connection */
	MOVE_ORPHANED = 4,             /* the last owner has let go or is dead, and the next one does not have the
	                                  connection */
};

/* Argument and result of the move program, for an entry whose response is to go on at another data server. */
struct moving {
	struct tcb_key key;
	unsigned int request_seq;      /* condition: this is where the current request begins */
	unsigned short from;           /* the owners before (`from`) and after the move (`to`). Condition: `from` is
	                                  the entry's owner with MOVE_BEGIN; else `to` is its owner, and `from` its
	                                  previous one */
	unsigned short to;
	unsigned short step;           /* enum move_step */
	unsigned short found;          /* result: 1 if the conditions held */
	struct tcb tcb;                /* result: the entry after the step; valid if found */
};

/* Where the tallies of each sort begin in their map. */
enum tally_place {
	TALLY_DATA_SERVERS = 0,
	TALLY_POOLS = MAX_DATA_SERVERS,
	TALLY_ROUTES = MAX_DATA_SERVERS + MAX_POOLS,
	TALLIES = MAX_DATA_SERVERS + MAX_POOLS + TALLIED_ROUTES,
};

/*
 * What a route, a pool or a data server had to do, as the CS decided. It counts connections, requests that nobody
 * answers, and everything that no door counts. A pool's or route's tally counts the requests that are for it; a data
 * server's counts the requests that it was given.
 */
struct tally {
	unsigned long long requests;
	unsigned long long bytes;      /* response bytes that clients acknowledged; a server's FIN counts as one more */
	unsigned long long connections; /* connections given to a data server, by adoption or handover */
	unsigned long long taken_back; /* requests given to a data server that another one answered instead */
	unsigned long long unavailable; /* requests that no data server was there to answer */
};

/* What the CS knows about a flow that has no entry here. */
struct stray {
	unsigned long long first;      /* when its first packet came: coarse monotonic clock, ns */
	unsigned long long asked;      /* when the last CLAIM for it went out, or `first` */
	unsigned int walks;            /* how many CLAIMs went out for it */
	unsigned int unclaimed;        /* not 0: the answer to the last CLAIM was that no data server has it */
	unsigned int begins;           /* not 0: the last CLAIM carried the whole packet, which begins a connection
	                                  if no data server has it */
	unsigned int reserved;
};

/*
 * How likely it is that a packet without an entry here belongs to a real connection: see
 * connection_server/find/claim_budget.h.
 */
enum claim_class {
	CLAIM_PROVED = 0,
	CLAIM_LIKELY = 1,
	CLAIM_STRANGER = 2,
	CLAIM_CLASSES = 4,             /* a power of two, larger than every class */
};

/* How many messages the CLAIMs of one processor have caused in this tick. */
struct claims {
	unsigned int tick;
	unsigned int spent[CLAIM_CLASSES];
};

/* How many messages the CLAIMs for one source of packets have caused in this tick. */
struct claim_source {
	unsigned int tick;
	unsigned int sent;
};

/*
 * What one hash of a flow leads to at the switch: indices of connection servers. There are two where one has lately
 * replaced another.
 */
struct maglev_slot {
	unsigned short now;            /* for connections that begin */
	unsigned short before;         /* for connections that began before `now` was set; else the same */
	unsigned int turn;             /* how often `now` has changed */
};

/* The header in front of each frame that waits in the ring. */
struct held_frame {
	unsigned long long time;       /* when the frame came: coarse monotonic clock, ns */
	unsigned int interface;        /* the interface that it came by */
	unsigned int bytes;            /* of the frame, without padding */
};

/*
 * Until when requests wait here, because another connection server is about to take over. Once that one knows
 * everything that is known here, all packets of clients go there instead.
 */
struct hold {
	unsigned long long until;      /* coarse monotonic clock, ns; 0: requests do not wait */
	unsigned int passes_on;        /* not 0: packets of clients are passed on to `to` */
	unsigned int reserved;
	struct data_server to;         /* how to reach the connection server that takes over */
};

/* Argument and result of the sweep program, which expires TCB entries. */
struct sweep {
	unsigned int idle_ticks;       /* expiry time of open connections, ticks */
	unsigned int closing_ticks;    /* expiry time after FIN or RST, ticks */
	unsigned int live;             /* result: entries kept */
	unsigned int expired;          /* result: entries removed */
};

/*
 * When programs last refused messages of a node that the daemon knows: monotonic clock, ns; 0: never. Only the message
 * of `stale_ns` had the right tag; anybody could have written the sender's address on the others.
 */
struct refused_node {
	unsigned long long bad_version_ns;
	unsigned long long bad_tag_ns;
	unsigned long long stale_ns;
	long long ahead_ns;            /* its clock less ours, measured at `stale_ns` */
	unsigned int version;          /* the version that it sent, at `bad_version_ns` */
	unsigned int reserved;
};

#endif
