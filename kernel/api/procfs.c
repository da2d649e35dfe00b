// SPDX-License-Identifier: GPL-2.0
/*
 * Files in /proc/net: ip_vs, ip_vs_conn, ip_vs_conn_sync, ip_vs_stats and
 * ip_vs_stats_percpu with exactly the columns that programs parse, and l4lb with
 * the drop reasons.
 *
 * Anyone may read them, so reading takes no lock that configuration or
 * packets wait for: RCU and per-CPU counters only.
 *
 * The files hold no reference on the namespace.  Its exit removes them first,
 * which waits for readers and closes open files.
 */
#include "api/procfs.h"

#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "conn/call.h"
#include "conn/state.h"
#include "conn/table.h"
#include "conn/walk.h"
#include "service/range.h"
#include "sync/counter.h"

static struct l4lb_net *seq_net(const struct seq_file *m)
{
	return pde_data(file_inode(m->file));
}

/* ip_vs: services and their real servers */

static void *services_start(struct seq_file *m, loff_t *pos)
	__acquires(RCU)
{
	rcu_read_lock();
	return seq_list_start_head_rcu(&seq_net(m)->services, *pos);
}

static void *services_next(struct seq_file *m, void *v, loff_t *pos)
{
	return seq_list_next_rcu(v, &seq_net(m)->services, pos);
}

static void services_stop(struct seq_file *m, void *v)
	__releases(RCU)
{
	rcu_read_unlock();
}

static void show_protocol(struct seq_file *m, u16 protocol)
{
	switch (protocol) {
	case IPPROTO_IP:
		seq_puts(m, "IP");
		break;
	case IPPROTO_TCP:
		seq_puts(m, "TCP");
		break;
	case IPPROTO_UDP:
		seq_puts(m, "UDP");
		break;
	case IPPROTO_SCTP:
		seq_puts(m, "SCTP");
		break;
	case IPPROTO_ICMP:
		seq_puts(m, "ICMP");
		break;
	case IPPROTO_ICMPV6:
		seq_puts(m, "ICMPv6");
		break;
	default:
		seq_printf(m, "IP_%u", protocol);
	}
}

/* Address and port, in lines of services and of real servers. */
static void show_endpoint(struct seq_file *m, u16 af,
			  const union nf_inet_addr *addr, __be16 port)
{
	if (af == AF_INET6)
		seq_printf(m, "[%pI6]:%04X", &addr->in6, ntohs(port));
	else
		seq_printf(m, "%08X:%04X", ntohl(addr->ip), ntohs(port));
}

/* The odd spaces belong to the format. */
static void show_service(struct seq_file *m, const struct l4lb_service *svc)
{
	const char *sched = l4lb_service_sched_name(svc);
	const struct l4lb_svc_key *key = &svc->key;
	u32 flags = READ_ONCE(svc->flags);
	const char *one_packet = "";

	if (flags & IP_VS_SVC_F_ONEPACKET)
		one_packet = "ops ";
	if (key->fwmark) {
		seq_printf(m, "FWM  %08X %s %s", key->fwmark, sched,
			   one_packet);
	} else {
		show_protocol(m, key->protocol);
		seq_puts(m, "  ");
		show_endpoint(m, key->af, &key->addr, key->port);
		if (key->af == AF_INET6)
			seq_printf(m, " %s ", sched);
		else
			seq_printf(m, " %s %s ", sched, one_packet);
	}
	/* As ip_vs: in jiffies, and ntohl() even of an IPv6 prefix length. */
	if (flags & IP_VS_SVC_F_PERSISTENT)
		seq_printf(m, "persistent %u %08X",
			   READ_ONCE(svc->timeout) * HZ,
			   ntohl((__force __be32)READ_ONCE(svc->netmask)));
	seq_putc(m, '\n');
}

static const char *method_name(u8 method)
{
	switch (method) {
	case IP_VS_CONN_F_LOCALNODE:
		return "Local";
	case IP_VS_CONN_F_TUNNEL:
		return "Tunnel";
	case IP_VS_CONN_F_DROUTE:
		return "Route";
	default:
		return "Masq";
	}
}

static void show_server(struct seq_file *m, const struct l4lb_server *server)
{
	const struct l4lb_sched_server *dest = &server->sched;
	int active = atomic_read(&dest->active);
	int total = atomic_read(&dest->total);

	seq_puts(m, "  -> ");
	show_endpoint(m, dest->af, &dest->addr, dest->port);
	seq_printf(m, "      %-7s %-6d %-10d %-10d\n",
		   method_name(READ_ONCE(server->method)),
		   READ_ONCE(dest->weight), active, max(total - active, 0));
}

