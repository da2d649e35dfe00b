// SPDX-License-Identifier: GPL-2.0
/*
 * Applying a record: a connection or template of another director.
 *
 *	known here, same real server	its state and time follow
 *	known, other real server	the record's one, unless the client's
 *					packets come here: then it is a conflict
 *	unknown				a copy is created
 *
 * The real server is one that is configured here.  For any other there is a
 * placeholder, to which nothing is forwarded: whoever can send records chooses
 * among real servers, and cannot add any.
 *
 * A record of a resync says what another director has.  It changes nothing here
 * unless its connection was seen later there than here (is_later()); likewise one
 * with another real server that the sweep there has sent after a while.  One of a
 * copy changes copies only; and it creates one only while its sender's connections
 * are still coming, because afterwards the copy may be one of a connection that
 * ended here.
 *
 * A message that was lost and sent again comes after later ones.  Its records take
 * no connection back to an earlier phase of its life, and none to another real
 * server; comparisons find what is missing then.
 *
 * The thread holds no lock but for a record at a time, with BH off.
 */
#include "sync/apply.h"

#include <linux/kthread.h>
#include <linux/netfilter.h>
#include <net/ipv6.h>

#include "conn/copy.h"
#include "conn/helper.h"
#include "conn/lookup.h"
#include "conn/state.h"
#include "forward/persist.h"
#include "service/find.h"
#include "service/range.h"
#include "service/server_table.h"
#include "sync/counter.h"
#include "sync/send_rules.h"
#include "sync/wire_state.h"

#define TIMEOUT_TEMPLATE (180 * HZ)	/* of a record that gives none */
#define PORT_INVALID	0xffff		/* of ip_vs's templates to be ignored */

/**
 * struct news - a record in terms of this director
 * @ln: namespace
 * @record: the record
 * @flow: the client's packets; of a template: its key
 * @call: the same with a Call-ID, if @record has one
 * @name: of the real server, with the service's key as the record tells it
 * @timeout: jiffies; 0: the state's own
 * @idle: jiffies of it that are over
 * @resync: it is not live
 * @copy: it is of a resync, and its sender has only a copy
 * @how: of enum l4lb_sync_how
 * @method: forwarding method, if there is no real server to tell it
 * @state: enum l4lb_state; of a template: 1, it is assured
 * @template: it is a template
 * @active: the real server counts it as active
 */
struct news {
	struct l4lb_net				*ln;
	const struct l4lb_sync_record		*record;
	struct l4lb_flow			flow;
	struct l4lb_call_key			call;
	struct l4lb_server_name			name;
	u32					timeout;
	u32					idle;
	bool					resync;
	bool					copy;
	u8					how;
	u8					method;
	u8					state;
	bool					template;
	bool					active;
};

/* ---- what can be applied ---- */

static bool is_host(u8 af, const union nf_inet_addr *addr)
{
	if (af == AF_INET6)
		return ipv6_addr_type(&addr->in6) & IPV6_ADDR_UNICAST;
	return !ipv4_is_zeronet(addr->ip) && !ipv4_is_multicast(addr->ip) &&
	       !ipv4_is_lbcast(addr->ip);
}

/* Do its sequence numbers differ between client and server?  No helper here
 * would go on with that.
 */
static bool is_adjusted(const struct l4lb_sync_record *r)
{
	return r->flags & L4LB_SYNC_F_SEQ &&
	       (r->in.delta | r->in.previous | r->out.delta | r->out.previous);
}

static bool template_supported(const struct l4lb_sync_record *r)
{
	if (r->cport && !r->proto)
		return false;
	if (r->vport == htons(PORT_INVALID) && r->dport == htons(PORT_INVALID))
		return false;
	/* Of a firewall mark. */
	if (!r->proto)
		return r->vaddr.ip && !r->vport;
	return l4lb_sync_state_of(r->proto, 0) >= 0 &&
	       is_host(r->af, &r->vaddr);
}

/* A template of a service with a range has ports of its own, see forward/persist.c. */
static bool is_of_range(const struct l4lb_sync_record *r)
{
	return r->flags & L4LB_SYNC_F_TEMPLATE && r->cport;
}

