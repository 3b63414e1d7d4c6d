/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef NATIVE_BPF_ENDIAN_H
#define NATIVE_BPF_ENDIAN_H

#define bpf_htons(x) ((__u16)__builtin_bswap16(x))
#define bpf_ntohs(x) ((__u16)__builtin_bswap16(x))
#define bpf_htonl(x) ((__u32)__builtin_bswap32(x))
#define bpf_ntohl(x) ((__u32)__builtin_bswap32(x))
#define bpf_cpu_to_be64(x) ((__u64)__builtin_bswap64(x))
#define bpf_be64_to_cpu(x) ((__u64)__builtin_bswap64(x))

#endif
