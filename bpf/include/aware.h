/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The TCP options by which an aware client and its data server talk: those of an experiment with a 32-bit identifier
 * (RFC 6994), "BTN" and then the version. The client's option says that it will send to the data server itself if it is
 * told that one's address. It is in the client's packets until the first of its bytes is acknowledged. The data
 * server's option names its IPv4 address. It is in the data server's packets until the first byte of its response is
 * acknowledged. So TCP itself repeats both for as long as they may be lost. If the connection moves to another data
 * server, that one sends its address in the same way. The kernel writes such options behind all others.
 */
#ifndef BATON_INCLUDE_AWARE_H
#define BATON_INCLUDE_AWARE_H

enum {
	AWARE_KIND = 253,
	AWARE_SEARCH_BYTES = 6,    /* kind, length and identifier: what bpf_load_hdr_opt() compares */
	AWARE_BYTES = 8,
	HERE_BYTES = 12,
	HERE_ADDRESS_AT = 6,
};

#define AWARE_OPTION { AWARE_KIND, AWARE_BYTES, 'B', 'T', 'N', 1 }
#define HERE_OPTION { AWARE_KIND, HERE_BYTES, 'B', 'T', 'N', 1 }
#define HERE_SEARCH { AWARE_KIND, AWARE_SEARCH_BYTES, 'B', 'T', 'N', 1 }

#endif
