/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Just enough of the kernel to compile kernel/service/{registry,affinity,order,tournament}.c
 * and the files in schedulers/, unchanged, as a user-space program.  Included on the command
 * line; the kernel headers that they include are empty files.
 */
#ifndef _L4LB_UNIT_SHIM_H
#define _L4LB_UNIT_SHIM_H

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
typedef u16 __be16;
typedef u32 __be32;

union nf_inet_addr {
	u32		all[4];
	__be32		ip;
	__be32		ip6[4];
	struct in6_addr	in6;
};

#define IP_VS_SVC_F_SCHED1	0x0008
#define IP_VS_SVC_F_SCHED2	0x0010
#define IP_VS_SVC_F_SCHED3	0x0020

#undef __counted_by
#define __counted_by(member)
#define __rcu
#undef __always_inline
#define __always_inline		inline __attribute__((always_inline))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define BIT(n)			(1UL << (n))
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define ERR_PTR(err)		((void *)(long)(err))
#define IS_ERR(ptr)		((unsigned long)(ptr) > -4096UL)
#define min_t(type, a, b)	((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define max_t(type, a, b)	((type)(a) > (type)(b) ? (type)(a) : (type)(b))
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define pr_err(...)		fprintf(stderr, __VA_ARGS__)

/* Reads of fields that may change are counted, as the cost of a pick. */
extern __thread unsigned long shim_reads;
#define READ_ONCE(x) \
	(shim_reads++, __atomic_load_n(&(x), __ATOMIC_RELAXED))
#define WRITE_ONCE(x, v)	__atomic_store_n(&(x), (v), __ATOMIC_RELAXED)

/* Lets other threads run where one could be interrupted, now and then. */
extern bool shim_threads;
extern __thread u32 shim_pauses;

static inline void shim_pause(void)
{
	if (shim_threads && !((shim_pauses = shim_pauses * 1664525 + 1013904223) >> 27))
		sched_yield();
}

typedef struct { int counter; } atomic_t;
typedef struct { s64 counter; } atomic64_t;

#define atomic_read(v) \
	(shim_reads++, shim_pause(), __atomic_load_n(&(v)->counter, __ATOMIC_RELAXED))
#define atomic_set(v, i) \
	__atomic_store_n(&(v)->counter, (i), __ATOMIC_RELAXED)
#define atomic64_read		atomic_read
#define atomic64_set		atomic_set
#define atomic64_fetch_inc_relaxed(v) \
	__atomic_fetch_add(&(v)->counter, 1, __ATOMIC_RELAXED)

#define atomic_inc(v)		((void)__atomic_fetch_add(&(v)->counter, 1, __ATOMIC_RELAXED))
#define atomic_dec(v)		((void)__atomic_fetch_sub(&(v)->counter, 1, __ATOMIC_RELAXED))
#define atomic_fetch_or(i, v) \
	(shim_pause(), __atomic_fetch_or(&(v)->counter, (i), __ATOMIC_SEQ_CST))
#define atomic_fetch_andnot(i, v) \
	(shim_pause(), __atomic_fetch_and(&(v)->counter, ~(int)(i), __ATOMIC_SEQ_CST))
#define smp_mb()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_load_acquire(p)	__atomic_load_n((p), __ATOMIC_ACQUIRE)
#define smp_store_release(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define rcu_dereference(p)	__atomic_load_n(&(p), __ATOMIC_CONSUME)
#define rcu_assign_pointer(p, v) __atomic_store_n(&(p), (v), __ATOMIC_RELEASE)
#define RCU_INIT_POINTER(p, v)	__atomic_store_n(&(p), (v), __ATOMIC_RELAXED)
#define rcu_access_pointer(p)	READ_ONCE(p)
#define rcu_dereference_protected(p, c) ((void)(c), READ_ONCE(p))

