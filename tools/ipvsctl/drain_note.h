/* SPDX-License-Identifier: GPL-2.0 */
/* The weights that drained servers had. */
#ifndef IPVSCTL_DRAIN_NOTE_H
#define IPVSCTL_DRAIN_NOTE_H

#include <stdbool.h>
#include <stdint.h>

struct server;
struct svc_id;

void drain_remember(const struct svc_id *id, const struct server *srv,
		    uint32_t weight);
/* False: there is no note. */
bool drain_recall(const struct svc_id *id, const struct server *srv,
		  uint32_t *weight);

/* Is any weight noted? */
bool drain_any(void);

/* The server is gone, new, or has a weight: drop the note of its old one. */
void drain_forget(const struct svc_id *id, const struct server *srv);

#endif
