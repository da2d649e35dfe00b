// SPDX-License-Identifier: GPL-2.0
/* Changes of per-service overrides of namespace settings. */
#include "config/policy.h"

#include "config/server_edit.h"
#include "conn/log.h"
#include "entry/fast_device.h"
#include "service/guard.h"
#include "service/las.h"
#include "service/latency.h"
#include "service/limit.h"
#include "service/range.h"
#include "service/server_table.h"
#include "service/snat.h"

static bool wants_fast_path(u32 mode)
{
	return mode == L4LB_FAST_PATH_ON || mode == L4LB_FAST_PATH_NEW;
}

void l4lb_service_set_fast_path(struct l4lb_service *svc, u32 mode)
{
	struct l4lb_net *ln = svc->ln;

	lockdep_assert_held(&ln->lock);
	WRITE_ONCE(ln->n_fast_path,
		   ln->n_fast_path + wants_fast_path(mode) -
		   wants_fast_path(svc->policy.fast_path));
	WRITE_ONCE(ln->n_fast_new,
		   ln->n_fast_new + (mode == L4LB_FAST_PATH_NEW) -
		   (svc->policy.fast_path == L4LB_FAST_PATH_NEW));
	WRITE_ONCE(svc->policy.fast_path, mode);
	l4lb_fast_changed(ln);
}

/* What is on stays on, whatever servers come and go: so a service that was saved can be
 * restored.
 */
int l4lb_policy_check_nat(const struct l4lb_service *svc,
			  const struct l4lb_policy *policy,
			  struct netlink_ext_ack *extack)
{
	bool latency = policy->latency && !svc->policy.latency;
	bool snat = policy->snat.af && !svc->policy.snat.af;
	const struct l4lb_server *server;

	lockdep_assert_held(&svc->ln->lock);
	if (!(latency || snat) || list_empty(&svc->servers))
		return 0;
	list_for_each_entry(server, &svc->servers, node)
		if (server->method == IP_VS_CONN_F_MASQ)
			return 0;
	if (latency)
		NL_SET_ERR_MSG(extack,
			       "policy: LATENCY needs NAT: replies of others do not pass here");
	else
		NL_SET_ERR_MSG(extack,
			       "policy: SNAT needs NAT: others send their replies to the client itself");
	return -EOPNOTSUPP;
}

static bool gets_lazy(const struct l4lb_service *svc,
		      const struct l4lb_policy *policy)
{
	return policy->conn_state == L4LB_SERVICE_STATE_LAZY &&
	       svc->policy.conn_state != L4LB_SERVICE_STATE_LAZY;
}

/* Can conn-state lazy work with @flags and the scheduler @ops, if it was not on before? */
int l4lb_policy_check_lazy(const struct l4lb_service *svc,
			   const struct l4lb_policy *policy, u32 flags,
			   const struct l4lb_sched_ops *ops,
			   struct netlink_ext_ack *extack)
{
	lockdep_assert_held(&svc->ln->lock);
	if (!gets_lazy(svc, policy))
		return 0;
	if (flags & IP_VS_SVC_F_PERSISTENT)
		NL_SET_ERR_MSG(extack,
			       "policy: CONN_STATE lazy does not work with persistence");
	else if (!ops || !ops->maps)
		NL_SET_ERR_MSG(extack,
			       "policy: CONN_STATE lazy needs a scheduler that hashes: mh, sh or dh");
	else
		return 0;
	return -EOPNOTSUPP;
}

/* Can full NAT work with @flags, @sip and without a connection, if it was not on before? */
int l4lb_policy_check_snat(const struct l4lb_service *svc,
			   const struct l4lb_policy *policy, u32 flags, bool sip,
			   struct netlink_ext_ack *extack)
{
	lockdep_assert_held(&svc->ln->lock);
	if (!policy->snat.af || svc->policy.snat.af)
		return 0;
	if (flags & IP_VS_SVC_F_ONEPACKET)
		NL_SET_ERR_MSG(extack,
			       "policy: SNAT does not work with one-packet scheduling: a port needs a connection");
	else if (sip)
		NL_SET_ERR_MSG(extack,
			       "policy: SNAT does not work with persistence engine sip: servers begin calls, too");
	else
		return 0;
	return -EOPNOTSUPP;
}