static inline s64 atomic64_cmpxchg(atomic64_t *v, s64 old, s64 new)
{
	shim_pause();
	__atomic_compare_exchange_n(&v->counter, &old, new, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return old;
}

static inline u64 div_u64_rem(u64 a, u32 b, u32 *rem)
{
	*rem = a % b;
	return a / b;
}

static inline u64 div_u64(u64 a, u32 b)
{
	return a / b;
}

static inline u64 div64_u64(u64 a, u64 b)
{
	return a / b;
}

static inline u64 div64_u64_rem(u64 a, u64 b, u64 *rem)
{
	*rem = a % b;
	return a / b;
}

static inline int fls(u32 x)
{
	return x ? 32 - __builtin_clz(x) : 0;
}

/* Random numbers from a fixed seed, for reproducible tests. */
static inline u64 get_random_u64(void)
{
	static __thread u64 state = 42;
	u64 z = state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* The hashes that the kernel documents: multiplicative, and SipHash-1-3. */
static inline u32 hash_32(u32 value, unsigned int bits)
{
	return value * 0x61c88647 >> (32 - bits);
}

typedef struct { unsigned long key[2]; } hsiphash_key_t;

static inline void sip_round(u64 v[4])
{
#define ROTATE(x, n) ((x) << (n) | (x) >> (64 - (n)))
	v[0] += v[1], v[1] = ROTATE(v[1], 13) ^ v[0], v[0] = ROTATE(v[0], 32);
	v[2] += v[3], v[3] = ROTATE(v[3], 16) ^ v[2];
	v[0] += v[3], v[3] = ROTATE(v[3], 21) ^ v[0];
	v[2] += v[1], v[1] = ROTATE(v[1], 17) ^ v[2], v[2] = ROTATE(v[2], 32);
#undef ROTATE
}

static inline u32 hsiphash_1u32(u32 first, const hsiphash_key_t *key)
{
	u64 last = (u64)4 << 56 | first;
	u64 v[4] = {
		key->key[0] ^ 0x736f6d6570736575ULL,
		key->key[1] ^ 0x646f72616e646f6dULL,
		key->key[0] ^ 0x6c7967656e657261ULL,
		key->key[1] ^ 0x7465646279746573ULL,
	};
	int i;

	v[3] ^= last;
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* SipHash-2-4 of whole words. */
typedef struct { u64 key[2]; } siphash_key_t;

static inline u64 shim_siphash(const u64 *word, unsigned int n, const siphash_key_t *key)
{
	u64 v[4] = {
		key->key[0] ^ 0x736f6d6570736575ULL,
		key->key[1] ^ 0x646f72616e646f6dULL,
		key->key[0] ^ 0x6c7967656e657261ULL,
		key->key[1] ^ 0x7465646279746573ULL,
	};
	unsigned int i, rounds;
	u64 m;

	for (i = 0; i <= n; i++) {
		m = i < n ? word[i] : (u64)(8 * n) << 56;
		v[3] ^= m;
		sip_round(v);
		sip_round(v);
		v[0] ^= m;
	}
	v[2] ^= 0xff;
	for (rounds = 0; rounds < 4; rounds++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static inline u64 siphash_1u64(u64 a, const siphash_key_t *key)
{
	return shim_siphash(&a, 1, key);
}

static inline u64 siphash_3u64(u64 a, u64 b, u64 c, const siphash_key_t *key)
{
	return shim_siphash((u64[]){ a, b, c }, 3, key);
}

#define sort(base, n, size, compare, swap)	qsort(base, n, size, compare)
#define lower_32_bits(x)	((u32)(x))
#define upper_32_bits(x)	((u32)((u64)(x) >> 32))
#define U32_MAX			0xffffffffU
#define BIT_ULL(n)		(1ULL << (n))
#define U64_MAX		(~0ULL)
#define likely(x)		(x)
#define memzero_explicit	explicit_bzero

static inline unsigned long gcd(unsigned long a, unsigned long b)
{
	while (b) {
		unsigned long r = a % b;

		a = b;
		b = r;
	}
	return a;
}

/* Memory: the next allocations can be made to fail. */
#define GFP_KERNEL	0
#define GFP_KERNEL_ACCOUNT	0
#define struct_size(p, member, n) \
	(sizeof(*(p)) + sizeof((p)->member[0]) * (size_t)(n))
extern bool shim_no_memory;

static inline void *shim_alloc(size_t size, int fill)
{
	void *p = shim_no_memory ? NULL : malloc(size);

	return p ? memset(p, fill, size) : NULL;
}

#define kmalloc(size, gfp)	shim_alloc(size, 0xa5)
#define kzalloc(size, gfp)	shim_alloc(size, 0)
#define kvzalloc		kzalloc
#define kcalloc(n, size, gfp)	kzalloc((size_t)(n) * (size), gfp)
#define kvcalloc		kcalloc
#define kfree			free
#define kvfree			free

#define GFP_ATOMIC	0
#define __GFP_NOWARN	0

/* The test advances the clock: HZ ticks are a second. */
#define HZ		250
extern unsigned long jiffies;
#define time_after(a, b)	((long)((b) - (a)) < 0)
#define time_before(a, b)	time_after(b, a)

/* Grace periods end between two commands of the test; work is done in "wait". */
struct rcu_head {
	struct rcu_head		*next;
	void			(*func)(struct rcu_head *head);
};
void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head));

struct work_struct {
	void			(*func)(struct work_struct *work);
};
struct delayed_work {
	struct work_struct	work;
	unsigned long		due;
	bool			pending;
	struct delayed_work	*next;
};
#define INIT_DELAYED_WORK(w, fn)	((w)->work.func = (fn), (w)->pending = false)
#define system_power_efficient_wq	NULL
void queue_delayed_work(void *wq, struct delayed_work *work, unsigned long delay);
void mod_delayed_work(void *wq, struct delayed_work *work, unsigned long delay);
#define cancel_delayed_work_sync(w)	((w)->pending = false)
#define cond_resched()			((void)0)
#define static_assert(e)		_Static_assert(e, #e)

typedef pthread_mutex_t spinlock_t;
#define spin_lock_init(l)	pthread_mutex_init(l, NULL)
#define spin_lock		pthread_mutex_lock
#define spin_unlock		pthread_mutex_unlock
#define spin_lock_bh		pthread_mutex_lock
#define spin_unlock_bh		pthread_mutex_unlock
#define lockdep_is_held(l)	((void)(l), true)

struct hlist_head { struct hlist_node *first; };
struct hlist_node { struct hlist_node *next, **pprev; };
#define hlist_empty(h)		(!READ_ONCE((h)->first))

static inline void hlist_add_head_rcu(struct hlist_node *n, struct hlist_head *h)
{
	n->next = h->first;
	n->pprev = &h->first;
	if (h->first)
		h->first->pprev = &n->next;
	__atomic_store_n(&h->first, n, __ATOMIC_RELEASE);
}

static inline void hlist_del_rcu(struct hlist_node *n)
{
	__atomic_store_n(n->pprev, n->next, __ATOMIC_RELEASE);
	if (n->next)
		n->next->pprev = n->pprev;
}

#define hlist_entry_safe(ptr, type, member) ({ \
	struct hlist_node *__n = (ptr); \
	__n ? container_of(__n, type, member) : NULL; })
#define hlist_next(ptr)		__atomic_load_n(&(ptr), __ATOMIC_CONSUME)
#define hlist_for_each_entry(pos, head, member) \
	for (pos = hlist_entry_safe(hlist_next((head)->first), typeof(*pos), member); \
	     pos; \
	     pos = hlist_entry_safe(hlist_next(pos->member.next), typeof(*pos), member))
#define hlist_for_each_entry_rcu(pos, head, member, cond) \
	hlist_for_each_entry(pos, head, member)
#define hlist_for_each_entry_safe(pos, n, head, member) \
	for (pos = hlist_entry_safe((head)->first, typeof(*pos), member); \
	     pos && (n = pos->member.next, true); \
	     pos = hlist_entry_safe(n, typeof(*pos), member))

#define nf_inet_addr_cmp(a, b)	(!memcmp((a)->all, (b)->all, sizeof((a)->all)))
#define get_random_u32()	((u32)get_random_u64())

static inline u32 jhash2(const u32 *key, u32 n, u32 seed)
{
	while (n--)
		seed = (seed ^ *key++) * 0x9e3779b1, seed ^= seed >> 15;
	return seed * 0x85ebca6b;
}

/* These replace kernel/service/server.h. */
#define _L4LB_SERVER_H
typedef struct { int counter; } refcount_t;
struct l4lb_sched_server;
struct l4lb_server { refcount_t refs; bool available; };
struct l4lb_server *l4lb_server_of(const struct l4lb_sched_server *d);
#define l4lb_server_available(r)	READ_ONCE((r)->available)
#define refcount_set(r, n)	((void)((r)->counter = (n)))
#define refcount_inc(r)		((void)((r)->counter++))
#define refcount_dec_and_test(r) (!--(r)->counter)
#define refcount_inc_not_zero(r) \
	(__atomic_fetch_add(&(r)->counter, 1, __ATOMIC_RELAXED), true)
#define l4lb_server_put(r) \
	((void)__atomic_fetch_sub(&(r)->refs.counter, 1, __ATOMIC_RELAXED))

struct list_head { struct list_head *next, *prev; };
#define LIST_HEAD(name)		struct list_head name = { &(name), &(name) }

static inline void list_add_tail(struct list_head *new, struct list_head *head)
{
	new->prev = head->prev;
	new->next = head;
	head->prev->next = new;
	head->prev = new;
}

static inline void list_del(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
}

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))
#define list_for_each_entry(pos, head, member) \
	for (pos = container_of((head)->next, typeof(*(pos)), member); \
	     &(pos)->member != (head); \
	     pos = container_of((pos)->member.next, typeof(*(pos)), member))