static int services_show(struct seq_file *m, void *v)
{
	const struct l4lb_service *svc;
	const struct l4lb_pool *pool;
	unsigned int i;

	if (v == &seq_net(m)->services) {
		seq_printf(m, "IP Virtual Server version %u.%u.%u (size=%u)\n",
			   IP_VS_VERSION_CODE >> 16,
			   IP_VS_VERSION_CODE >> 8 & 0xff,
			   IP_VS_VERSION_CODE & 0xff,
			   l4lb_conn_table_size(seq_net(m)));
		seq_puts(m, "Prot LocalAddress:Port Scheduler Flags\n");
		seq_puts(m, "  -> RemoteAddress:Port Forward Weight ActiveConn InActConn\n");
		return 0;
	}

	svc = list_entry(v, struct l4lb_service, list);
	if (l4lb_key_is_range(&svc->key))
		return SEQ_SKIP;
	show_service(m, svc);
	pool = rcu_dereference(svc->pool);
	for (i = pool->n; i; i--)
		show_server(m, l4lb_server_of(pool->server[i - 1]));
	return 0;
}

static const struct seq_operations services_ops = {
	.start	= services_start,
	.next	= services_next,
	.stop	= services_stop,
	.show	= services_show,
};

/* ip_vs_conn, ip_vs_conn_sync: connections and persistence templates */

enum {
	CONN_ROW = 256 + L4LB_CALL_ID_MAX,	/* an IPv6 row has 175, and " sip " */
};

#define CONNS_ENDS "Pro FromIP   FPrt ToIP     TPrt DestIP   DPrt State       "
#define CONNS_TITLE CONNS_ENDS "Expires PEName PEData\n"
#define CONNS_SYNC_TITLE CONNS_ENDS "Origin Expires\n"

/**
 * struct conns_reader - an open ip_vs_conn or ip_vs_conn_sync
 * @walk: place in the connection table
 * @origin: it is ip_vs_conn_sync, which tells where they come from
 * @pos: position of @row
 * @row: the line at @pos, complete
 *
 * A connection cannot be kept from one read() to the next, but seq_file asks
 * again for the line that did not fit.  So the next line is kept as text.
 */
struct conns_reader {
	struct l4lb_conn_walk	*walk;
	bool			origin;
	loff_t			pos;
	char			row[CONN_ROW];
};

static const char *conn_protocol(const struct l4lb_conn *conn)
{
	if (l4lb_conn_fwmark(conn) && l4lb_conn_test(conn, L4LB_CONN_TEMPLATE))
		return "IP";
	switch (conn->proto) {
	case IPPROTO_TCP:
		return "TCP";
	case IPPROTO_UDP:
		return "UDP";
	case IPPROTO_SCTP:
		return "SCTP";
	default:
		return "IP";
	}
}

/* "<address> <port> " */
static size_t put_endpoint(char *row, size_t size, u16 af,
			   const union nf_inet_addr *addr, __be16 port)
{
	if (af == AF_INET6)
		return scnprintf(row, size, "%pI6 %04X ", &addr->in6,
				 ntohs(port));
	return scnprintf(row, size, "%08X %04X ", ntohl(addr->ip),
			 ntohs(port));
}

static void put_conn(char *row, const struct l4lb_conn *conn, bool origin)
{
	union nf_inet_addr client = l4lb_conn_client(conn);
	union nf_inet_addr server = l4lb_conn_server(conn);
	union nf_inet_addr vip = l4lb_conn_vip(conn);
	const struct l4lb_call *call = l4lb_conn_call(conn);
	u32 mark = l4lb_conn_fwmark(conn);
	const size_t size = CONN_ROW;
	size_t n;

	/* A template of a mark has no single VIP: it shows the mark. */
	if (mark && l4lb_conn_test(conn, L4LB_CONN_TEMPLATE))
		vip = (union nf_inet_addr){ .ip6 = { htonl(mark) } };

	n = scnprintf(row, size, "%-3s ", conn_protocol(conn));
	n += put_endpoint(row + n, size - n, conn->af, &client, conn->cport);
	n += put_endpoint(row + n, size - n, conn->af, &vip, conn->vport);
	n += put_endpoint(row + n, size - n, conn->server->sched.af, &server,
			  conn->dport);
	n += scnprintf(row + n, size - n, "%-11s ", l4lb_state_name(conn));
	if (origin)
		n += scnprintf(row + n, size - n, "%-6s ",
			       l4lb_conn_test(conn, L4LB_CONN_SYNCED) ?
			       "SYNC" : "LOCAL");
	n += scnprintf(row + n, size - n, "%7u", l4lb_conn_left(conn) / HZ);
	if (call && !origin)
		n += scnprintf(row + n, size - n, " sip %.*s", call->len, call->id);
	scnprintf(row + n, size - n, "\n");
}