static bool conn_supported(const struct l4lb_sync_record *r)
{
	return l4lb_sync_state_of(r->proto, r->state) >= 0 && r->cport &&
	       r->vport && r->dport && is_host(r->af, &r->caddr) &&
	       is_host(r->af, &r->vaddr);
}

/* What l4lb_call_id_find() can find: others would be listed as they are. */
static bool engine_supported(const struct l4lb_sync_record *r)
{
	int i;

	if (!r->has_pe)
		return true;
	if (!r->call_len || !(r->flags & L4LB_SYNC_F_TEMPLATE))
		return false;
	for (i = 0; i < r->call_len; i++)
		if (r->call[i] <= ' ' || r->call[i] > '~')
			return false;
	return true;
}

static bool is_supported(const struct l4lb_sync_record *r)
{
	if (!engine_supported(r) || is_adjusted(r) || r->flags & L4LB_SYNC_F_NO_CPORT ||
	    (r->flags & IP_VS_CONN_F_FWD_MASK) >= IP_VS_CONN_F_BYPASS ||
	    !is_host(r->af, &r->daddr))
		return false;
	return r->flags & L4LB_SYNC_F_TEMPLATE ? template_supported(r) :
						 conn_supported(r);
}

/* ---- in terms of this director ---- */

/* What is local there is another host here. */
static u8 record_method(const struct l4lb_sync_record *r)
{
	u8 method = r->flags & IP_VS_CONN_F_FWD_MASK;

	return method == IP_VS_CONN_F_LOCALNODE ? IP_VS_CONN_F_DROUTE : method;
}

static u32 record_mark(const struct l4lb_sync_record *r)
{
	return r->flags & L4LB_SYNC_F_TEMPLATE && !r->proto ?
	       ntohl(r->vaddr.ip) : r->fwmark;
}

static struct l4lb_flow record_flow(const struct l4lb_sync_record *r)
{
	struct l4lb_flow flow = {
		.saddr	= r->caddr,
		.daddr	= r->vaddr,
		.sport	= r->cport,
		.dport	= r->vport,
		.af	= r->af,
		.proto	= r->proto,
	};

	if (!r->proto)
		flow.daddr = (union nf_inet_addr){ .ip6 = { r->vaddr.ip } };
	return flow;
}

static struct l4lb_svc_key record_service(const struct l4lb_sync_record *r)
{
	u32 mark = record_mark(r);

	if (mark)
		return (struct l4lb_svc_key){ .fwmark = mark, .af = r->af };
	return (struct l4lb_svc_key) {
		.addr		= r->vaddr,
		.af		= r->af,
		.protocol	= r->proto,
		.port		= r->vport,
	};
}

static u32 record_timeout(u32 seconds)
{
	return min_t(u64, (u64)seconds * HZ, L4LB_CONN_TIMEOUT_MAX);
}

static void news_read(struct news *news, struct l4lb_net *ln,
		      const struct l4lb_sync_record *r, unsigned int how)
{
	bool template = r->flags & L4LB_SYNC_F_TEMPLATE;
	bool resync = r->left && how & L4LB_SYNC_ANSWER;
	u32 timeout = record_timeout(r->timeout);

	*news = (struct news) {
		.ln		= ln,
		.record		= r,
		.flow		= record_flow(r),
		.call		= { .id = r->call, .len = r->call_len },
		.name		= {
			.svc	= record_service(r),
			.addr	= r->daddr,
			.port	= r->dport,
			.af	= r->af,
		},
		.timeout	= timeout,
		.idle		= r->left && r->left < r->timeout ?
				  timeout - record_timeout(r->left) : 0,
		.resync		= resync,
		.copy		= resync && r->flags & L4LB_SYNC_F_SYNC,
		.how		= how,
		.method		= record_method(r),
		.state		= template ? r->state :
					     l4lb_sync_state_of(r->proto, r->state),
		.template	= template,
		.active		= !(r->flags & L4LB_SYNC_F_INACTIVE),
	};
}

/* ---- the real server ---- */

