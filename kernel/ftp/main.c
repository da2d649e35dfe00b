// SPDX-License-Identifier: GPL-2.0
/*
 * FTP with NAT: a conntrack helper for control connections.
 *
 *	client			director			real server
 *	PASV			->				PASV
 *	227 (VIP,port)		<-	rewritten		227 (server,port)
 *	SYN to VIP:port		->	expected		SYN to server:port
 *
 *	PORT client,port	->				PORT client,port
 *	SYN from VIP:20		<-	expected		SYN from server:20
 *
 * The kernel's own helper, nf_conntrack_ftp, cannot do it.  It rewrites nothing, but for
 * entries that nf_nat translates (IPS_NAT_MASK), and those packets have the real server's
 * address before they come to l4lb; so of passive FTP, it would expect connections to the
 * real server's address, which clients do not know.
 *
 * Expectations cost a client nothing: a control connection has one at a time, which lives
 * for two minutes.  No client reaches more than it could reach without: an address of PORT
 * must be its own, and a port of 227 or 229 is none of those that belong to system services.
 */
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/tcp.h>
#include <net/netfilter/nf_conntrack.h>
#include <net/netfilter/nf_conntrack_expect.h>
#include <net/netfilter/nf_conntrack_helper.h>
#include <net/netfilter/nf_conntrack_seqadj.h>
#include <net/netfilter/nf_nat_helper.h>

#include "config/helper.h"
#include "ftp/command.h"

#define EXPECTED_SECONDS	120	/* as with ip_vs */

/**
 * struct control - what is known of a control connection
 * @asked: enum l4lb_ftp_kind: its client waits for an answer to that
 * @joined: another director had the connection, and nothing that the server has said since
 *	shows where its lines begin
 * @known: @next is set
 * @is_told: @answer is set
 * @next: the server's next line begins with this sequence number
 * @answer: and the answer to the client's last request was at this one
 *
 * In the real server's numbers.  A line that another packet has begun could be text that a
 * client has made its server repeat.  Protected by the lock of the conntrack entry, which
 * nf_nat takes, too, while it mangles a packet.
 */
struct control {
	u8	asked;
	bool	joined;
	bool	known;
	bool	is_told;
	u32	next;
	u32	answer;
};

static_assert(sizeof(struct control) <= sizeof_field(struct nf_conn_help, data));

/* A packet of a control connection. */
struct packet {
	struct sk_buff			*skb;
	struct nf_conn			*ct;
	enum ip_conntrack_info		info;
	unsigned int			protoff;
	unsigned int			text;	/* offset of its text in the skb */
	unsigned int			len;	/* of the text, as much as is read */
};

static const struct nf_conntrack_tuple *request_of(const struct nf_conn *ct)
{
	return &ct->tuplehash[IP_CT_DIR_ORIGINAL].tuple;
}

/* Real server to client. */
static const struct nf_conntrack_tuple *reply_of(const struct nf_conn *ct)
{
	return &ct->tuplehash[IP_CT_DIR_REPLY].tuple;
}

/* ---- data connections, when their first packet comes ---- */

static void passive_begins(struct nf_conn *ct, struct nf_conntrack_expect *exp)
{
	struct nf_conntrack_tuple *reply = &ct->tuplehash[IP_CT_DIR_REPLY].tuple;

	reply->src.u3 = reply_of(exp->master)->src.u3;
	reply->src.u.tcp.port = exp->saved_proto.tcp.port;
}

/* The port beside the control connection's, as FTP wants it, or any other. */
static void active_begins(struct nf_conn *ct, struct nf_conntrack_expect *exp)
{
	struct nf_conntrack_tuple *reply = &ct->tuplehash[IP_CT_DIR_REPLY].tuple;
	const struct nf_conn *master = exp->master;

	reply->dst.u3 = request_of(master)->dst.u3;
	if (ntohs(reply->dst.u.tcp.port) == ntohs(reply_of(master)->src.u.tcp.port) - 1)
		reply->dst.u.tcp.port =
			htons(ntohs(request_of(master)->dst.u.tcp.port) - 1);
}

static struct nf_conntrack_expect *expect_new(struct nf_conn *ct,
					      const union nf_inet_addr *from,
					      const union nf_inet_addr *to, u16 port)
{
	struct nf_conntrack_expect *exp = nf_ct_expect_alloc(ct);
	__be16 dport = htons(port);

	if (exp)
		nf_ct_expect_init(exp, NF_CT_EXPECT_CLASS_DEFAULT, nf_ct_l3num(ct), from,
				  to, IPPROTO_TCP, NULL, &dport);
	return exp;
}

