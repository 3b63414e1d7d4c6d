// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/* Sends every UDP packet to port 7 back where it came from. Swapping leaves the checksums right. */
struct xdp_md {
	unsigned int data;
	unsigned int data_end;
};

static void swap(unsigned char *one, unsigned char *other, int bytes)
{
	for (int i = 0; i < bytes; i++) {
		unsigned char kept = one[i];

		one[i] = other[i];
		other[i] = kept;
	}
}

__attribute__((section("xdp"), used)) int echo(struct xdp_md *context)
{
	unsigned char *packet = (unsigned char *)(long)context->data;
	unsigned char *end = (unsigned char *)(long)context->data_end;

	if (packet + 42 > end)
		return 2; /* XDP_PASS */
	/* IPv4, UDP, to port 7 */
	if (packet[12] != 8 || packet[13] != 0 || packet[23] != 17 || packet[36] != 0 || packet[37] != 7)
		return 2;
	swap(packet, packet + 6, 6);
	swap(packet + 26, packet + 30, 4);
	swap(packet + 34, packet + 36, 2);
	return 3; /* XDP_TX */
}
