/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the connection server remembers, and the switch: entries, tallies, claims, and what the daemon changes in them. */
#ifndef BATON_ABI_CONNECTION_SERVER_H
#define BATON_ABI_CONNECTION_SERVER_H

#include "abi/settings.h"

enum tcb_state {
	TCB_FIN = 1,      /* the client sent FIN */
	TCB_RST = 2,      /* the client sent RST */
	TCB_AT_DOOR = 4,  /* its owner judges and counts its requests: see data_server/door/at_door.h */
	TCB_ADOPTING = 8, /* it went to its owner with ADOPT; nothing was answered yet */
	TCB_WAITING = 16, /* nothing of the response is acknowledged: it begins at last_ack */
	TCB_RESUMING = 64, /* the owner has the rest of the response, and waits for the connection */
};

/* What the CS remembers of one connection. With its map overhead 128 bytes. */
struct tcb {
	unsigned int request_seq;      /* where the request begins with which it went to its owner */
	unsigned int last_seq;         /* highest client byte seen + 1 */
	unsigned int last_ack;         /* highest acknowledgement seen */
	unsigned int seen;             /* last packet: coarse monotonic clock >> TICK_SHIFT */
	unsigned short owner;          /* index into data_servers */
	unsigned short previous;       /* who has it while its response moves: see connection_server/orphans/move.h; else NO_DATA_SERVER */
	unsigned short pool;           /* that its first request was routed to */
	unsigned short route;          /* number of the one that it took */
	unsigned short mss;
	unsigned char snd_wscale;
	unsigned char rcv_wscale;
	unsigned char options;         /* enum lccp_tcb_option */
	unsigned char state;           /* enum tcb_state */
	unsigned short reserved;
	unsigned int counted;          /* acknowledgement up to which response bytes were tallied; but for TCB_AT_DOOR */
};

/*
 * A request whose response may go on from another data server, as the client sent it. The owner keeps it (data_server/door/keep_request.h),
 * and its daemon tells the connection servers' daemons.
 */
struct kept_request {
	unsigned int request_seq;      /* where it begins */
	unsigned int response_start;   /* sequence number of the response's first byte */
	unsigned short bytes;
	unsigned short pool;           /* where its owner sees to it: index here of the one that it is of, or NO_POOL */
	unsigned int reserved;
	unsigned char text[KEPT_BYTES];
};

/*
 * Where a connection was at rest, by the word of its owner: each of its requests had its whole response, and its client had all of
 * that. Whatever begins at `seq` and acknowledges up to `ack` begins a request, of whose response its client has nothing.
 */
struct quiet_point {
	unsigned int seq;
	unsigned int ack;
	unsigned int owner;            /* index of the data server that has told it */
};

/* An entry whose data server died in the middle of a response, or may have. */
struct orphan {
	struct tcb_key key;
	struct tcb tcb;
	unsigned int reserved;
};

/* Argument and result of the muster program, which finds orphans. */
struct muster {
	unsigned int owner;            /* index of the data server */
	unsigned int first;            /* so many are known from an earlier muster */
	unsigned int found;            /* result: how many there are, up to first + ORPHANS */
};

/* Argument and result of the change program: an entry in place, if it is as the daemon believes. */
struct change {
	struct tcb_key key;
	unsigned int request_seq;      /* if this is the current request */
	unsigned short owner;          /* and this the owner */
	unsigned short next;           /* then this one is, and there is none before it */
	unsigned char set;             /* enum tcb_state */
	unsigned char clear;
	unsigned short found;          /* result: 1 if that was so */
	struct tcb tcb;                /* result: the entry then; valid if found */
};

enum move_step {
	MOVE_BEGIN = 1,                /* it is to be the next one's, and goes by its last owner until it is */
	MOVE_BACK = 2,                 /* it stays where it was after all */
	MOVE_DONE = 3,                 /* the next one has it */
	MOVE_ORPHANED = 4,             /* its last owner has let go or is dead, and the next one has not got it */
};

