// SPDX-License-Identifier: GPL-2.0
/* The IPVS netlink ABI of <linux/ip_vs.h>; kern_l4lb.c has what that lacks. As
 * kernels expect from older programs, addresses are always sent as 16 bytes,
 * and real servers with their address family and tunnel type.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <linux/ip_vs.h>
#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

#include "describe.h"
#include "drain_note.h"
#include "kern.h"
#include "kern_batch.h"
#include "kern_l4lb.h"
#include "kern_msg.h"
#include "model.h"
#include "wire.h"
#include "opt.h"
#include "out.h"

bool kern_announces(void)
{
	return opt.dry_run || opt.verbose;
}

bool kern_announce(const char *verb, const char *what)
{
	if (opt.dry_run)
		plan_step(verb, what);
	else if (opt.verbose)
		fprintf(stderr, "%s %s\n", verb, what);
	return opt.dry_run;
}

/* Parses the nested attribute @type of a reply into @tb. */
static bool reply_nest(struct nlmsghdr *nlh, int type, struct nlattr **tb,
		       int max)
{
	struct nlattr *top[IPVS_CMD_ATTR_MAX + 1];

	return genlmsg_parse(nlh, 0, top, IPVS_CMD_ATTR_MAX, NULL) >= 0 &&
	       top[type] && nla_parse_nested(tb, max, top[type], NULL) >= 0;
}

static void take_service(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[SVC_ATTR_MAX + 1];

	if (reply_nest(nlh, IPVS_CMD_ATTR_SERVICE, tb, SVC_ATTR_MAX))
		kern_get_service(tb, service_append(arg));
}

static void take_server(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[IPVS_DEST_ATTR_MAX + 1];
	struct service *svc = arg;

	if (reply_nest(nlh, IPVS_CMD_ATTR_DEST, tb, IPVS_DEST_ATTR_MAX))
		kern_get_server(tb, svc, server_append(svc));
}

static struct nl_msg *ident_request(int cmd, int flags, const struct svc_id *id)
{
	struct nl_msg *msg = wire_request(cmd, flags);
	struct nlattr *nest;

	if (!msg)
		return NULL;
	nest = nla_nest_start(msg, IPVS_CMD_ATTR_SERVICE);
	kern_put_ident(msg, id);
	nla_nest_end(msg, nest);
	return msg;
}

static int kern_servers(struct service *svc)
{
	int err = -EINTR, i;

	for (i = 0; i < DUMP_TRIES && err == -EINTR; i++) {
		struct nl_msg *msg = ident_request(IPVS_CMD_GET_DEST,
						   NLM_F_DUMP, &svc->id);

		if (!msg)
			return -ENOMEM;
		service_free(svc);
		err = wire_call(msg, take_server, svc);
	}
	return err;
}

/* One dump of the family L4LB has all services and servers. */
static int whole_services(struct service_list *list, bool live)
{
	int err = -EINTR, i;

	for (i = 0; i < DUMP_TRIES && err == -EINTR; i++) {
		service_list_free(list);
		err = batch_list(list, live);
	}
	service_list_sort(list);
	return err;
}

int kern_services(struct service_list *list, bool servers)
{
	int err = -EINTR, i;
	size_t n;

	if (servers && wire_has_own())
		return whole_services(list, true);
	for (i = 0; i < DUMP_TRIES && err == -EINTR; i++) {
		struct nl_msg *msg = wire_request(IPVS_CMD_GET_SERVICE,
						NLM_F_DUMP);

		if (!msg)
			return -ENOMEM;
		service_list_free(list);
		err = wire_call(msg, take_service, list);
		if (!err && wire_has_own())
			err = batch_list_ranges(list);
	}
	for (n = 0; servers && !err && n < list->n; n++)
		err = kern_servers(&list->v[n]);
	service_list_sort(list);
	return err;
}

int kern_config(struct service_list *list)
{
	return wire_has_own() ? whole_services(list, false)
			      : kern_services(list, true);
}