/* Could a connection here have this server and the record's port? */
static bool is_candidate(const struct news *news,
			 const struct l4lb_server *server)
{
	return server && !l4lb_server_over(server) &&
	       (server->name.port || news->template ||
		news->record->dport == news->record->vport);
}

/* Of an FTP data connection, whose port is not the service's.  @svc: that of the port. */
static struct l4lb_server *find_data_server(const struct news *news,
					    const struct l4lb_service *svc)
{
	const struct l4lb_sync_record *r = news->record;

	if (!l4lb_helper_used() || news->template || r->proto != IPPROTO_TCP ||
	    news->method != IP_VS_CONN_F_MASQ)
		return NULL;
	return l4lb_helper_server(news->ln, svc, &news->flow, &r->daddr, r->dport);
}

/*
 * The record's real server, which may be removed or a placeholder; or NULL.  A
 * configured one is found by its port or, if it takes any, by 0, which comes
 * first for those of a firewall mark without NAT.
 */
static struct l4lb_server *find_server(struct news *news)
{
	const struct l4lb_sync_record *r = news->record;
	bool any_first = record_mark(r) && news->method != IP_VS_CONN_F_MASQ;
	const __be16 ports[] = { any_first ? 0 : r->dport,
				 any_first ? r->dport : 0 };
	struct l4lb_server *server, *found = NULL;
	const struct l4lb_service *svc;
	int i;

	svc = is_of_range(r) ? l4lb_range_of_template(news->ln, &news->flow) :
	      l4lb_service_lookup(news->ln, record_mark(r), &news->flow);
	if (svc)
		news->name.svc = svc->key;
	for (i = 0; i < ARRAY_SIZE(ports); i++) {
		news->name.port = ports[i];
		server = l4lb_server_by_name_rcu(news->ln, &news->name);
		if (!is_candidate(news, server))
			continue;
		if (l4lb_server_available(server))
			return server;
		found = found ?: server;
	}
	news->name.port = r->dport == r->vport ? ports[0] : r->dport;
	if (found && !READ_ONCE(found->placeholder))
		return found;
	return find_data_server(news, svc) ?: found;
}

/* Is the service of a template with a range here? */
static bool has_range(struct l4lb_net *ln, const struct l4lb_sync_record *r)
{
	const struct l4lb_flow flow = record_flow(r);
	bool found;

	if (!is_of_range(r))
		return true;
	rcu_read_lock();
	found = l4lb_range_of_template(ln, &flow);
	rcu_read_unlock();
	return found;
}

/* The thread may be stopped by one that has the mutex. */
static bool lock_config(struct l4lb_net *ln)
{
	while (!mutex_trylock(&ln->lock)) {
		if (kthread_should_stop())
			return false;
		schedule_timeout_idle(1);
	}
	return true;
}

/* May sleep.  False: there is no placeholder. */
static bool foresee_server(const struct news *news)
{
	struct l4lb_net *ln = news->ln;
	int err;

	if (READ_ONCE(ln->n_placeholders) >= L4LB_PLACEHOLDERS_MAX ||
	    !lock_config(ln))
		return false;
	err = l4lb_server_foresee(ln, &news->name, news->method);
	mutex_unlock(&ln->lock);
	if (!err)
		l4lb_sync_count(ln, L4LB_SYNC_N_PLACEHOLDER);
	return !err || err == -EEXIST;
}

/* ---- connections and templates; RCU, BH off ---- */

static bool has_server(const struct l4lb_conn *conn, const struct news *news)
{
	const union nf_inet_addr addr = l4lb_conn_server(conn);

	return conn->server->sched.af == news->record->af &&
	       nf_inet_addr_cmp(&addr, &news->record->daddr) &&
	       conn->dport == news->record->dport;
}

/* Was it created before its real server was set up here as it is now? */
static bool is_outdated(const struct l4lb_conn *conn)
{
	const struct l4lb_server *server = conn->server;

	return l4lb_conn_is_copy(conn) &&
	       (!l4lb_server_available(server) ||
		conn->method != READ_ONCE(server->method));
}

static bool is_established(u8 state)
{
	return state == L4LB_TCP_ESTABLISHED || state == L4LB_SCTP_ESTABLISHED ||
	       state == L4LB_UDP;
}

