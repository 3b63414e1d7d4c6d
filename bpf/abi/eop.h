/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Redirectable sockets: what was decided in their handshakes. `baton eop status` shows the counters by these names. */
#ifndef BATON_ABI_EOP_H
#define BATON_ABI_EOP_H

enum eop_counter {
	EOP_ANNOUNCED,     /* a socket was told to announce EOP */
	EOP_SYN,           /* a SYN went out with the option */
	EOP_SYN_WITHOUT,   /* a SYN went out without the option, because the SYNs with it had no answer */
	EOP_SYN_ACK,       /* a SYN-ACK answered the option */
	EOP_SYN_ACK_COOKIE, /* a SYN-ACK could not answer the option, because the SYN was forgotten (SYN cookies) */
	EOP_NO_SPACE,      /* other options left no space */
	EOP_AGREED_CLIENT, /* the server's SYN-ACK had the option */
	EOP_PLAIN_SERVER,  /* the server's SYN-ACK did not have the option, though the SYN had it */
	EOP_UNSAID,        /* the server answered a SYN without the option, which tells nothing */
	EOP_AGREED_SERVER, /* a connection was accepted whose SYN had the option */
	EOP_PLAIN_CLIENT,  /* a connection was accepted whose SYN did not have the option */
	EOP_COUNTERS,
};

#endif
