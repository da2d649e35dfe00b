/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the files of the program and by the fuzzer. */
#ifndef _L4LB_UNIT_WIRE_H
#define _L4LB_UNIT_WIRE_H

#include "sync/wire_read.h"
#include "sync/wire_write.h"

/* The fuzzer's entry: the first byte says how the others are used. */
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#endif /* _L4LB_UNIT_WIRE_H */
