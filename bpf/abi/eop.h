/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* EOP, the protocol of redirectable sockets: counters of its handshakes. `baton eop status` shows them in lower case. */
#ifndef BATON_ABI_EOP_H
#define BATON_ABI_EOP_H

enum eop_counter {
	EOP_ANNOUNCED,     /* a program has had its socket announce EOP */
	EOP_SYN,           /* a SYN was to have the option; without space it had none (EOP_NO_SPACE) */
	EOP_SYN_WITHOUT,   /* a SYN was sent without the option, because the first two, with it, were not answered */
	EOP_SYN_ACK,       /* a SYN-ACK was to answer the option; without space it did not (EOP_NO_SPACE) */
	EOP_SYN_ACK_COOKIE, /* a SYN-ACK did not answer the option, because SYN cookies keep nothing of the SYN */
	EOP_NO_SPACE,      /* a SYN or SYN-ACK had no space for the option */
	EOP_AGREED_CLIENT, /* at a client: the SYN-ACK had the option */
	EOP_PLAIN_SERVER,  /* at a client: the SYN-ACK did not have the option, though the SYN had it */
	EOP_UNSAID,        /* at a client: neither the last SYN nor the SYN-ACK had the option, so the server may speak
	                      EOP or not */
	EOP_AGREED_SERVER, /* at a server: the SYN had the option */
	EOP_PLAIN_CLIENT,  /* at a server: the SYN did not have the option, or was not kept (SYN cookies) */
	EOP_COUNTERS,
};

#endif
