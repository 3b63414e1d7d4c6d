/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages of the packet path between nodes (LCCP): their header, and what it says about a connection. */
#ifndef BATON_ABI_LCCP_H
#define BATON_ABI_LCCP_H

enum lccp_constant {
	LCCP_VERSION = 4,
	LCCP_HEADER_BYTES = 80,
	LCCP_TAGGED_BYTES = 72,   /* the header without its tag */
	LCCP_OVERHEAD_BYTES = 100, /* what an outer IPv4 header and LCCP add to a client's packet */
	LCCP_BODY_CHUNK = 32,     /* a body is tagged in pieces of this many bytes; the last piece is filled up with
	                             zeros */
	LCCP_MAX_BODY = 1024,
	LCCP_MAX_RESUME = 1400,   /* the longest body of RESUME and of HEAD, both of which may hold a request */
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
	LCCP_FORWARD = 3, /* a client's packet: for an owner behind a router, behind an ADOPT, or to where its
	                     connection has gone */
	LCCP_HELLO = 4,   /* heartbeat, load and health; has a body */
	LCCP_NONE = 7,    /* the connection is not here or, after CLAIM, nowhere; carries the client's packet back */
	LCCP_SYNC = 8,    /* daemon to daemon: the number of the last message sent to you (data) */
	LCCP_RESEND = 9,  /* daemon to daemon: the messages with these numbers did not come; the body is a list of
	                     be16 numbers */
	LCCP_CLAIM = 10,  /* who has this connection? Passed from DS to DS until one has it; carries the client's
	                     packet */
	LCCP_MOVED = 11,  /* the connection is at the sender, or at the DS that the owner handed it to; the message
	                     has its travelling part and carries the packet */
	LCCP_QUERY = 12,  /* a DS's daemon to the dispatcher: which DS is to serve this request? Has a body */
	LCCP_REPLY = 13,  /* the dispatcher to the daemon of the DS that asked: the DS that is to serve the request.
	                     Has a body */
	LCCP_ALIVE = 16,  /* daemon to DS program, which sends it back: does your host live? No body */
	LCCP_RESUME = 17, /* daemon to daemon: fetch the rest of this response; has a body */
	LCCP_READY = 18,  /* daemon to daemon: the outcome of a RESUME; has a body */
	LCCP_CANDIDATE = 19, /* daemon to daemon: which connection server is in front, or would be; has a body */
	LCCP_TCBS = 20,   /* daemon to daemon: a batch of TCB entries; has a body */
	LCCP_TAKEN = 21,  /* daemon to daemon: which batches of TCB entries have come; has a body */
	LCCP_ORDER = 22,  /* daemon to daemon: what an operator wants of the receiver; has a body */
	LCCP_YIELD = 24,  /* daemon to DS program: let this response go on at another DS. DS program to daemon: enum
	                     lccp_yield. Carries an ACK */
	LCCP_ACCOUNT = 27, /* daemon to daemon: how an order is getting on; has a body */
	LCCP_RECEIVED = 29, /* DS to DS: all data before `data` that the receiver keeps of this connection is here;
	                       carries some of that data */
	LCCP_HEAD = 23,   /* daemon to daemon: how the responses begin that leave the sender; has a body */
};

/*
 * Commands that a node may not give if it has only its own keys, as one bit for each command: these commands move other
 * nodes' connections. YIELD is among them when it goes to a data server's program; the answer to it is not.
 */
enum lccp_command_set {
	LCCP_LEADING = 1 << LCCP_YIELD | 1 << LCCP_RESUME | 1 << LCCP_CANDIDATE | 1 << LCCP_TCBS | 1 << LCCP_TAKEN |
		       1 << LCCP_ORDER,
	LCCP_LEADING_AT_DS = 1 << LCCP_YIELD,
};

/* lccp_header.flags */
enum lccp_flag {
	LCCP_FLAG_RESUME = 1, /* of ADOPT: the agent that has the rest of a response is to adopt the connection */
	LCCP_FLAG_HEADERS = 2, /* of CLAIM: the message carries the client's packet without its data, so the packet
	                          is not to be delivered */
	LCCP_FLAG_KEPT = 8, /* of FORWARD: a DS keeps the packet's data, and sends it until it hears RECEIVED. Of
	                       ADOPT: it may have come before; the lower half of tcb.be_resume is the short address
	                       of the DS that keeps its data, or 0 if only the client does */
	LCCP_FLAG_GONE = 16, /* of RECEIVED: the connection is not here, and it is not known where it may be */
};

