/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IPVSCTL_KEEP_H
#define IPVSCTL_KEEP_H

/* A copy of @text that is valid until the program ends; one for all equal texts. */
const char *keep_text(const char *text);

#endif