/* ---- the client's lines ---- */

/* The address of EPRT; false: it is of another family, or none. */
static bool eprt_addr(const struct packet *p, unsigned int at,
		      const struct l4lb_ftp_line *line, union nf_inet_addr *addr)
{
	const char *text = p->skb->data + p->text + at + line->at, *end;
	bool v6 = nf_ct_l3num(p->ct) == AF_INET6;

	if (line->family != (v6 ? 2 : 1))
		return false;
	return (v6 ? in6_pton(text, line->len, (u8 *)&addr->in6, -1, &end) :
		     in4_pton(text, line->len, (u8 *)&addr->ip, -1, &end)) &&
	       end == text + line->len;
}

/* Only its own address: its server would connect to any other for it. */
static bool is_own(const struct packet *p, unsigned int at,
		   const struct l4lb_ftp_line *line)
{
	union nf_inet_addr addr = { };

	if (line->kind == L4LB_FTP_EPRT)
		return eprt_addr(p, at, line, &addr) &&
		       nf_inet_addr_cmp(&addr, &request_of(p->ct)->src.u3);
	memcpy(&addr.ip, line->addr, sizeof(addr.ip));
	return nf_ct_l3num(p->ct) == AF_INET &&
	       nf_inet_addr_cmp(&addr, &request_of(p->ct)->src.u3);
}

static int expect_active(const struct packet *p, u16 port)
{
	const struct nf_conntrack_tuple *request = request_of(p->ct);
	struct nf_conntrack_expect *exp;
	int err;

	exp = expect_new(p->ct, &reply_of(p->ct)->src.u3, &request->src.u3, port);
	if (!exp)
		return NF_DROP;
	exp->expectfn = active_begins;
	err = nf_ct_expect_related(exp, 0);
	nf_ct_expect_put(exp);
	/* Another control connection of this client has announced the same: it will do. */
	if (!err || err == -EBUSY)
		return NF_ACCEPT;
	nf_ct_helper_log(p->skb, p->ct, "l4lb_ftp: cannot add expectation");
	return NF_DROP;
}

static void note_request(const struct packet *p, struct control *control, u8 kind)
{
	spin_lock_bh(&p->ct->lock);
	control->asked = kind;
	spin_unlock_bh(&p->ct->lock);
}

static int obey(const struct packet *p, struct control *control, unsigned int at,
		const struct l4lb_ftp_line *line)
{
	switch (line->kind) {
	case L4LB_FTP_PASV:
	case L4LB_FTP_EPSV:
		note_request(p, control, line->kind);
		return NF_ACCEPT;
	case L4LB_FTP_PORT:
	case L4LB_FTP_EPRT:
		note_request(p, control, L4LB_FTP_OTHER);
		return is_own(p, at, line) ? expect_active(p, line->port) : NF_ACCEPT;
	default:
		return NF_ACCEPT;
	}
}

static int commands(const struct packet *p, struct control *control)
{
	const u8 *text = p->skb->data + p->text;
	struct l4lb_ftp_line line;
	unsigned int at = 0, len;
	int verdict = NF_ACCEPT;

	while (verdict == NF_ACCEPT) {
		len = l4lb_ftp_command(text + at, p->len - at, &line);
		if (!len)
			break;
		verdict = obey(p, control, at, &line);
		at += len;
	}
	return verdict;
}

/* ---- the server's lines ---- */

/* Is it an answer that names the real server, or the VIP already? */
static bool is_answer(const struct packet *p, const struct l4lb_ftp_line *line)
{
	union nf_inet_addr addr = { };

	if (line->kind == L4LB_FTP_OTHER || line->port < L4LB_HELPER_PORT_MIN)
		return false;
	if (line->kind == L4LB_FTP_EXTENDED)
		return true;
	memcpy(&addr.ip, line->addr, sizeof(addr.ip));
	return nf_ct_l3num(p->ct) == AF_INET &&
	       (nf_inet_addr_cmp(&addr, &reply_of(p->ct)->src.u3) ||
		nf_inet_addr_cmp(&addr, &request_of(p->ct)->dst.u3));
}

/* Another real server may have the same port: then the VIP has another one.
 * Return: that; 0: there is no room.
 */
