// SPDX-License-Identifier: GPL-2.0
/* What family IPVS does for a real server, and for the counters of a service, for services
 * that it has no name for.
 */
#include "api/netlink_server.h"

#include <net/netlink.h>

#include "api/netlink_batch.h"
#include "api/netlink_refuse.h"
#include "config/server_edit.h"
#include "l4lb.h"

/* The only real server in DESTS. */
static int parse_only(struct l4lb_server_config *cfg, const struct l4lb_service *svc,
		      struct genl_info *info)
{
	const struct nlattr *list = info->attrs[L4LB_ATTR_DESTS], *nest;
	bool whole = !info->attrs[L4LB_ATTR_REMOVE];
	unsigned int n = 0;
	int left, err;

	if (!list)
		return l4lb_nl_refuse(info->extack, NULL, "attribute DESTS is missing");
	nla_for_each_nested(nest, list, left) {
		err = n++ ? 0 : l4lb_nl_parse_ext_dest(cfg, svc->key.af, nest, whole,
						       info->extack);
		if (err)
			return err;
	}
	return n == 1 && !left ? 0 : l4lb_nl_refuse(info->extack, NULL,
						    "DESTS must have one real server");
}

static int set(struct l4lb_service *svc, const struct l4lb_server_config *cfg, u32 mode,
	       struct netlink_ext_ack *extack)
{
	struct l4lb_server *server = l4lb_server_find(svc, cfg);

	if (mode == L4LB_SET_ADD || (mode == L4LB_SET_MERGE && !server))
		return l4lb_server_add(svc, cfg, extack);
	return l4lb_server_edit(svc, server, cfg, extack);
}

int l4lb_nl_set_server(struct l4lb_service *svc, struct genl_info *info)
{
	const struct nlattr *attr = info->attrs[L4LB_ATTR_MODE];
	u32 mode = attr ? nla_get_u32(attr) : L4LB_SET_MERGE;
	struct l4lb_server_config cfg;
	int err;

	if (mode == L4LB_SET_REPLACE || (attr && info->attrs[L4LB_ATTR_REMOVE]))
		return l4lb_nl_refuse(info->extack, NULL,
				      "SET_SERVER has MODE MERGE, ADD or CHANGE, or REMOVE");
	err = parse_only(&cfg, svc, info);
	if (err)
		return err;
	if (!info->attrs[L4LB_ATTR_REMOVE])
		return set(svc, &cfg, mode, info->extack);
	err = l4lb_server_del(svc, l4lb_server_find(svc, &cfg), info->extack);
	if (err == -ENOENT)
		NL_SET_ERR_MSG(info->extack, "the service has no such real server");
	return err;
}

int l4lb_nl_zero_service(struct l4lb_service *svc, struct genl_info *info)
{
	l4lb_service_zero(svc);
	return 0;
}
