/* SPDX-License-Identifier: GPL-2.0 */
/* Output into a file that readers see whole, either the old or the new one. */
#ifndef IPVSCTL_OUTFILE_H
#define IPVSCTL_OUTFILE_H

/* Calls @print, which writes to stdout, with stdout directed to @path, or as it
 * is if @path is NULL. A regular file is replaced only if all was written: a
 * failure leaves the old one.
 */
int outfile_write(const char *path, int (*print)(void *arg), void *arg);

#endif
