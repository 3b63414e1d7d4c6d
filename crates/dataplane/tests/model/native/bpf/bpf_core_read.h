/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef NATIVE_BPF_CORE_READ_H
#define NATIVE_BPF_CORE_READ_H

#define preserve_access_index
#define BPF_CORE_READ_BITFIELD(from, field) ((from)->field)

#endif
