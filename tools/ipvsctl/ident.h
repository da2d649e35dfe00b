/* SPDX-License-Identifier: GPL-2.0 */
/* Names of virtual services and real servers: parsed, compared and printed. */
#ifndef IPVSCTL_IDENT_H
#define IPVSCTL_IDENT_H

#include <stdbool.h>
#include <stdint.h>

struct args;

/* Network byte order; IPv4 fills the first 4 bytes, the rest is zero. */
struct ip {
	uint8_t b[16];
};

struct svc_id {
	uint16_t af;
	uint16_t proto;		/* unused when fwmark is not 0 */
	uint32_t fwmark;
	struct ip addr;
	uint16_t port;
	/* Of a service with a range; 0 without. */
	uint16_t last_port;
	uint8_t prefix_len;
};

struct srv_id {
	uint16_t af;
	uint16_t port;
	bool has_port;		/* false: the service's port */
	struct ip addr;
};

/* PROTO ADDR[/LEN]:PORT[-PORT], the same with PROTO: in one word, fwmark N [inet|inet6], fwm:N
 * or fwm6:N
 */
int parse_svc_id(struct args *a, struct svc_id *id);

/* ADDR[:PORT] or [ADDR6][:PORT]; @object is what messages are about. */
int parse_srv_id(struct args *a, const char *object, struct srv_id *id);
int parse_srv_word(const char *word, const char *object, struct srv_id *id);

/* True if the next word begins a service's name. */
bool arg_is_svc_id(const struct args *a);

/* ADDR or ADDR/LEN; without a length the whole address counts. */
int parse_prefix(const char *word, const char *object, uint16_t *af,
		 struct ip *addr, uint32_t *len);
bool ip_in_prefix(uint16_t af, const struct ip *addr, uint16_t net_af,
		  const struct ip *net, uint32_t len);

bool ip_equal(const struct ip *a, const struct ip *b);
bool ip_is_unicast(uint16_t af, const struct ip *addr);
bool svc_id_equal(const struct svc_id *a, const struct svc_id *b);
int svc_id_cmp(const struct svc_id *a, const struct svc_id *b);

/* Has it several addresses or ports? */
bool svc_is_range(const struct svc_id *id);
/* Has it an address in common with the prefix? */
bool svc_in_prefix(const struct svc_id *id, uint16_t af, const struct ip *net,
		   uint32_t len);
bool svc_has_port(const struct svc_id *id, uint16_t port);
/* That of a real server which names none. */
uint16_t svc_server_port(const struct svc_id *id);

bool proto_parse(const char *word, uint16_t *proto);

/* These return one of a few static buffers, enough for one message. */
const char *proto_name(uint16_t proto);
const char *ip_text(uint16_t af, const struct ip *addr);
const char *ip_port_text(uint16_t af, const struct ip *addr, uint16_t port);
const char *vip_text(const struct svc_id *id);	/* 192.0.2.0/28:80-99 */
const char *svc_text(const struct svc_id *id);	/* tcp 192.0.2.10:80 */
const char *svc_word(const struct svc_id *id);	/* tcp:192.0.2.10:80 */
const char *family_name(uint16_t af);		/* IPv4 */

#endif
