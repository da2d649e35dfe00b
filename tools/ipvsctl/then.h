/* SPDX-License-Identifier: GPL-2.0 */
/* What follows a drain, in words: stay, delete, reset, move. */
#ifndef IPVSCTL_THEN_H
#define IPVSCTL_THEN_H

#include <stdint.h>

const char *then_name(uint32_t then);	/* NULL if unknown */
int parse_then(const char *word, const char *object, uint32_t *then);

#endif