/* A flow of datagrams has no end.  It is inactive as long as no reply was seen,
 * and with direct routing none ever is.
 */
static bool is_over(const struct news *news)
{
	return !news->template && !news->active && news->state != L4LB_UDP;
}

/* The record names another real server: does it replace @conn?  A connection
 * that is over elsewhere was replaced there long ago.
 */
static bool gives_way(const struct l4lb_conn *conn, const struct news *news)
{
	if (is_over(news))
		return false;
	if (!l4lb_conn_used_here(conn) ||
	    (!news->template && !is_established(READ_ONCE(conn->state))))
		return true;
	l4lb_sync_count(news->ln, L4LB_SYNC_N_CONFLICT);
	return false;
}

/* Does the record of a resync know more of @conn?  It tells of seconds, and was on
 * its way.  The end of a connection is known to one that has seen it.
 *
 * Two directors that were both master at the same time may have chosen different
 * real servers.  Neither is later, so the one with the lower number is right.
 */
static bool is_later(const struct l4lb_conn *conn, const struct news *news,
		     bool same)
{
	s32 idle = l4lb_conn_idle(conn);

	if (same && !news->template && !news->active &&
	    !l4lb_conn_test(conn, L4LB_CONN_INACTIVE) &&
	    l4lb_conn_is_copy(conn))
		return true;
	if (!same && news->how & L4LB_SYNC_LOWER_SENDER)
		return idle + HZ >= (s32)news->idle;
	return idle > (s32)(news->idle + HZ);
}

/* A message that was late is of the same connection if the phase says that no end
 * was seen since: the end of a connection is told once.
 */
static bool is_next(const struct l4lb_conn *conn, const struct news *news,
		    bool same)
{
	return same && (news->template || l4lb_send_phase_of(news->state) >=
			l4lb_send_phase(conn));
}

/* May the record change @conn? */
static bool is_news(const struct l4lb_conn *conn, const struct news *news,
		    bool same)
{
	if (news->copy && !l4lb_conn_is_copy(conn))
		return false;
	if (news->resync)
		return is_later(conn, news, same);
	if (news->how & L4LB_SYNC_LATE_MESSAGE)
		return is_next(conn, news, same);
	return same || !news->idle || is_later(conn, news, same);
}

/* May the record create a connection that is not here?  What has ended is told by
 * resyncs only to those that have it; a copy, only to those that join.
 */
static bool is_missing(const struct news *news)
{
	if (!news->resync)
		return true;
	if (!news->template &&
	    l4lb_send_phase_of(news->state) == L4LB_SEND_OVER)
		return false;
	return !news->copy || !(news->how & L4LB_SYNC_IN_STEP);
}

/* After a takeover its client's next connection goes to the same real server. */
static void join_template(struct l4lb_conn *conn, const struct news *news)
{
	struct l4lb_service *svc = rcu_dereference(conn->server->svc);
	struct l4lb_conn *template;

	if (!svc || !(READ_ONCE(svc->flags) & IP_VS_SVC_F_PERSISTENT) ||
	    !l4lb_conn_test(conn, L4LB_CONN_SYNCED) ||
	    l4lb_conn_test(conn, L4LB_CONN_CONTROLLED))
		return;
	template = l4lb_persist_find(svc, &news->flow);
	if (template && template->server == conn->server)
		l4lb_conn_link(conn, template);
}

/* What a live record tells begins its time anew. */
static void follow(struct l4lb_conn *conn, const struct news *news)
{
	u32 idle = news->resync ? news->idle : 0;

	if (news->template) {
		if (news->state)
			l4lb_conn_set(conn, L4LB_CONN_ASSURED);
		l4lb_conn_renew(conn, news->timeout ?: TIMEOUT_TEMPLATE, idle);
		return;
	}
	join_template(conn, news);
	l4lb_state_follow(conn, news->state, news->active, news->timeout,
			  idle);
}

static bool takes_calls(const struct l4lb_server *server)
{
	const struct l4lb_service *svc = rcu_dereference(server->svc);

	return svc && l4lb_service_calls(svc);
}

