/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IPVSCTL_VERSION_H
#define IPVSCTL_VERSION_H

#define IPVSCTL_VERSION "0.1.0"

/* Version of the JSON documents: one that only adds fields keeps it. */
#define IPVSCTL_SCHEMA 1

#endif
