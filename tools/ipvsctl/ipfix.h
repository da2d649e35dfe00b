/* SPDX-License-Identifier: GPL-2.0 */
/* Exports connections that have ended to a collector: IPFIX (RFC 7011) by UDP. */
#ifndef IPVSCTL_IPFIX_H
#define IPVSCTL_IPFIX_H

struct ended;

/* @collector: ADDR[:PORT]. Returns an exit code, with the failure recorded. */
int ipfix_open(const char *collector);
void ipfix_add(const struct ended *e);
/* Sends what has been added. A collector that is not there is told about once, until
 * it is there again; what it did not get is lost, as always with UDP.
 */
void ipfix_flush(void);
void ipfix_close(void);

#endif
