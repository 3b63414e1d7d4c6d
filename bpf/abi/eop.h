/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Redirectable sockets: what was decided of their handshakes. `baton eop status` shows it by these names. */
#ifndef BATON_ABI_EOP_H
#define BATON_ABI_EOP_H

enum eop_counter {
	EOP_ANNOUNCED,     /* a socket was told to announce EOP */
	EOP_SYN,           /* a SYN went out with the option */
	EOP_SYN_WITHOUT,   /* a SYN went out without it, because the ones with it had no answer */
	EOP_SYN_ACK,       /* a SYN-ACK answered the option */
	EOP_SYN_ACK_COOKIE, /* it could not, because the SYN is forgotten (SYN cookies) */
	EOP_NO_SPACE,      /* other options left no space */
	EOP_AGREED_CLIENT, /* the server's SYN-ACK had the option */
	EOP_PLAIN_SERVER,  /* it had not, though the SYN had */
	EOP_UNSAID,        /* it answered a SYN without the option, and says nothing */
	EOP_AGREED_SERVER, /* a connection was accepted whose SYN had the option */
	EOP_PLAIN_CLIENT,  /* one whose SYN had not */
	EOP_COUNTERS,
};

#endif
