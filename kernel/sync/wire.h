/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The messages of connection synchronisation, in ip_vs's versions 0 and 1.
 * They are bytes and records here: nothing knows a connection, a socket or a
 * namespace, so wire_read.c and wire_write.c are user-space programs, too.
 *
 * Numbers are big-endian and at any alignment, see wire_read.c.
 */
#ifndef _L4LB_SYNC_WIRE_H
#define _L4LB_SYNC_WIRE_H

#include <linux/netfilter.h>
#include <linux/types.h>

enum {
	L4LB_SYNC_RECORD_MAX	= 373,	/* bytes, the longest of version 1 */
	L4LB_SYNC_RECORDS_MAX	= 255,	/* in a message: the count has 8 bits */
};

/* Bytes of the parts of a message. */
enum {
	L4LB_SYNC_HEADER_V0	= 4,
	L4LB_SYNC_HEADER_V1	= 8,
	L4LB_SYNC_IPV4_V0	= 24,
	L4LB_SYNC_IPV4_V1	= 36,
	L4LB_SYNC_IPV6_V1	= 72,
	L4LB_SYNC_SEQ_SIZE	= 24,
	L4LB_SYNC_LEFT_SIZE	= 4,
	L4LB_SYNC_GONE_SIZE	= 1,
	L4LB_SYNC_ALIGN		= 4,	/* of records in a message */
};

/* Options of a record of version 1: one byte type, one byte length, data. */
enum {
	L4LB_SYNC_OPT_SEQ	= 1,
	L4LB_SYNC_OPT_PE_DATA	= 2,
	L4LB_SYNC_OPT_PE_NAME	= 3,
	L4LB_SYNC_OPT_LEFT	= 4,	/* only as an optional one */
	L4LB_SYNC_OPT_GONE	= 5,	/* never as one: others drop the record */
	L4LB_SYNC_OPT_OPTIONAL	= 0x40,	/* may be unknown to the receiver */
	L4LB_SYNC_OPT_HEADER	= 2,	/* bytes of type and length */
};

/* The only persistence engine whose data are used. */
#define L4LB_SYNC_SIP	"sip"

/* A record's flags; the method is in %IP_VS_CONN_F_FWD_MASK. */
enum {
	L4LB_SYNC_F_SYNC	= 0x20,
	L4LB_SYNC_F_HASHED	= 0x40,
	L4LB_SYNC_F_NO_OUTPUT	= 0x80,
	L4LB_SYNC_F_INACTIVE	= 0x100,
	L4LB_SYNC_F_SEQ		= 0x600,
	L4LB_SYNC_F_NO_CPORT	= 0x800,
	L4LB_SYNC_F_TEMPLATE	= 0x1000,
	L4LB_SYNC_F_ONE_PACKET	= 0x2000,
};

/**
 * enum l4lb_sync_error - why a message or record was not (wholly) used
 * @L4LB_SYNC_OK: it was
 * @L4LB_SYNC_SHORT: message of less than 4 bytes
 * @L4LB_SYNC_SIZE: the size field is not the datagram's length
 * @L4LB_SYNC_ID: another group's sync id
 * @L4LB_SYNC_VERSION: empty for version 0 and no header of version 1, in a
 *	message of at least 8 bytes
 * @L4LB_SYNC_TRAILING: bytes behind the last record
 * @L4LB_SYNC_RECORD: record of a wrong length, version or type: the rest of the
 *	message is dropped
 * @L4LB_SYNC_OPTION: option of a wrong length, cut off, or a second of its type:
 *	the rest is dropped; or an unknown one that is not optional, or data of a
 *	persistence engine without its name: the record is
 * @L4LB_SYNC_FLAGS: one packet, or a template without client port
 * @L4LB_SYNC_STATE: the protocol or template has no such state
 * @L4LB_SYNC_PROTOCOL: neither TCP, UDP, SCTP, AH, ESP nor a template
 * @L4LB_SYNC_UNSUPPORTED: valid, but not for this director; not by the reader
 * @L4LB_SYNC_ERRORS: their number
 *
 * Each is a counter.
 */
enum l4lb_sync_error {
	L4LB_SYNC_OK,
	L4LB_SYNC_SHORT,
	L4LB_SYNC_SIZE,
	L4LB_SYNC_ID,
	L4LB_SYNC_VERSION,
	L4LB_SYNC_TRAILING,
	L4LB_SYNC_RECORD,
	L4LB_SYNC_OPTION,
	L4LB_SYNC_FLAGS,
	L4LB_SYNC_STATE,
	L4LB_SYNC_PROTOCOL,
	L4LB_SYNC_UNSUPPORTED,
	L4LB_SYNC_ERRORS,
};

/**
 * struct l4lb_sync_seq - how a direction's sequence numbers are adjusted
 * @init: sequence number from which @delta is added
 * @delta: what is added
 * @previous: what is added before @init
 */
struct l4lb_sync_seq {
	u32	init, delta, previous;
};

/**
 * struct l4lb_sync_record - one connection or template
 * @af: AF_INET or AF_INET6
 * @proto: IPPROTO_*; 0: template of a service by firewall mark
 * @state: number on the wire, see l4lb_sync_state_of()
 * @flags: L4LB_SYNC_F_* and the method, as on the wire: nobody has checked the
 *	method (0-7) nor unknown bits
 * @cport: client's port
 * @vport: the VIP's port
 * @dport: the real server's port
 * @fwmark: of the service; version 0: always 0
 * @timeout: in seconds; 0: not given, as always in version 0
 * @left: seconds of @timeout that are left; 0: all, as always in version 0
 * @gone: the director that tells it has ended the connection before its time; not in
 *	version 0
 * @caddr: client
 * @vaddr: VIP; template of a firewall mark: the mark in its first four bytes,
 *	big-endian
 * @daddr: real server
 * @in: sequence numbers from the client, 0: not given
 * @out: sequence numbers to the client, 0: not given
 * @has_pe: it has data of a persistence engine; only the reader sets it
 * @call_len: bytes of @call
 * @call: the data, if the engine is "sip": the Call-ID of a template, in the message
 *	or in the template; valid as long as that
 */
struct l4lb_sync_record {
	u8			af;
	u8			proto;
	u16			state;
	u32			flags;
	__be16			cport, vport, dport;
	u32			fwmark;
	u32			timeout;
	u32			left;
	bool			gone;
	union nf_inet_addr	caddr, vaddr, daddr;
	struct l4lb_sync_seq	in, out;
	bool			has_pe;
	u8			call_len;
	const u8		*call;
};

#endif /* _L4LB_SYNC_WIRE_H */
