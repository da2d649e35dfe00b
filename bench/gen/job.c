// SPDX-License-Identifier: GPL-2.0
/*
 * /proc/l4lb_gen.  Each open file has its own job:
 *
 *	write "dev=gen0 family=4 proto=udp size=64 src=198.18.0.0
 *	       dst=192.0.2.1 dport=80 flows=100 count=100000"
 *	read  "packets 100000 ns 45670000 cycles 161000000 unbuilt 0"
 *	      "sink srv0 packets 100000 bytes 6000000 answered 0 closed 0
 *	       refused 0 opened 0 0 0 ... sample 0200..."
 *
 * The write returns when all packets are sent; a signal ends it early.  "zero"
 * sets the counts of all sinks to 0.  "role gen0 client" (or sink, server,
 * client-closes) sets how a device answers.  A job with a wrong word, or with
 * words that contradict each other, fails and sends nothing; a read then says
 * why.  Devices are looked up in the writer's network namespace.
 */
#include "gen.h"

#include <linux/completion.h>
#include <linux/filter.h>
#include <linux/hrtimer.h>
#include <linux/inet.h>
#include <linux/nsproxy.h>
#include <linux/proc_fs.h>
#include <linux/rtnetlink.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/timex.h>
#include <net/net_namespace.h>

enum {
	MAX_TEXT	= 512,
	ANSWER		= 2048,
	MAX_FLOWS	= 1 << 28,
};

#define GEN_PAUSE	(200 * NSEC_PER_USEC)	/* between interrupts */
#define MAX_WAIT	(10 * NSEC_PER_SEC)	/* until @start */

/**
 * struct gen_file - one opened /proc/l4lb_gen
 * @lock: serialises jobs and reads
 * @answer: the text that reads return
 * @text: the job as it was written
 * @template: of the job's packets
 */
struct gen_file {
	struct mutex		lock;
	char			answer[ANSWER];
	char			text[MAX_TEXT];
	struct gen_template	template;
};

struct gen_counts {
	u64 packets, unbuilt, ns, cycles;
};

static struct proc_dir_entry *entry;

/* -- parsing */

/* A member of struct gen_job that is a number, and its range. */
struct number {
	const char	*name;
	size_t		offset;
	u64		min, max;
};

#define NUMBER(name, min, max)						\
	{ #name, offsetof(struct gen_job, name), min, max }

static const struct number numbers[] = {
	NUMBER(size, GEN_MIN_FRAME + ETH_FCS_LEN, GEN_MAX_FRAME + ETH_FCS_LEN),
	NUMBER(tcp_flags, 0, U8_MAX),
	NUMBER(sport, 0, U16_MAX),
	NUMBER(dport, 0, U16_MAX),
	NUMBER(reply, 0, 1),
	NUMBER(random, 0, 1),
	NUMBER(flows, 1, MAX_FLOWS),
	NUMBER(first, 0, MAX_FLOWS),
	NUMBER(services, 1, 65536),
	NUMBER(count, 1, 1ULL << 40),
	NUMBER(start, 0, U64_MAX),
	NUMBER(seed, 1, U64_MAX),
	NUMBER(clients, 0, 250),
	NUMBER(rate, 0, 10000000),
	NUMBER(turns, 0, 1),
};

static int parse_number(struct gen_job *job, const struct number *what,
			const char *value)
{
	u64 *member = (void *)job + what->offset, n;

	if (kstrtou64(value, 0, &n) || n < what->min || n > what->max)
		return -EINVAL;
	*member = n;
	return 0;
}

static int parse_dev(struct gen_job *job, const char *value)
{
	if (job->dev)
		return -EINVAL;
	job->dev = dev_get_by_name(current->nsproxy->net_ns, value);
	return job->dev ? 0 : -ENODEV;
}

static int parse_family(struct gen_job *job, const char *value)
{
	job->family = strcmp(value, "6") ? AF_INET : AF_INET6;
	return job->family == AF_INET && strcmp(value, "4") ? -EINVAL : 0;
}

static int parse_proto(struct gen_job *job, const char *value)
{
	job->proto = strcmp(value, "tcp") ? IPPROTO_UDP : IPPROTO_TCP;
	return job->proto == IPPROTO_UDP && strcmp(value, "udp") ? -EINVAL : 0;
}

static int parse_address(struct in6_addr *addr, const char *value)
{
	if (in6_pton(value, -1, addr->s6_addr, -1, NULL))
		return 0;
	memset(addr, 0, sizeof(*addr));
	return in4_pton(value, -1, addr->s6_addr + 12, -1, NULL) ? 0 : -EINVAL;
}

static int parse_src(struct gen_job *job, const char *value)
{
	return parse_address(&job->src, value);
}

static int parse_dst(struct gen_job *job, const char *value)
{
	return parse_address(&job->dst, value);
}

static const struct {
	const char *name;
	int (*parse)(struct gen_job *job, const char *value);
} words[] = {
	{ "dev",	parse_dev },
	{ "family",	parse_family },
	{ "proto",	parse_proto },
	{ "src",	parse_src },
	{ "dst",	parse_dst },
};

static int parse_word(struct gen_job *job, char *text)
{
	char *value = strchr(text, '=');
	int i;

	if (!value)
		return -EINVAL;
	*value++ = '\0';
	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		if (!strcmp(numbers[i].name, text))
			return parse_number(job, &numbers[i], value);
	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(words[i].name, text))
			return words[i].parse(job, value);
	return -EINVAL;
}