/*
 * What lccp_header.data holds, by command:
 * FORWARD with LCCP_FLAG_KEPT: the short address of the DS that keeps the data.
 * FORWARD without it: the short address of the DS that is to have the connection when the receiver lets it go, or 0.
 * ADOPT: the short address of the CS that is to hear of a refusal.
 * REFUSED: enum lccp_refusal.
 * NONE: enum lccp_none.
 * CLAIM: the short address of the CS that asks.
 * MOVED: the short address of the DS that the sender has handed the connection to, or 0.
 * RECEIVED: the sequence number that is expected next.
 * YIELD: the short address of the next DS; 0: the connection stays. In the answer: enum lccp_yield.
 * ALIVE: 1 if its sender has taken the receiver for dead, else 0.
 */

enum lccp_refusal {
	LCCP_REFUSAL_NO_LISTENER = 1,
	LCCP_REFUSAL_NOT_ASSIGNED = 2, /* the kernel would not make a socket from the packet */
	LCCP_REFUSAL_UNREADABLE = 4,   /* the owner has to judge this request, and cannot read it */
};

/* What NONE says about the packet that it carries back. */
enum lccp_none {
	LCCP_NONE_PLAIN = 1,           /* the packet came plain, without a message around it: its connection server
	                                  had already judged it */
};

/* What the owner answers to YIELD once the outcome is decided. */
enum lccp_yield {
	LCCP_YIELD_GONE = 1,           /* the connection is not here (anymore) */
	LCCP_YIELD_KEPT = 2,           /* the connection is here and stays, as the daemon ordered */
	LCCP_YIELD_REFUSED = 3,        /* the connection is here and cannot leave */
};

/* lccp_tcb.options */
enum lccp_tcb_option {
	LCCP_TCB_SACK = 1,
	LCCP_TCB_WSCALE = 2,
	LCCP_TCB_AWARE = 4,            /* the client sends to the data server itself once it knows that one's address */
};

struct lccp_flow {
	unsigned char client[16];
	unsigned char cluster[16];
	unsigned short be_client_port;
	unsigned short be_cluster_port;
};

/* The part of a TCB entry that travels: facts that no later packet of the client repeats. */
struct lccp_tcb {
	unsigned short be_mss;         /* largest segment that the client accepts, bytes */
	unsigned char snd_wscale;      /* the window scale that the client announced, 0-14 */
	unsigned char rcv_wscale;      /* the window scale that the SYN-ACK announced, 0-14 */
	unsigned char options;         /* enum lccp_tcb_option */
	unsigned char attempt;         /* how many DSs have refused this request, were asked by CLAIM, or have sent
	                                  the packet on */
	unsigned short be_cwnd;        /* the owner's congestion window, segments; 0: that of a new connection */
	unsigned long long be_resume;  /* of ADOPT with LCCP_FLAG_KEPT: which DS keeps its data (see that flag). Of
	                                  MOVED, if its packet is not the request that the connection left with: enum
	                                  moved_request and that request's sequence number. Else 0 */
};

enum moved_request {
	MOVED_BEHIND = 1,              /* in the upper half of be_resume: the lower half is that sequence number */
};

/*
 * Behind the header follow `be_body_length` bytes of body, which the tag covers, or (body length 0) the client's
 * packet.
 */
struct lccp_header {
	unsigned char version;         /* version and receptor are at the same place in every version */
	unsigned char receptor;
	unsigned char command;
	unsigned char flags;           /* enum lccp_flag; a receiver ignores bits it does not know */
	unsigned short be_body_length;
	unsigned short be_sequence;    /* number of the message from this sender to this receiver; 0: it has none.
	                                  DSs number ADOPT and FORWARD. CSs number ADOPT, CLAIM, and FORWARD by way
	                                  of an owner that lets go (connection_server/orphans/move.h), but not the
	                                  messages that they send after REFUSED or NONE */
	struct lccp_flow flow;
	unsigned int be_data;          /* its meaning depends on the command: see above */
	struct lccp_tcb tcb;
	unsigned long long be_clock;   /* the sender's wall clock, nanoseconds since 1970 */
	unsigned long long be_tag;     /* SipHash-2-4 of the 72 bytes before it and of what lccp/seal.h adds */
};

#endif