static int take_only(struct service_list *list, int err, struct service *svc)
{
	if (!err && list->n != 1)
		err = -ESRCH;
	if (!err) {
		service_list_sort(list);
		*svc = list->v[0];
		list->n = 0;
	}
	service_list_free(list);
	return err;
}

/* Family IPVS has no name for it. */
static int read_range(const struct svc_id *id, struct service *svc)
{
	struct service_list list = { 0 };
	int err = -EINTR, i;

	if (!wire_has_own())
		return -EOPNOTSUPP;
	for (i = 0; i < DUMP_TRIES && err == -EINTR; i++) {
		service_list_free(&list);
		err = batch_read_range(id, &list);
	}
	return take_only(&list, err, svc);
}

int kern_service(const struct svc_id *id, struct service *svc, bool servers)
{
	struct service_list list = { 0 };
	struct nl_msg *msg;
	int err;

	if (svc_is_range(id))
		return read_range(id, svc);
	msg = ident_request(IPVS_CMD_GET_SERVICE, 0, id);
	err = msg ? wire_call(msg, take_service, &list) : -ENOMEM;
	if (!err && list.n != 1)
		err = -ESRCH;
	if (!err && servers)
		err = kern_servers(&list.v[0]);
	if (!err)
		err = kern_l4lb(&list.v[0]);
	return take_only(&list, err, svc);
}

static int service_write(int cmd, const struct service *svc)
{
	const uint32_t flags[2] = { svc->flags & ~IP_VS_SVC_F_HASHED, ~0u };
	struct nl_msg *msg = wire_request(cmd, 0);
	struct nlattr *nest;

	if (!msg)
		return -ENOMEM;
	nest = nla_nest_start(msg, IPVS_CMD_ATTR_SERVICE);
	kern_put_ident(msg, &svc->id);
	nla_put_string(msg, IPVS_SVC_ATTR_SCHED_NAME, svc->scheduler);
	if (svc->pe[0])
		nla_put_string(msg, IPVS_SVC_ATTR_PE_NAME, svc->pe);
	nla_put(msg, IPVS_SVC_ATTR_FLAGS, sizeof(flags), flags);
	nla_put_u32(msg, IPVS_SVC_ATTR_TIMEOUT, svc->timeout);
	nla_put_u32(msg, IPVS_SVC_ATTR_NETMASK, svc->netmask);
	nla_nest_end(msg, nest);
	return wire_call(msg, NULL, NULL);
}

/* All of it, or nothing. @remove: only its name counts. */
static int send_whole(const struct service *svc, enum l4lb_set_mode mode, bool remove)
{
	struct batch *batch;
	const struct service *refused;
	const struct server *srv;
	int err;

	if (!wire_has_own())
		return -EOPNOTSUPP;
	batch = batch_new(mode);
	if (remove)
		batch_remove(batch, svc);
	else
		batch_service(batch, svc);
	err = batch_send(batch, &refused, &srv);
	batch_free(batch);
	return err;
}

/* If its options or policy are refused, the service is deleted again. It has
 * no servers yet, so no packet was forwarded.
 */
int kern_service_add(const struct service *svc)
{
	struct nl_msg *msg;
	int err;

	if (kern_announce("add", describe_service(svc)))
		return 0;
	if (svc_is_range(&svc->id))
		return send_whole(svc, L4LB_SET_ADD, false);
	err = service_write(IPVS_CMD_NEW_SERVICE, svc);
	if (err || (!svc->noptions && policy_is_default(&svc->policy)))
		return err;
	err = kern_l4lb_sync(svc);
	if (!err)
		return 0;
	msg = ident_request(IPVS_CMD_DEL_SERVICE, 0, &svc->id);
	if (msg)
		wire_undo(msg);
	return err;
}

int kern_service_set(const struct service *svc)
{
	if (kern_announce("set", describe_service(svc)))
		return 0;
	if (wire_has_own())
		return send_whole(svc, L4LB_SET_CHANGE, false);
	if (svc->noptions || svc_is_range(&svc->id) || !policy_is_default(&svc->policy))
		return -EOPNOTSUPP;
	return service_write(IPVS_CMD_SET_SERVICE, svc);
}