/* Why the words of @job contradict each other, or NULL. */
static const char *contradiction(const struct gen_job *job)
{
	unsigned int least = 14 + (job->family == AF_INET ? 20 : 40) +
			     (job->proto == IPPROTO_UDP ? 8 : 20) + ETH_FCS_LEN;

	if (job->size < least)
		return "size: too small for the headers";
	if (job->random && !job->count)
		return "random order needs a count";
	if (!job->random && job->count)
		return "a count needs random=1; else each flow is sent once";
	if (job->rate && !job->dev)
		return "a rate needs dev";
	if (job->start > ktime_get_ns() + MAX_WAIT)
		return "start: more than 10 s ahead";
	return NULL;
}

/* -- sending */

static u32 next_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state >> 32;
}

/* Call it with BH off or in an interrupt. */
static void send_batch(const struct gen_job *job, const struct gen_template *t,
		       struct gen_counts *counts, u64 *state, unsigned int n)
{
	bool xdp = job->dev && !job->rate && gen_is_ours(job->dev) &&
		   gen_has_program(job->dev);
	u32 services = job->services, i;
	struct sk_buff *skb;

	for (; n; n--) {
		i = job->random ? ((u64)next_random(state) * job->flows) >> 32 :
				  counts->packets;
		i += job->first;
		counts->packets++;
		if (xdp) {
			counts->unbuilt += !gen_xdp_frame(job->dev, t, i,
							  i % services);
			continue;
		}
		skb = gen_packet(t, job->dev, i, i % services);
		if (unlikely(!skb))
			counts->unbuilt++;
		else if (job->rate)
			netif_rx(skb);
		else if (job->dev)
			netif_receive_skb(skb);
		else
			consume_skb(skb);
		if (job->turns)
			cpu_relax();
	}
}

/**
 * struct gen_card - a job with a rate: timer interrupts imitate a network card
 * @timer: of the next interrupt
 * @done: completed when all packets are sent
 * @began: time at which the first packet is due, ns
 * @total: packets to send
 * @state: of the random order
 * @job: what to send
 * @template: of the packets
 * @counts: packets sent so far
 */
struct gen_card {
	struct hrtimer			timer;
	struct completion		done;
	u64				began, total, state;
	const struct gen_job		*job;
	const struct gen_template	*template;
	struct gen_counts		*counts;
};

/* Sends all packets that are due, however busy the director is: if it cannot
 * keep up, packets are lost and the time spent on them is wasted.
 */
static enum hrtimer_restart card_interrupts(struct hrtimer *timer)
{
	struct gen_card *card = container_of(timer, struct gen_card, timer);
	u64 rate = card->job->rate, now = ktime_get_ns(), due, next;

	due = div64_u64((now - card->began) * rate, NSEC_PER_SEC) + 1;
	due = min(due, card->total);
	if (due > card->counts->packets)
		send_batch(card->job, card->template, card->counts,
			   &card->state, due - card->counts->packets);
	if (card->counts->packets == card->total) {
		card->counts->ns = now - card->began;
		complete(&card->done);
		return HRTIMER_NORESTART;
	}
	next = card->began + div64_u64(due * NSEC_PER_SEC, rate);
	hrtimer_set_expires(timer, ns_to_ktime(max(next, now + GEN_PAUSE)));
	return HRTIMER_RESTART;
}