static int create(const struct news *news, struct l4lb_server *server)
{
	const struct l4lb_conn_target target = {
		.server	= server,
		.dport	= news->record->dport,
	};
	enum l4lb_drop reason;
	struct l4lb_conn *conn;

	if (news->call.len && !takes_calls(server)) {
		l4lb_sync_count_error(news->ln, L4LB_SYNC_UNSUPPORTED);
		return -EOPNOTSUPP;
	}
	conn = news->call.len ?
	       l4lb_conn_copy_call(&news->call, &target, &reason) :
	       l4lb_conn_create_copy(&news->flow, &target, news->template, &reason);
	if (!conn) {
		l4lb_sync_count(news->ln, L4LB_SYNC_N_FULL);
		return -ENOSPC;
	}
	/* A packet may have created another one meanwhile. */
	if (has_server(conn, news))
		follow(conn, news);
	return 0;
}

static struct l4lb_conn *find_conn(struct news *news)
{
	struct l4lb_conn *conn;

	if (!news->template)
		return l4lb_conn_find_in(news->ln, &news->flow);
	news->call.flow = news->flow;
	conn = news->call.len ? l4lb_conn_find_call(news->ln, &news->call) :
				l4lb_conn_find_template(news->ln, &news->flow);
	return conn && l4lb_conn_was_over(conn) ? NULL : conn;
}

/* The director that had it has ended it.  It may have come here meanwhile; and one
 * that is told late may have begun again.
 */
static void end_copy(struct l4lb_conn *conn, const struct news *news)
{
	if (has_server(conn, news) && l4lb_conn_is_copy(conn) &&
	    !(news->how & L4LB_SYNC_LATE_MESSAGE))
		follow(conn, news);
}

/* Return: 0; -ESRCH, there is no real server for it; -ENOSPC, no room. */
static int handle(struct news *news)
{
	struct l4lb_conn *old = find_conn(news);
	bool same = old && has_server(old, news);
	struct l4lb_server *server;

	if (news->record->gone) {
		if (old)
			end_copy(old, news);
		return 0;
	}
	if (old ? !is_news(old, news, same) : !is_missing(news))
		return 0;
	if (same && !is_outdated(old)) {
		follow(old, news);
		return 0;
	}
	if (old && !same && !gives_way(old, news))
		return 0;
	server = find_server(news);
	if (same && !(server && l4lb_server_available(server))) {
		follow(old, news);
		return 0;
	}
	if (!server || (news->how & L4LB_SYNC_HANDOVER &&
			!l4lb_server_available(server)))
		return -ESRCH;
	if (old)
		l4lb_conn_kill(old, L4LB_END_REPLACED);
	return create(news, server);
}

static int try(struct news *news)
{
	int err;

	local_bh_disable();
	rcu_read_lock();
	err = handle(news);
	rcu_read_unlock();
	local_bh_enable();
	return err;
}

/**
 * l4lb_sync_apply() - apply a valid record
 * @ln: namespace; it has a connection table
 * @record: the record
 * @how: how it came, of enum l4lb_sync_how
 *
 * Counts why it was not applied.
 *
 * Context: thread that receives messages, or with %L4LB_SYNC_HANDOVER a user's; may
 * sleep.
 * Return: 0, also if the director knows better; -EOPNOTSUPP, it cannot have such a
 * connection; -ESRCH, it has no such real server; -ENOSPC, no room or memory.
 */
int l4lb_sync_apply(struct l4lb_net *ln, const struct l4lb_sync_record *record,
		    unsigned int how)
{
	struct news news;
	int err;

	if (!is_supported(record) || !has_range(ln, record)) {
		l4lb_sync_count_error(ln, L4LB_SYNC_UNSUPPORTED);
		return -EOPNOTSUPP;
	}
	news_read(&news, ln, record, how);
	err = try(&news);
	if (err == -ESRCH && !(how & L4LB_SYNC_HANDOVER) &&
	    foresee_server(&news))
		err = try(&news);
	if (err == -ESRCH)
		l4lb_sync_count(ln, L4LB_SYNC_N_NO_SERVER);
	return err;
}