static u16 expect_passive(const struct packet *p, u16 port,
			  struct nf_conntrack_expect **exp)
{
	const struct nf_conntrack_tuple *request = request_of(p->ct);

	*exp = expect_new(p->ct, &request->src.u3, &request->dst.u3, port);
	if (!*exp)
		return 0;
	(*exp)->expectfn = passive_begins;
	(*exp)->saved_proto.tcp.port = htons(port);
	(*exp)->dir = IP_CT_DIR_ORIGINAL;
	return nf_nat_exp_find_port(*exp, port);
}

/* Writes where clients can connect to into the line at @at.  False without memory. */
static bool rewrite(const struct packet *p, unsigned int at,
		    const struct l4lb_ftp_line *line, u16 port)
{
	const u8 *vip = (const u8 *)&request_of(p->ct)->dst.u3.ip;
	const u8 *old = p->skb->data + p->text + at + line->at;
	char new[sizeof("255,255,255,255,255,255")];
	unsigned int len;

	if (line->kind == L4LB_FTP_EXTENDED)
		len = scnprintf(new, sizeof(new), "%u", port);
	else
		len = scnprintf(new, sizeof(new), "%u,%u,%u,%u,%u,%u", vip[0], vip[1],
				vip[2], vip[3], port >> 8, port & 255);
	if (len == line->len && !memcmp(new, old, len))
		return true;
	return nf_nat_mangle_tcp_packet(p->skb, p->ct, p->info, p->protoff,
					at + line->at, line->len, new, len);
}

static int answer(const struct packet *p, unsigned int at,
		  const struct l4lb_ftp_line *line)
{
	struct nf_conntrack_expect *exp;
	int verdict = NF_ACCEPT;
	u16 port;

	port = expect_passive(p, line->port, &exp);
	if (!port) {
		nf_ct_helper_log(p->skb, p->ct, "l4lb_ftp: cannot add expectation");
		verdict = NF_DROP;
	} else if (!rewrite(p, at, line, port)) {
		nf_ct_unexpect_related(exp);
		verdict = NF_DROP;
	}
	if (exp)
		nf_ct_expect_put(exp);
	return verdict;
}

static bool is_asked(const struct control *control, const struct l4lb_ftp_line *line,
		     u32 seq)
{
	if (control->is_told && control->answer == seq)
		return true;
	return control->asked ==
	       (line->kind == L4LB_FTP_PASSIVE ? L4LB_FTP_PASV : L4LB_FTP_EPSV);
}

/* Is the line at @seq what the client waits for, or has had already: sent again?  From now on
 * it has it.
 */
static bool take_answer(const struct packet *p, struct control *control,
			const struct l4lb_ftp_line *line, u32 seq)
{
	bool asked;

	spin_lock_bh(&p->ct->lock);
	asked = is_asked(control, line, seq);
	if (asked) {
		control->answer = seq;
		control->is_told = true;
		control->asked = L4LB_FTP_OTHER;
	}
	spin_unlock_bh(&p->ct->lock);
	return asked;
}

/* Does a line begin with the packet's first byte, which is at @seq? */
static bool begins_line(const struct packet *p, struct control *control, u32 seq)
{
	bool begins;

	spin_lock_bh(&p->ct->lock);
	begins = (control->known && seq == control->next) ||
		 (control->is_told && seq == control->answer);
	spin_unlock_bh(&p->ct->lock);
	return begins;
}

/* @seq: of the first byte. */
static int answers(const struct packet *p, struct control *control, u32 seq)
{
	const u8 *text = p->skb->data + p->text;
	struct l4lb_ftp_line line;
	unsigned int at = 0, len;

	if (!begins_line(p, control, seq))
		at = l4lb_ftp_answer(text, p->len, &line) ?: p->len;
	for (; at < p->len; at += len) {
		len = l4lb_ftp_answer(text + at, p->len - at, &line);
		if (!len)
			break;
		if (is_answer(p, &line) && take_answer(p, control, &line, seq + at))
			return answer(p, at, &line);
	}
	return NF_ACCEPT;
}

/* The line after @seq is a new one.  @first: no line was before it. */
static void note_next(const struct packet *p, struct control *control, u32 seq, bool first)
{
	spin_lock_bh(&p->ct->lock);
	if (first || !control->known || after(seq, control->next)) {
		control->next = seq;
		control->known = true;
	}
	control->joined = false;
	spin_unlock_bh(&p->ct->lock);
}