static void run_card(const struct gen_job *job, const struct gen_template *t,
		     struct gen_counts *counts, u64 total)
{
	struct gen_card card = {
		.total = total, .state = job->seed, .job = job, .template = t,
		.counts = counts,
	};

	/* A whole second: the kernel's ticks then fall alike in each run. */
	card.began = (div_u64(ktime_get_ns(), NSEC_PER_SEC) + 1) * NSEC_PER_SEC;

	init_completion(&card.done);
	hrtimer_init_on_stack(&card.timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	card.timer.function = card_interrupts;
	hrtimer_start(&card.timer, ns_to_ktime(card.began), HRTIMER_MODE_ABS);
	wait_for_completion_interruptible(&card.done);
	hrtimer_cancel(&card.timer);
	destroy_hrtimer_on_stack(&card.timer);
}

/* Runs the mark BEGIN or END of bench/measure/cache.c. */
static void mark(bool end)
{
#ifdef __x86_64__
	if (end)
		asm volatile("movl $0x424c344e, %%eax" : : : "eax", "memory");
	else
		asm volatile("movl $0x424c344d, %%eax" : : : "eax", "memory");
#endif
}

static void run(const struct gen_job *job, const struct gen_template *t,
		struct gen_counts *counts)
{
	u64 total = job->random ? job->count : job->flows;
	struct bpf_net_context context, *before;
	u64 state = job->seed, ns;
	cycles_t cycles;