/* The next row, or NULL at the end of the table. */
static char *conns_advance(struct conns_reader *reader)
{
	const struct l4lb_conn *conn = l4lb_conn_walk_next(reader->walk);

	if (!conn) {
		reader->row[0] = '\0';
		return NULL;
	}
	put_conn(reader->row, conn, reader->origin);
	return reader->row;
}

/* Back to the beginning: the first row is the title. */
static int conns_rewind(struct conns_reader *reader, struct l4lb_net *ln)
{
	if (reader->walk)
		l4lb_conn_walk_close(reader->walk);
	reader->walk = l4lb_conn_walk_open(ln);
	if (!reader->walk)
		return -ENOMEM;
	strscpy(reader->row, reader->origin ? CONNS_SYNC_TITLE : CONNS_TITLE,
		sizeof(reader->row));
	reader->pos = 0;
	return 0;
}

static void *conns_start(struct seq_file *m, loff_t *pos)
{
	struct conns_reader *reader = m->private;
	int err;

	if (*pos < reader->pos || !*pos || !reader->walk) {
		err = conns_rewind(reader, seq_net(m));
		if (err)
			return ERR_PTR(err);
	}
	l4lb_conn_walk_start(reader->walk);
	for (; reader->pos < *pos && reader->row[0]; reader->pos++)
		conns_advance(reader);
	return reader->row[0] ? reader->row : NULL;
}

static void *conns_next(struct seq_file *m, void *v, loff_t *pos)
{
	struct conns_reader *reader = m->private;

	reader->pos = ++*pos;
	return conns_advance(reader);
}

/* Also called when conns_start() has failed and there is no walk. */
static void conns_stop(struct seq_file *m, void *v)
{
	struct conns_reader *reader = m->private;

	if (reader->walk)
		l4lb_conn_walk_stop(reader->walk);
}

static int conns_show(struct seq_file *m, void *v)
{
	seq_puts(m, v);
	return 0;
}

static const struct seq_operations conns_ops = {
	.start	= conns_start,
	.next	= conns_next,
	.stop	= conns_stop,
	.show	= conns_show,
};

static int conns_open(struct inode *inode, struct file *file)
{
	return seq_open_private(file, &conns_ops, sizeof(struct conns_reader));
}

static int conns_sync_open(struct inode *inode, struct file *file)
{
	struct conns_reader *reader;

	reader = __seq_open_private(file, &conns_ops, sizeof(*reader));
	if (!reader)
		return -ENOMEM;
	reader->origin = true;
	return 0;
}

static int conns_release(struct inode *inode, struct file *file)
{
	struct seq_file *m = file->private_data;
	struct conns_reader *reader = m->private;

	if (reader->walk)
		l4lb_conn_walk_close(reader->walk);
	return seq_release_private(inode, file);
}

static const struct proc_ops conns_proc_ops = {
	.proc_open	= conns_open,
	.proc_read_iter	= seq_read_iter,
	.proc_lseek	= seq_lseek,
	.proc_release	= conns_release,
};

static const struct proc_ops conns_sync_proc_ops = {
	.proc_open	= conns_sync_open,
	.proc_read_iter	= seq_read_iter,
	.proc_lseek	= seq_lseek,
	.proc_release	= conns_release,
};

/* ip_vs_stats, ip_vs_stats_percpu: totals of the namespace */

static void show_counters(struct seq_file *m, const struct l4lb_counters *c)
{
	seq_printf(m, "%8llX %8llX %8llX %16llX %16llX\n", c->conns,
		   c->inpkts, c->outpkts, c->inbytes, c->outbytes);
}

