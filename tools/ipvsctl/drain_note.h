/* SPDX-License-Identifier: GPL-2.0 */
/* The weights that servers of in-tree ip_vs had before they were drained. */
#ifndef IPVSCTL_DRAIN_NOTE_H
#define IPVSCTL_DRAIN_NOTE_H

#include <stdbool.h>
#include <stdint.h>

struct server;
struct svc_id;

void drain_remember(const struct svc_id *id, const struct server *srv,
		    uint32_t weight);
/* False if no weight is noted. */
bool drain_recall(const struct svc_id *id, const struct server *srv,
		  uint32_t *weight);

/* Drops the note: the server was deleted or added, or has a weight again. */
void drain_forget(const struct svc_id *id, const struct server *srv);

#endif