/* Argument and result of the move program: an entry whose response is to go on at another data server. */
struct moving {
	struct tcb_key key;
	unsigned int request_seq;      /* if this is the current request, */
	unsigned short from;           /* and these its owners, before and after */
	unsigned short to;
	unsigned short step;           /* enum move_step */
	unsigned short found;          /* result: 1 if that was so */
	struct tcb tcb;                /* result: the entry then; valid if found */
};

/* Where the tallies of each sort begin in their map. */
enum tally_place {
	TALLY_DATA_SERVERS = 0,
	TALLY_POOLS = MAX_DATA_SERVERS,
	TALLY_ROUTES = MAX_DATA_SERVERS + MAX_POOLS,
	TALLIES = MAX_DATA_SERVERS + MAX_POOLS + TALLIED_ROUTES,
};

/*
 * What a route, a pool or a data server had to do, as the CS decided: connections, requests that nobody answers, and what no
 * door counts. Those of a pool or route count the requests that are for it; those of a data server the ones it was given.
 */
struct tally {
	unsigned long long requests;
	unsigned long long bytes;      /* of responses, acknowledged by clients; a server's FIN is one more */
	unsigned long long connections; /* given to a data server: to adopt, or handed on */
	unsigned long long taken_back; /* of a data server's requests: another one answered them */
	unsigned long long unavailable; /* requests that nobody was there to answer */
};

/* Of a flow nobody here knows. */
struct stray {
	unsigned long long first;      /* when its first packet came: coarse monotonic, ns */
	unsigned long long asked;      /* when the last CLAIM went out, or `first` */
	unsigned int walks;            /* how many did */
	unsigned int unclaimed;        /* not 0: the answer to the last was that nobody has it */
	unsigned int begins;           /* not 0: the last went out with all of the packet, which begins a connection if nobody has it */
	unsigned int reserved;
};

/* Tags of cookies with which connections have begun: see cookie_tag(). 0: none. */
struct used_cookies {
	unsigned int next;             /* where the next one goes, modulo USED_COOKIES_PER_SET */
	unsigned int tags[USED_COOKIES_PER_SET];
};

/* What speaks for a packet that nobody here knows. */
enum claim_class {
	CLAIM_PROVED = 0,
	CLAIM_LIKELY = 1,
	CLAIM_STRANGER = 2,
	CLAIM_CLASSES = 4,             /* a power of two above these */
};

/* How many messages the CLAIMs of one processor have caused in this tick. */
struct claims {
	unsigned int tick;
	unsigned int spent[CLAIM_CLASSES];
};

/* And those for one source. */
struct claim_source {
	unsigned int tick;
	unsigned int sent;
};

/* Of a hash: indices of connection servers at the switch. Two where one took the place of another lately. */
struct place {
	unsigned short now;            /* of connections that begin */
	unsigned short before;         /* of those that began before it came; else the same */
	unsigned int turn;             /* how often `now` has become another */
};

/* In front of a frame that waits, in its ring. */
struct held_frame {
	unsigned long long time;       /* when it came: coarse monotonic, ns */
	unsigned int interface;        /* where */
	unsigned int bytes;            /* of the frame, without padding */
};

/*
 * Until when requests wait here, because another connection server is about to take over; and once it knows
 * all that is known here, everything of clients goes there instead.
 */
struct hold {
	unsigned long long until;      /* coarse monotonic, ns; 0: they do not */
	unsigned int passes_on;        /* not 0: to `to` */
	unsigned int reserved;
	struct data_server to;         /* the way to it */
};

/* Argument and result of the sweep program, which expires TCB entries. */
struct sweep {
	unsigned int idle_ticks;       /* for open connections */
	unsigned int closing_ticks;    /* after FIN or RST */
	unsigned int live;             /* result: entries kept */
	unsigned int expired;          /* result: entries removed */
};

/*
 * What programs have refused last of a node that the daemon knows: times are of the monotonic clock, ns, 0 for never.
 * Only the last of these had the right tag; the others are the word of whoever wrote that address.
 */
struct refused_node {
	unsigned long long bad_version_ns;
	unsigned long long bad_tag_ns;
	unsigned long long stale_ns;
	long long ahead_ns;            /* its clock less ours, with `stale_ns` */
	unsigned int version;          /* with `bad_version_ns` */
	unsigned int reserved;
};

#endif
