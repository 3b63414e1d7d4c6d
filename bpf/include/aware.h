/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an aware client and its data server say to each other, in TCP options of an experiment with a 32-bit
 * identifier (RFC 6994): "BTN", then the version. The client's option, in its packets until the first of its
 * bytes is acknowledged, says that it will send to the data server itself if it is told where that is. The
 * data server's, in its packets until the first byte of its response is acknowledged, tells it: an IPv4
 * address. So both are repeated by TCP itself for as long as they may be lost. A connection may move on to another
 * data server, which then tells it the same way. The kernel writes such options behind all others.
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