int kern_l4lb_set(const struct service *svc)
{
	if (kern_announce("set", describe_service(svc)))
		return 0;
	return kern_l4lb_sync(svc);
}

int kern_service_delete(const struct svc_id *id)
{
	const struct service named = { .id = *id };
	struct nl_msg *msg;

	if (kern_announce("delete service", svc_text(id)))
		return 0;
	if (svc_is_range(id))
		return send_whole(&named, L4LB_SET_CHANGE, true);
	msg = ident_request(IPVS_CMD_DEL_SERVICE, 0, id);
	return msg ? wire_call(msg, NULL, NULL) : -ENOMEM;
}

static void put_server(struct nl_msg *msg, int cmd, const struct server *srv)
{
	nla_put(msg, IPVS_DEST_ATTR_ADDR, sizeof(srv->addr), &srv->addr);
	nla_put_u16(msg, IPVS_DEST_ATTR_PORT, htons(srv->port));
	nla_put_u16(msg, IPVS_DEST_ATTR_ADDR_FAMILY, srv->af);
	if (cmd != IPVS_CMD_DEL_DEST) {
		nla_put_u32(msg, IPVS_DEST_ATTR_FWD_METHOD,
			    srv->forward & IP_VS_CONN_F_FWD_MASK);
		nla_put_u32(msg, IPVS_DEST_ATTR_WEIGHT, srv->weight);
		nla_put_u32(msg, IPVS_DEST_ATTR_U_THRESH, srv->max_conns);
		nla_put_u32(msg, IPVS_DEST_ATTR_L_THRESH, srv->min_conns);
		nla_put_u8(msg, IPVS_DEST_ATTR_TUN_TYPE, srv->tun_type);
		nla_put_u16(msg, IPVS_DEST_ATTR_TUN_PORT, htons(srv->tun_port));
		nla_put_u16(msg, IPVS_DEST_ATTR_TUN_FLAGS, srv->tun_flags);
	}
}

static int own_server_write(int cmd, const struct svc_id *id,
			    const struct server *srv)
{
	struct nlattr *list, *nest;
	struct nl_msg *msg;

	if (!wire_has_own())
		return -EOPNOTSUPP;
	msg = wire_own_request(L4LB_CMD_SET_SERVER, 0);
	if (!msg)
		return -ENOMEM;
	nest = nla_nest_start(msg, L4LB_ATTR_SERVICE);
	kern_put_ident(msg, id);
	nla_nest_end(msg, nest);
	if (cmd == IPVS_CMD_DEL_DEST)
		nla_put_flag(msg, L4LB_ATTR_REMOVE);
	else
		nla_put_u32(msg, L4LB_ATTR_MODE, cmd == IPVS_CMD_NEW_DEST ?
			    L4LB_SET_ADD : L4LB_SET_CHANGE);
	list = nla_nest_start(msg, L4LB_ATTR_DESTS);
	nest = nla_nest_start(msg, 1);
	put_server(msg, cmd, srv);
	nla_nest_end(msg, nest);
	nla_nest_end(msg, list);
	return wire_call(msg, NULL, NULL);
}

static int server_write(int cmd, const struct svc_id *id,
			const struct server *srv)
{
	struct nlattr *nest;
	struct nl_msg *msg;

	if (svc_is_range(id))
		return own_server_write(cmd, id, srv);
	msg = ident_request(cmd, 0, id);
	if (!msg)
		return -ENOMEM;
	nest = nla_nest_start(msg, IPVS_CMD_ATTR_DEST);
	put_server(msg, cmd, srv);
	nla_nest_end(msg, nest);
	return wire_call(msg, NULL, NULL);
}

int kern_server_add(const struct svc_id *id, const struct server *srv)
{
	int err;

	if (kern_announce("add", describe_server(id, srv)))
		return 0;
	err = server_write(IPVS_CMD_NEW_DEST, id, srv);
	if (!err)
		drain_forget(id, srv);
	return err;
}