/* Not needed here: only one thread configures, and no module is unloaded. */
struct workqueue_struct;
struct rcu_work { int unused; };
extern struct workqueue_struct *l4lb_wq;
#define DEFINE_MUTEX(name)	int name
#define mutex_lock(m)		((void)(m))
#define mutex_unlock(m)		((void)(m))
#define lockdep_assert_held(m)	((void)(m))
#define synchronize_rcu()	((void)0)
#define rcu_barrier()		((void)0)
#define flush_workqueue(wq)	((void)(wq))

struct module { const char *name; };
#define THIS_MODULE		(&(struct module){ "shim" })
#define module_name(m)		((m)->name)
#define try_module_get(m)	((void)(m), true)
#define module_put(m)		((void)(m))
#define EXPORT_SYMBOL_GPL(sym)	struct shim_unused
#define MODULE_LICENSE(s)	struct shim_unused
#define MODULE_DESCRIPTION(s)	struct shim_unused
#define MODULE_VERSION(s)	struct shim_unused
#define module_driver(ops, reg, unreg) \
	static __attribute__((constructor)) void shim_init(void) \
	{ \
		if (reg(&(ops))) \
			abort(); \
	}

/* The name in the last request. */
extern char shim_requested[64];
#define request_module(...) \
	snprintf(shim_requested, sizeof(shim_requested), __VA_ARGS__)

/* This replaces kernel/base/net.h: there are no namespaces. */
#define _L4LB_NET_H
struct l4lb_net {
	struct list_head	sched_nets;
};

#include "bpf_shim.h"

/* Of an option that has .file; NULL without one. */
struct l4lb_sched_ops;
struct l4lb_sched_file *shim_file(const struct l4lb_sched_ops *ops, const u32 *option);

#endif /* _L4LB_UNIT_SHIM_H */
