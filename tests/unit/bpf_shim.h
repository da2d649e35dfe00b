/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Just enough of the kernel to compile schedulers/bpf.c as a user-space program, see shim.h.
 * A BPF program is a function; sim_bpf.c has some.
 */
#ifndef _L4LB_UNIT_BPF_SHIM_H
#define _L4LB_UNIT_BPF_SHIM_H

typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;

#define __percpu
#define __force
#define unlikely(x)		(x)
#define NSEC_PER_USEC		1000UL
#define pr_warn_ratelimited(...) fprintf(stderr, __VA_ARGS__)
#define atomic_add_return(i, v)	(__atomic_add_fetch(&(v)->counter, i, __ATOMIC_RELAXED))

/* Each thread is a processor; not more than these run at once. */
enum { SHIM_CPUS = 64 };
unsigned int shim_cpu(void);
#define alloc_percpu_gfp(type, gfp)	((type *)kcalloc(SHIM_CPUS, sizeof(type), gfp))
#define free_percpu			free
#define per_cpu_ptr(p, cpu)		(&(p)[cpu])
#define this_cpu_ptr(p)			per_cpu_ptr(p, shim_cpu())
#define DEFINE_PER_CPU(type, name)	type name[SHIM_CPUS]
#define per_cpu(name, cpu)		((name)[cpu])
#define __this_cpu_read(name)		per_cpu(name, shim_cpu())
#define for_each_possible_cpu(cpu)	for (cpu = 0; cpu < SHIM_CPUS; cpu++)
#define cpu_to_node(cpu)		((void)(cpu), 0)

/* The test says how long a program takes. */
extern u64 shim_clock;
#define ktime_get_ns()			READ_ONCE(shim_clock)

struct sk_buff {
	unsigned int	len;
	unsigned char	*data;
};

static inline struct sk_buff *__alloc_skb(unsigned int size, int gfp, int flags, int node)
{
	struct sk_buff *skb = kzalloc(sizeof(*skb), gfp);

	if (!skb)
		return NULL;
	skb->data = kmalloc(size, gfp);
	if (skb->data)
		return skb;
	free(skb);
	return NULL;
}

static inline void consume_skb(struct sk_buff *skb)
{
	if (skb)
		free(skb->data);
	free(skb);
}

static inline void *skb_put_zero(struct sk_buff *skb, unsigned int n)
{
	skb->len += n;
	return memset(skb->data + skb->len - n, 0, n);
}

static inline void __skb_set_length(struct sk_buff *skb, unsigned int len)
{
	skb->len = len;
}

static inline int atomic_dec_if_positive(atomic_t *v)
{
	return atomic_read(v) > 0 ? atomic_add_return(-1, v) : -1;
}

#define skb_reset_mac_header(skb)	((void)(skb))
#define skb_reset_network_header(skb)	((void)(skb))

struct bpf_prog {
	u32			(*run)(const struct sk_buff *skb);
	struct { u32 id; }	*aux;
};
#define bpf_prog_run_clear_cb(program, skb)	((program)->run(skb))
#define BPF_PROG_TYPE_SOCKET_FILTER		1
struct bpf_prog *shim_program(int fd);
#define bpf_prog_get_type_dev(fd, type, drv)	shim_program(fd)
#define bpf_prog_put(program)			((void)(program))

#endif /* _L4LB_UNIT_BPF_SHIM_H */
