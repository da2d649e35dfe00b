/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Just enough of the kernel to compile the files of the connection table
 * (kernel/conn/{bucket,resize,sweep,walk}.c), unchanged, as a user-space
 * program with threads.  RCU is a reader-writer lock.
 */
#ifndef _L4LB_UNIT_TABLE_SHIM_H
#define _L4LB_UNIT_TABLE_SHIM_H

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
typedef u16 __be16;
typedef u32 __be32;

#define __force
#define __rcu
#define __init
#define __acquires(x)
#define __releases(x)
#undef __always_inline
#define __always_inline		inline __attribute__((always_inline))
#define noinline		__attribute__((noinline))
#define __aligned(n)		__attribute__((aligned(n)))
#define ____cacheline_aligned_in_smp __aligned(64)
#define BIT(n)			(1UL << (n))
#define GENMASK_ULL(h, l)	(~0ULL >> (63 - (h)) & ~0ULL << (l))
#define GENMASK			GENMASK_ULL
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define ERR_PTR(err)		((void *)(long)(err))
#define BUILD_BUG_ON(x)		_Static_assert(!(x), #x)
#define offsetofend(t, m)	(offsetof(t, m) + sizeof(((t *)0)->m))
#define container_of(p, t, m)	((t *)((char *)(p) - offsetof(t, m)))
#define min_t(type, a, b)	((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define max_t(type, a, b)	((type)(a) > (type)(b) ? (type)(a) : (type)(b))
#define clamp_t(type, v, a, b)	min_t(type, max_t(type, v, a), b)
#define likely(x)		(x)
#define unlikely(x)		(x)
#define prefetch(p)		__builtin_prefetch(p)
#define __ffs64(x)		((unsigned int)__builtin_ctzll(x))

/* The checks of a kernel with lockdep are done here, too. */
#define IS_ENABLED(option)	true
#define WARN_ON_ONCE(x)		assert(!(x))

/* Nobody watches. */
#define DECLARE_STATIC_KEY_FALSE(key)	extern const bool key
#define static_branch_unlikely(key)	(*(key))

#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))

/* The same numbers each time. */
static inline u64 get_random_u64(void)
{
	static u64 state = 1;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state ^ state >> 33;
}

static inline unsigned int order_base_2(u64 x)
{
	return x > 1 ? 64 - __builtin_clzll(x - 1) : 0;
}

#define ilog2(n)		(63 - __builtin_clzll(n))

/* ---- memory order, atomics, locks ---- */

void shim_pause(void);

#define READ_ONCE(x)		__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, v)	__atomic_store_n(&(x), (v), __ATOMIC_RELAXED)
#define smp_load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
/* Threads are switched where their order matters. */
#define smp_store_release(p, v)	\
	(__atomic_store_n(p, v, __ATOMIC_RELEASE), shim_pause())
#define smp_rmb()		__atomic_thread_fence(__ATOMIC_ACQUIRE)

typedef struct { int counter; } atomic_t;
typedef atomic_t refcount_t;

#define atomic_read(v)		READ_ONCE((v)->counter)
#define atomic_set(v, i)	WRITE_ONCE((v)->counter, i)
#define atomic_xchg(v, i)	__atomic_exchange_n(&(v)->counter, i, __ATOMIC_SEQ_CST)
#define smp_mb__after_atomic()	__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define atomic_inc(v)		__atomic_fetch_add(&(v)->counter, 1, __ATOMIC_SEQ_CST)
#define atomic_dec(v)		__atomic_fetch_sub(&(v)->counter, 1, __ATOMIC_SEQ_CST)
#define atomic_inc_return(v)	__atomic_add_fetch(&(v)->counter, 1, __ATOMIC_SEQ_CST)
#define atomic_or(i, v)		__atomic_fetch_or(&(v)->counter, i, __ATOMIC_SEQ_CST)
#define atomic_fetch_or(i, v)	atomic_or(i, v)
#define atomic_andnot(i, v)	__atomic_fetch_and(&(v)->counter, ~(i), __ATOMIC_SEQ_CST)
#define atomic_fetch_andnot(i, v) atomic_andnot(i, v)

typedef pthread_mutex_t spinlock_t;

#define spin_lock_init(lock)	pthread_mutex_init(lock, NULL)
#define spin_lock(lock)		pthread_mutex_lock(lock)
#define spin_unlock(lock)	pthread_mutex_unlock(lock)
#define spin_lock_bh		spin_lock
#define spin_unlock_bh		spin_unlock
#define lockdep_is_held(lock)	((void)(lock), true)
#define lockdep_assert_held(lock) ((void)(lock))
#define lockdep_assert_in_softirq() ((void)0)

struct rcu_head { void *a, *b; };

extern pthread_rwlock_t shim_rcu;

#define rcu_read_lock()		pthread_rwlock_rdlock(&shim_rcu)
#define rcu_read_unlock()	pthread_rwlock_unlock(&shim_rcu)
#define rcu_dereference(p)	__atomic_load_n(&(p), __ATOMIC_ACQUIRE)
#define rcu_dereference_raw(p)	(p)
#define rcu_dereference_protected(p, c) ((void)(c), READ_ONCE(p))
#define rcu_access_pointer(p)	READ_ONCE(p)
#define rcu_assign_pointer(p, v) __atomic_store_n(&(p), v, __ATOMIC_RELEASE)
#define RCU_INIT_POINTER(p, v)	WRITE_ONCE(p, v)

static inline void synchronize_rcu(void)
{
	pthread_rwlock_wrlock(&shim_rcu);
	pthread_rwlock_unlock(&shim_rcu);
}

/* ---- memory ---- */

#define PAGE_SHIFT 12

/* The available pages that the table sees; the host has enough. */
extern long shim_available;