int kern_server_set(const struct svc_id *id, const struct server *srv)
{
	int err;

	if (kern_announce("set", describe_server(id, srv)))
		return 0;
	err = server_write(IPVS_CMD_SET_DEST, id, srv);
	if (!err && srv->weight)
		drain_forget(id, srv);
	return err;
}

int kern_server_delete(const struct svc_id *id, const struct server *srv)
{
	int err;

	if (kern_announce("delete", describe_server(id, srv)))
		return 0;
	err = server_write(IPVS_CMD_DEL_DEST, id, srv);
	if (!err)
		drain_forget(id, srv);
	return err;
}

int kern_flush(void)
{
	struct nl_msg *msg;

	if (kern_announce("delete", "every service"))
		return 0;
	msg = wire_request(IPVS_CMD_FLUSH, 0);
	return msg ? wire_call(msg, NULL, NULL) : -ENOMEM;
}

int kern_zero(const struct svc_id *id)
{
	struct nl_msg *msg;

	if (kern_announce("zero the counters of",
			  id ? svc_text(id) : "everything"))
		return 0;
	if (id && svc_is_range(id))
		return kern_l4lb_zero(id);
	msg = id ? ident_request(IPVS_CMD_ZERO, 0, id)
		 : wire_request(IPVS_CMD_ZERO, 0);
	return msg ? wire_call(msg, NULL, NULL) : -ENOMEM;
}

static void take_timeouts(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[IPVS_CMD_ATTR_MAX + 1];
	struct kern_timeouts *t = arg;

	if (genlmsg_parse(nlh, 0, tb, IPVS_CMD_ATTR_MAX, NULL) < 0)
		return;
	t->tcp = kern_get_u32(tb[IPVS_CMD_ATTR_TIMEOUT_TCP]);
	t->tcp_fin = kern_get_u32(tb[IPVS_CMD_ATTR_TIMEOUT_TCP_FIN]);
	t->udp = kern_get_u32(tb[IPVS_CMD_ATTR_TIMEOUT_UDP]);
}

int kern_timeouts(struct kern_timeouts *t)
{
	struct nl_msg *msg = wire_request(IPVS_CMD_GET_CONFIG, 0);

	memset(t, 0, sizeof(*t));
	return msg ? wire_call(msg, take_timeouts, t) : -ENOMEM;
}

int kern_timeouts_set(const struct kern_timeouts *t)
{
	struct nl_msg *msg;

	if (kern_announce("set", describe_timeouts(t)))
		return 0;
	msg = wire_request(IPVS_CMD_SET_CONFIG, 0);
	if (!msg)
		return -ENOMEM;
	nla_put_u32(msg, IPVS_CMD_ATTR_TIMEOUT_TCP, t->tcp);
	nla_put_u32(msg, IPVS_CMD_ATTR_TIMEOUT_TCP_FIN, t->tcp_fin);
	nla_put_u32(msg, IPVS_CMD_ATTR_TIMEOUT_UDP, t->udp);
	return wire_call(msg, NULL, NULL);
}

static void take_info(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[IPVS_INFO_ATTR_MAX + 1];
	struct kern_info *info = arg;

	/* Unlike in other replies, these are top-level IPVS_INFO_ATTR_*. */
	if (genlmsg_parse(nlh, 0, tb, IPVS_INFO_ATTR_MAX, NULL) < 0)
		return;
	info->version = kern_get_u32(tb[IPVS_INFO_ATTR_VERSION]);
	info->table_size = kern_get_u32(tb[IPVS_INFO_ATTR_CONN_TAB_SIZE]);
}

int kern_info(struct kern_info *info)
{
	struct nl_msg *msg = wire_request(IPVS_CMD_GET_INFO, 0);

	memset(info, 0, sizeof(*info));
	return msg ? wire_call(msg, take_info, info) : -ENOMEM;
}