	while (ktime_get_ns() < job->start)
		cpu_relax();
	ns = ktime_get_ns();
	cycles = get_cycles();
	if (job->rate)
		run_card(job, t, counts, total);
	while (counts->packets < total && !signal_pending(current)) {
		u64 n = min_t(u64, GEN_BATCH, total - counts->packets);

		local_bh_disable();
		before = l4lb_redirect_begin(&context);
		mark(false);
		send_batch(job, t, counts, &state, n);
		xdp_do_flush();
		mark(true);
		l4lb_redirect_end(before);
		local_bh_enable();
		cond_resched();
	}
	counts->cycles = get_cycles() - cycles;
	/* With a rate, card_interrupts() has set a more exact time. */
	counts->ns = counts->ns ?: ktime_get_ns() - ns;
}

/* -- the file */

/* "role DEVICE ROLE" */
static int set_role(char *text, struct net *net)
{
	static const char *const roles[] = {
		[GEN_SINK] = "sink", [GEN_SERVER] = "server",
		[GEN_CLIENT] = "client", [GEN_CLIENT_CLOSES] = "client-closes",
	};
	char *name = strsep(&text, " ");
	struct net_device *dev;
	int role, err = -ENODEV;

	role = text ? match_string(roles, ARRAY_SIZE(roles), strim(text)) :
		      -EINVAL;
	if (role < 0)
		return -EINVAL;
	rtnl_lock();
	dev = __dev_get_by_name(net, name);
	if (dev && gen_is_ours(dev)) {
		struct gen_priv *priv = netdev_priv(dev);

		WRITE_ONCE(priv->role, role);
		err = 0;
	}
	rtnl_unlock();
	return err;
}

static void zero_sinks(struct net *net)
{
	struct net_device *dev;

	rtnl_lock();
	for_each_netdev(net, dev)
		if (gen_is_ours(dev))
			gen_sink_zero(dev);
	rtnl_unlock();
}

static size_t say_talk(struct gen_file *file, struct net_device *dev, size_t n)
{
	struct gen_talk talk;
	unsigned int i;

	gen_talk_read(dev, &talk);
	n += scnprintf(file->answer + n, ANSWER - n,
		       " answered %llu closed %llu refused %llu opened",
		       talk.answered, talk.closed, talk.refused);
	for (i = 0; i < GEN_SERVERS; i++)
		n += scnprintf(file->answer + n, ANSWER - n, " %llu",
			       talk.opened[i]);
	return n + scnprintf(file->answer + n, ANSWER - n, " sample ");
}

static void say_sinks(struct gen_file *file, struct net *net)
{
	struct net_device *dev;
	struct gen_sink sink;
	size_t n = strlen(file->answer);

	rtnl_lock();
	for_each_netdev(net, dev) {
		if (!gen_is_ours(dev))
			continue;
		gen_sink_read(dev, &sink);
		n += scnprintf(file->answer + n, ANSWER - n,
			       "sink %s packets %llu bytes %llu",
			       dev->name, sink.packets, sink.bytes);
		n = say_talk(file, dev, n);
		if (n + 2 * sink.sample_len + 2 > ANSWER)
			break;
		bin2hex(file->answer + n, sink.sample, sink.sample_len);
		n += 2 * sink.sample_len;
		file->answer[n++] = '\n';
		file->answer[n] = '\0';
	}
	rtnl_unlock();
}

static int parse_job(struct gen_file *file, struct gen_job *job)
{
	char *rest = strim(file->text), *one;
	const char *wrong;

	while ((one = strsep(&rest, " \t\n"))) {
		int err = *one ? parse_word(job, one) : 0;

		if (err) {
			snprintf(file->answer, ANSWER,
				 "error: %s: not a word or value that there is\n",
				 one);
			return err;
		}
	}
	wrong = contradiction(job);
	if (!wrong)
		return 0;
	snprintf(file->answer, ANSWER, "error: %s\n", wrong);
	return -EINVAL;
}

static int perform(struct gen_file *file)
{
	struct gen_job job = {
		.family = AF_INET, .proto = IPPROTO_UDP, .size = 64,
		.flows = 1, .services = 1, .seed = 1,
	};
	struct gen_counts counts = { };
	int err;

	lockdep_assert_held(&file->lock);
	err = parse_job(file, &job);
	if (err)
		goto out;
	gen_template_init(&file->template, &job);
	run(&job, &file->template, &counts);
	snprintf(file->answer, ANSWER,
		 "packets %llu ns %llu cycles %llu unbuilt %llu\n",
		 counts.packets, counts.ns, counts.cycles, counts.unbuilt);
out:
	dev_put(job.dev);
	return err;
}

static ssize_t gen_write(struct file *filp, const char __user *buf, size_t len,
			 loff_t *pos)
{
	struct gen_file *file = filp->private_data;
	int err = 0;

	if (len >= MAX_TEXT)
		return -E2BIG;
	mutex_lock(&file->lock);
	if (copy_from_user(file->text, buf, len)) {
		err = -EFAULT;
		goto out;
	}
	file->text[len] = '\0';
	file->answer[0] = '\0';
	if (sysfs_streq(file->text, "zero"))
		zero_sinks(current->nsproxy->net_ns);
	else if (!strncmp(file->text, "role ", 5))
		err = set_role(file->text + 5, current->nsproxy->net_ns);
	else
		err = perform(file);
out:
	mutex_unlock(&file->lock);
	return err ?: len;
}

/* At offset 0: the last job's counts and the current counts of all sinks. */
static ssize_t gen_read(struct file *filp, char __user *buf, size_t len,
			loff_t *pos)
{
	struct gen_file *file = filp->private_data;
	ssize_t n;

	mutex_lock(&file->lock);
	if (!*pos && strncmp(file->answer, "error", 5)) {
		char *sinks = strstr(file->answer, "sink ");

		if (sinks)
			*sinks = '\0';
		say_sinks(file, current->nsproxy->net_ns);
	}
	n = simple_read_from_buffer(buf, len, pos, file->answer,
				    strlen(file->answer));
	mutex_unlock(&file->lock);
	return n;
}

static int gen_open(struct inode *inode, struct file *filp)
{
	struct gen_file *file = kzalloc(sizeof(*file), GFP_KERNEL);

	if (!file)
		return -ENOMEM;
	mutex_init(&file->lock);
	filp->private_data = file;
	return 0;
}

static int gen_release(struct inode *inode, struct file *filp)
{
	kfree(filp->private_data);
	return 0;
}

static const struct proc_ops gen_proc_ops = {
	.proc_open	= gen_open,
	.proc_read	= gen_read,
	.proc_write	= gen_write,
	.proc_lseek	= default_llseek,
	.proc_release	= gen_release,
};

int gen_job_init(void)
{
	entry = proc_create("l4lb_gen", 0600, NULL, &gen_proc_ops);
	return entry ? 0 : -ENOMEM;
}

void gen_job_exit(void)
{
	proc_remove(entry);
}