static int stats_show(struct seq_file *m, void *v)
{
	struct l4lb_net *ln = m->private;
	struct l4lb_stats_view view;

	l4lb_stats_read(&ln->stats, &view);
	seq_puts(m, "   Total Incoming Outgoing         Incoming         Outgoing\n");
	seq_puts(m, "   Conns  Packets  Packets            Bytes            Bytes\n");
	show_counters(m, &view.count);
	seq_puts(m, "\n Conns/s   Pkts/s   Pkts/s          Bytes/s          Bytes/s\n");
	show_counters(m, &view.rate);
	return 0;
}

static int stats_percpu_show(struct seq_file *m, void *v)
{
	struct l4lb_net *ln = m->private;
	struct l4lb_stats_view view;
	struct l4lb_counters count;
	int cpu;

	seq_puts(m, "       Total Incoming Outgoing         Incoming         Outgoing\n");
	seq_puts(m, "CPU    Conns  Packets  Packets            Bytes            Bytes\n");
	for_each_possible_cpu(cpu) {
		l4lb_stats_read_cpu(&ln->stats, cpu, &count);
		seq_printf(m, "%3X ", cpu);
		show_counters(m, &count);
	}
	l4lb_stats_read(&ln->stats, &view);
	seq_puts(m, "  ~ ");
	show_counters(m, &view.count);
	seq_puts(m, "\n     Conns/s   Pkts/s   Pkts/s          Bytes/s          Bytes/s\n");
	seq_puts(m, "    ");
	show_counters(m, &view.rate);
	return 0;
}

/* Once a daemon has been started here. */
static void show_sync(struct seq_file *m, const struct l4lb_net *ln)
{
	unsigned int i;

	/* Pairs with create() in daemon.c. */
	if (!smp_load_acquire(&ln->sync))
		return;
	for (i = 0; i < L4LB_SYNC_COUNTERS; i++)
		seq_printf(m, "%s %llu\n", l4lb_sync_counter_name(i),
			   l4lb_sync_counter_read(ln, i));
}

/* l4lb: drop reasons, fast path and synchronisation counters, one "name value"
 * per line
 */
static int counters_show(struct seq_file *m, void *v)
{
	struct l4lb_net *ln = m->private;
	enum l4lb_fast_count count;
	enum l4lb_drop reason;

	for (reason = 0; reason < L4LB_DROP_MAX; reason++)
		seq_printf(m, "%s %llu\n", l4lb_drop_name(reason),
			   l4lb_drop_read(ln, reason));
	for (count = 0; count < L4LB_FAST_MAX; count++)
		seq_printf(m, "%s %llu\n", l4lb_fast_name(count),
			   l4lb_fast_read(ln, count));
	show_sync(m, ln);
	return 0;
}

int l4lb_procfs_net_init(struct l4lb_net *ln)
{
	struct proc_dir_entry *dir = ln->net->proc_net;

	if (!proc_create_seq_data("ip_vs", 0444, dir, &services_ops, ln))
		return -ENOMEM;
	if (!proc_create_data("ip_vs_conn", 0444, dir, &conns_proc_ops, ln))
		goto remove_services;
	if (!proc_create_data("ip_vs_conn_sync", 0444, dir,
			      &conns_sync_proc_ops, ln))
		goto remove_conns;
	if (!proc_create_single_data("ip_vs_stats", 0444, dir, stats_show, ln))
		goto remove_conns_sync;
	if (!proc_create_single_data("ip_vs_stats_percpu", 0444, dir,
				     stats_percpu_show, ln))
		goto remove_stats;
	if (!proc_create_single_data("l4lb", 0444, dir, counters_show, ln))
		goto remove_percpu;
	return 0;

remove_percpu:
	remove_proc_entry("ip_vs_stats_percpu", dir);
remove_stats:
	remove_proc_entry("ip_vs_stats", dir);
remove_conns_sync:
	remove_proc_entry("ip_vs_conn_sync", dir);
remove_conns:
	remove_proc_entry("ip_vs_conn", dir);
remove_services:
	remove_proc_entry("ip_vs", dir);
	return -ENOMEM;
}

void l4lb_procfs_net_exit(struct l4lb_net *ln)
{
	struct proc_dir_entry *dir = ln->net->proc_net;

	remove_proc_entry("l4lb", dir);
	remove_proc_entry("ip_vs_stats_percpu", dir);
	remove_proc_entry("ip_vs_stats", dir);
	remove_proc_entry("ip_vs_conn_sync", dir);
	remove_proc_entry("ip_vs_conn", dir);
	remove_proc_entry("ip_vs", dir);
}