#define si_mem_available()	shim_available

enum { GFP_KERNEL, GFP_ATOMIC, __GFP_NOWARN = 0, __GFP_RETRY_MAYFAIL = 0, SLAB_HWCACHE_ALIGN = 0 };

/* The number of allocations that will still succeed; negative: all. */
extern int shim_memory;

static inline void *shim_alloc(size_t size)
{
	void *p;

	if (!READ_ONCE(shim_memory))
		return NULL;
	if (shim_memory > 0)
		__atomic_fetch_sub(&shim_memory, 1, __ATOMIC_RELAXED);
	p = aligned_alloc(64, (size + 63) & ~63UL);
	return p ? memset(p, 0, size) : NULL;
}

struct kmem_cache { size_t size; };

#define kmem_cache_create(name, sz, align, flags, ctor) \
	({ static struct kmem_cache cache; cache.size = sz; &cache; })
#define kmem_cache_destroy(cache)	((void)(cache))
#define kmem_cache_zalloc(cache, gfp)	shim_alloc((cache)->size)
#define kmem_cache_free(cache, p)	free(p)
#define kzalloc(size, gfp)		shim_alloc(size)
#define kvzalloc(size, gfp)		shim_alloc(size)
#define kfree				free
#define kvfree				free

/* ---- work, which table.c runs ---- */

struct work_struct { int unused; };
struct delayed_work { struct work_struct work; void (*fn)(struct work_struct *work); };

#define INIT_DELAYED_WORK(w, f)		((w)->fn = (f))
#define to_delayed_work(w)		container_of(w, struct delayed_work, work)
#define mod_delayed_work(q, w, d)	shim_queue(w)
#define queue_delayed_work(q, w, d)	shim_queue(w)
#define cancel_delayed_work_sync(w)	((void)(w))
#define cond_resched()			shim_interlude()

void shim_interlude(void);
void shim_queue(struct delayed_work *work);

/* ---- time, hashes, addresses ---- */

#define HZ 250
extern unsigned long jiffies;

typedef struct { u64 key[2]; } siphash_key_t;

#define __percpu
#define this_cpu_ptr(p)	((__typeof__(p))shim_this_cpu())
void *shim_this_cpu(void);

/* Of calls, which this program has none of. */
enum { L4LB_USE_CALL = 1 << 5 };

static inline u64 siphash_2u64(u64 first, u64 second, const siphash_key_t *key)
{
	return (first ^ key->key[0]) * 0x9e3779b97f4a7c15ULL + (second ^ key->key[1]);
}

static inline u64 siphash(const void *data, size_t len, const siphash_key_t *key)
{
	const u8 *p = data;
	u64 hash = key->key[0];

	while (len--)
		hash = siphash_2u64(hash, *p++, key);
	return hash;
}

#define SIPHASH_CONST_0 0x736f6d6570736575ULL
#define SIPHASH_CONST_1 0x646f72616e646f6dULL
#define SIPHASH_CONST_2 0x6c7967656e657261ULL
#define SIPHASH_CONST_3 0x7465646279746573ULL
#define ROTATE(x, n) ((x) << (n) | (x) >> (64 - (n)))
#define SIPHASH_PERMUTATION(a, b, c, d) do {				\
	(a) += (b), (b) = ROTATE(b, 13) ^ (a), (a) = ROTATE(a, 32);	\
	(c) += (d), (d) = ROTATE(d, 16) ^ (c);				\
	(a) += (d), (d) = ROTATE(d, 21) ^ (a);				\
	(c) += (b), (b) = ROTATE(b, 17) ^ (c), (c) = ROTATE(c, 32);	\
} while (0)
#define hash_ptr(p, bits) ((u64)(uintptr_t)(p) * 0x61c8864680b583ebULL >> (64 - (bits)))

union nf_inet_addr {
	u32		all[4];
	__be32		ip;
	__be32		ip6[4];
	struct in6_addr	in6;
};

#define ipv6_addr_equal(a, b)	(!memcmp(a, b, sizeof(struct in6_addr)))

/* ---- definitions that replace server.h, flow.h and net.h ---- */

#define _L4LB_SERVER_H
#define _L4LB_FLOW_H
#define _L4LB_NET_H
#define _L4LB_DROP_H

enum { IP_VS_CONN_F_MASQ, IP_VS_CONN_F_DROUTE = 3 };
enum l4lb_drop { L4LB_DROP_FULL, L4LB_DROP_ENTRY };

struct l4lb_flow {
	union nf_inet_addr	saddr, daddr;
	__be16			sport, dport;
	u8			af, proto;
	u64			hash;
};

static inline struct l4lb_flow l4lb_flow_inverse(const struct l4lb_flow *flow)
{
	return (struct l4lb_flow) {
		.saddr = flow->daddr, .daddr = flow->saddr,
		.sport = flow->dport, .dport = flow->sport,
		.af = flow->af, .proto = flow->proto,
	};
}

struct l4lb_conn_table;
struct l4lb_net {
	struct l4lb_conn_table	*conns;
	struct { int drop_entry; } sysctl;
	unsigned int		dropped;
};

#define l4lb_drop(ln, why)	((void)(why), (ln)->dropped++)

enum l4lb_alarm { L4LB_ALARM_FULL, L4LB_ALARM_FLOOD, L4LB_ALARMS };

#define set_bit(n, word)	__atomic_fetch_or(word, BIT(n), __ATOMIC_RELAXED)

struct l4lb_server {
	struct { union nf_inet_addr addr; } sched;
	struct { struct { u32 fwmark; } svc; } name;
	struct l4lb_net *ln;
	bool over;
};

static inline bool l4lb_server_over(const struct l4lb_server *server)
{
	return server->over;
}

#endif /* _L4LB_UNIT_TABLE_SHIM_H */
