/* SPDX-License-Identifier: GPL-2.0 */
/* Lines of an FTP control connection that announce a data connection. */
#ifndef _L4LB_FTP_COMMAND_H
#define _L4LB_FTP_COMMAND_H

#include <linux/types.h>

enum l4lb_ftp_kind {
	L4LB_FTP_OTHER,
	L4LB_FTP_PORT,		/* client: connect to me (RFC 959) */
	L4LB_FTP_EPRT,		/* the same of any family (RFC 2428) */
	L4LB_FTP_PASV,		/* client: where may I connect to? */
	L4LB_FTP_EPSV,
	L4LB_FTP_PASSIVE,	/* server, 227: there */
	L4LB_FTP_EXTENDED,	/* server, 229: there, and the address is known */
};

enum {
	L4LB_FTP_WITHIN	= 4096,	/* of a packet's text, so many bytes are read */
};

/**
 * struct l4lb_ftp_line - a line that was read
 * @kind: what it says
 * @family: of EPRT: 1 IPv4, 2 IPv6
 * @addr: of PORT and 227
 * @port: of PORT, EPRT, 227 and 229: 1 to 65535
 * @at: what NAT may change begins there, in bytes from the line's: of EPRT the address, of
 *	227 the six numbers, of 229 the port
 * @len: its length
 */
struct l4lb_ftp_line {
	enum l4lb_ftp_kind	kind;
	u8			family;
	u8			addr[4];
	u16			port;
	unsigned int		at;
	unsigned int		len;
};

unsigned int l4lb_ftp_command(const u8 *text, unsigned int len, struct l4lb_ftp_line *line);
unsigned int l4lb_ftp_answer(const u8 *text, unsigned int len, struct l4lb_ftp_line *line);

#endif /* _L4LB_FTP_COMMAND_H */
