/* SPDX-License-Identifier: GPL-2.0 */
/* `ipvsctl conn log`. */
#ifndef IPVSCTL_CONN_LOG_H
#define IPVSCTL_CONN_LOG_H

struct args;

int conn_log(struct args *a);

#endif