/* A reply without a connection does not tell which VIP and port the client used. */
int l4lb_policy_check_range(const struct l4lb_service *svc,
			    const struct l4lb_svc_config *cfg,
			    struct netlink_ext_ack *extack)
{
	lockdep_assert_held(&svc->ln->lock);
	if (!l4lb_key_is_range(&svc->key))
		return 0;
	if (cfg->flags & IP_VS_SVC_F_ONEPACKET)
		NL_SET_ERR_MSG(extack,
			       "one-packet scheduling needs one VIP and port: a range has more");
	else if (cfg->sip)
		NL_SET_ERR_MSG(extack,
			       "persistence engine sip needs one VIP and port: a range has more");
	else
		return 0;
	return -EOPNOTSUPP;
}

static int check_key(const struct l4lb_service *svc,
		     const struct l4lb_policy *policy,
		     struct netlink_ext_ack *extack)
{
	if (policy->conn_state == L4LB_SERVICE_STATE_LAZY &&
	    l4lb_key_is_range(&svc->key)) {
		NL_SET_ERR_MSG(extack,
			       "policy: CONN_STATE lazy needs one VIP and port: a range has more");
		return -EOPNOTSUPP;
	}
	if (policy->conn_state != L4LB_SERVICE_STATE_LAZY ||
	    (!svc->key.fwmark && svc->key.protocol != IPPROTO_UDP))
		return 0;
	NL_SET_ERR_MSG(extack,
		       "policy: CONN_STATE lazy is for TCP and SCTP, not for firewall marks");
	return -EOPNOTSUPP;
}

/* Reserves what @policy needs, if @svc can have it at all.  May sleep. */
int l4lb_service_reserve_policy(struct l4lb_service *svc,
				const struct l4lb_policy *policy,
				struct netlink_ext_ack *extack)
{
	int err = check_key(svc, policy, extack);

	lockdep_assert_held(&svc->ln->lock);
	if (err)
		return err;
	err = policy->log ? l4lb_conn_log_open(svc->ln) : 0;
	if (err == -EAGAIN)
		NL_SET_ERR_MSG(extack, "the module is being loaded: try again");
	else if (err)
		NL_SET_ERR_MSG(extack, "no memory for the log of connections");
	if (err)
		return err;
	return l4lb_guard_reserve(svc, policy->guard, extack) ?:
	       l4lb_las_reserve(svc, policy, extack) ?:
	       l4lb_limit_reserve(svc, policy, extack) ?:
	       l4lb_snat_reserve(svc, policy, extack);
}

static u32 uses_of(const struct l4lb_policy *policy)
{
	return (policy->priority ? L4LB_USE_SERVED : 0) |
	       (policy->log ? L4LB_USE_LOGGED : 0) |
	       (policy->latency ? L4LB_USE_LATENCY : 0) |
	       (policy->snat.af ? L4LB_USE_SNAT : 0);
}

static void set_latency(struct l4lb_service *svc, u32 mode)
{
	struct l4lb_server *server;

	if (svc->policy.latency == mode)
		return;
	WRITE_ONCE(svc->policy.latency, mode);
	list_for_each_entry(server, &svc->servers, node)
		if (mode)
			l4lb_latency_prepare(server);
		else
			l4lb_latency_forget(server);
}

void l4lb_service_set_conn_state(struct l4lb_service *svc, u32 mode)
{
	struct l4lb_net *ln = svc->ln;
	struct l4lb_server *server;

	lockdep_assert_held(&ln->lock);
	if (svc->policy.conn_state == mode)
		return;
	WRITE_ONCE(ln->n_lazy,
		   ln->n_lazy + (mode == L4LB_SERVICE_STATE_LAZY ? 1 : -1));
	WRITE_ONCE(svc->policy.conn_state, mode);
	list_for_each_entry(server, &svc->servers, node) {
		l4lb_server_table_update(server);
		cond_resched();
	}
}