static int from_server(const struct packet *p, struct control *control,
		       const struct tcphdr *th)
{
	u32 seq = ntohl(th->seq), end = seq + p->skb->len - p->text;
	int verdict;
	u8 last;

	if (th->syn)
		note_next(p, control, seq + 1, true);
	if (!p->len)
		return NF_ACCEPT;
	/* The text may get another length. */
	if (skb_copy_bits(p->skb, p->skb->len - 1, &last, 1))
		return NF_DROP;
	verdict = answers(p, control, seq);
	if (last == '\n')
		note_next(p, control, end, false);
	return verdict;
}

/* After a takeover the server's next line begins where its client has got to.  A client that
 * lies about it, and there are few packets in which it can, reaches a port of its own server.
 */
static int from_client(const struct packet *p, struct control *control,
		       const struct tcphdr *th)
{
	if (!p->len)
		return NF_ACCEPT;
	spin_lock_bh(&p->ct->lock);
	if (control->joined) {
		control->next = ntohl(th->ack_seq);
		control->known = true;
	}
	spin_unlock_bh(&p->ct->lock);
	return commands(p, control);
}

/* ---- conntrack calls ---- */

static void joins(struct nf_conn *ct)
{
	struct control *control = nfct_help_data(ct);

	control->joined = true;
}

/* After a takeover the first packets, too: their entry is new, but not the connection. */
static bool is_heard(const struct control *control, enum ip_conntrack_info info)
{
	return info == IP_CT_ESTABLISHED || info == IP_CT_ESTABLISHED_REPLY ||
	       (info == IP_CT_NEW && control->joined);
}

static int help(struct sk_buff *skb, unsigned int protoff, struct nf_conn *ct,
		enum ip_conntrack_info info)
{
	struct control *control = nfct_help_data(ct);
	struct packet p = { skb, ct, info, protoff };
	const struct tcphdr *th;
	struct tcphdr _th;

	/* A rule of the firewall may have chosen it for any connection. */
	if (!nfct_seqadj(ct) || !is_heard(control, info))
		return NF_ACCEPT;
	th = skb_header_pointer(skb, protoff, sizeof(_th), &_th);
	if (!th)
		return NF_ACCEPT;
	_th = *th;
	p.text = protoff + _th.doff * 4;
	if (_th.doff < 5 || p.text > skb->len)
		return NF_ACCEPT;
	p.len = min_t(unsigned int, skb->len - p.text, L4LB_FTP_WITHIN);
	if (!pskb_may_pull(skb, p.text + p.len))
		return NF_DROP;
	if (CTINFO2DIR(info) == IP_CT_DIR_REPLY)
		return from_server(&p, control, &_th);
	return from_client(&p, control, &_th);
}

static const struct nf_conntrack_expect_policy policy = {
	.name		= "l4lb-ftp",
	.max_expected	= 1,
	.timeout	= EXPECTED_SECONDS,
};

static struct nf_conntrack_helper ops;
static struct l4lb_helper helper = { .ops = &ops, .joins = joins };

static unsigned short ports[L4LB_HELPER_PORTS] = { 21 };
static unsigned int n_ports = 1;

module_param_array(ports, ushort, &n_ports, 0444);
MODULE_PARM_DESC(ports, "ports of control connections, as clients reach them (21)");

static int __init ftp_init(void)
{
	unsigned int i;
	int err;

	for (i = 0; i < n_ports; i++) {
		if (!ports[i]) {
			pr_err("ports must be 1 to 65535\n");
			return -EINVAL;
		}
		helper.ports[i] = htons(ports[i]);
	}
	helper.n_ports = n_ports;
	nf_ct_helper_init(&ops, NFPROTO_UNSPEC, IPPROTO_TCP, "l4lb-ftp", 0, 0, 0, &policy, 0,
			  help, NULL, THIS_MODULE);
	err = nf_conntrack_helper_register(&ops);
	if (err)
		return err;
	err = l4lb_helper_register(&helper);
	if (err)
		nf_conntrack_helper_unregister(&ops);
	return err;
}

static void __exit ftp_exit(void)
{
	l4lb_helper_unregister();
	nf_conntrack_helper_unregister(&ops);
}

module_init(ftp_init);
module_exit(ftp_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("FTP through NAT, for l4lb");
