/* SPDX-License-Identifier: GPL-2.0 */
/* Command lines of ipvsadm, said in ipvsctl's words. */
#ifndef IPVSCTL_IPVSADM_H
#define IPVSCTL_IPVSADM_H

#include <stdbool.h>

struct args;

/* Do the words of a command line hold a command of ipvsadm, such as -A? */
bool ipvsadm_is_line(int count, char **word);

/* Writes the ipvsctl line of the ipvsadm options @in to @out, whose words stay
 * valid until the next call; or fails. With @whole the line also names the
 * settings that ipvsadm -E and -e put back to their default unasked.
 */
int ipvsadm_translate(struct args *in, bool whole, struct args *out);

#endif
