// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Lets every packet pass. On one end of a veth it makes the other end's XDP_TX arrive at once:
 * veth_xdp_flush() of drivers/net/veth.c wakes the receiving end only if that has a program too. Because of the
 * section "xdp.frags" the kernel accepts the program with any MTU.
 */
__attribute__((section("xdp.frags"), used)) int pass(void *context)
{
	return 2; /* XDP_PASS of linux/bpf.h */
}