/* Cannot fail: what it needs is reserved.  Does not change on_loss
 * of removed real servers.
 */
void l4lb_service_apply_policy(struct l4lb_service *svc,
			       const struct l4lb_policy *policy)
{
	lockdep_assert_held(&svc->ln->lock);
	svc->ln->generation++;
	l4lb_fast_renew(svc->ln);
	l4lb_guard_set(svc, policy->guard);
	WRITE_ONCE(svc->policy.tcp, policy->tcp);
	WRITE_ONCE(svc->policy.tcp_fin, policy->tcp_fin);
	WRITE_ONCE(svc->policy.udp, policy->udp);
	WRITE_ONCE(svc->policy.sctp, policy->sctp);
	WRITE_ONCE(svc->policy.on_idle, policy->on_idle);
	WRITE_ONCE(svc->policy.on_loss, policy->on_loss);
	WRITE_ONCE(svc->policy.on_drain, policy->on_drain);
	WRITE_ONCE(svc->policy.sync, policy->sync);
	WRITE_ONCE(svc->changed, jiffies);
	WRITE_ONCE(svc->policy.log, policy->log);
	set_latency(svc, policy->latency);
	l4lb_service_set_conn_state(svc, policy->conn_state);
	WRITE_ONCE(svc->policy.ramp, policy->ramp);
	l4lb_las_set(svc, policy);
	l4lb_limit_set(svc, policy);
	l4lb_snat_set(svc, policy);
	WRITE_ONCE(svc->uses, uses_of(policy) |
		   (svc->uses & (L4LB_USE_SHADOWED | L4LB_USE_CALL |
				 L4LB_USE_HELPER)));
	if (svc->policy.fast_path != policy->fast_path)
		l4lb_service_set_fast_path(svc, policy->fast_path);
}

/**
 * l4lb_service_set_policy() - set the policy of a service
 * @svc: the service
 * @policy: all values, new and kept, in range
 * @extack: gets a sentence on failure
 *
 * Packets see the new values at once, but not all at the same moment.
 *
 * Context: configuration mutex held, may sleep.
 * Return: 0 or a negative errno with nothing changed.
 */
int l4lb_service_set_policy(struct l4lb_service *svc,
			    const struct l4lb_policy *policy,
			    struct netlink_ext_ack *extack)
{
	int err;

	lockdep_assert_held(&svc->ln->lock);
	err = l4lb_policy_check_nat(svc, policy, extack) ?:
	      l4lb_policy_check_lazy(svc, policy, svc->flags,
				     l4lb_service_sched(svc), extack) ?:
	      l4lb_policy_check_snat(svc, policy, svc->flags,
				     l4lb_service_has_sip(svc), extack) ?:
	      l4lb_service_reserve_policy(svc, policy, extack);
	if (err)
		return err;
	l4lb_service_apply_policy(svc, policy);
	l4lb_server_set_loss(svc);
	l4lb_event_service(L4LB_EVENT_SERVICE_CHANGED, svc);
	return 0;
}

void l4lb_timeouts_set(struct l4lb_net *ln, const struct l4lb_timeouts *timeouts)
{
	const struct l4lb_timeouts *t = timeouts, *old = &ln->timeouts;

	lockdep_assert_held(&ln->lock);
	if (!t->tcp && !t->tcp_fin && !t->udp)
		return;
	WRITE_ONCE(ln->timeouts.tcp, t->tcp ?: old->tcp);
	WRITE_ONCE(ln->timeouts.tcp_fin, t->tcp_fin ?: old->tcp_fin);
	WRITE_ONCE(ln->timeouts.udp, t->udp ?: old->udp);
	l4lb_fast_renew(ln);
}
