// SPDX-License-Identifier: GPL-2.0
/* A socket for the peers of a family.  It lives longer than its thread. */
#include "sync/link.h"

#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <net/sock.h>

#include "sync/arrive.h"
#include "sync/counter.h"
#include "sync/socket.h"

#define DATAGRAM_MAX	65536

/* TTL or hop limit of the datagram; -1: not told. */
static int hops_of(struct msghdr *msg)
{
	struct cmsghdr *cmsg;

	for_each_cmsghdr(cmsg, msg) {
		if (!CMSG_OK(msg, cmsg))
			break;
		if ((cmsg->cmsg_level == SOL_IP && cmsg->cmsg_type == IP_TTL) ||
		    (cmsg->cmsg_level == SOL_IPV6 &&
		     cmsg->cmsg_type == IPV6_HOPLIMIT))
			return *(int *)CMSG_DATA(cmsg);
	}
	return -1;
}

static void receive_one(struct l4lb_sync_link *link)
{
	const struct l4lb_net *ln = link->peers->ln;
	u8 control[CMSG_SPACE(sizeof(int)) * 2] __aligned(8) = { };
	struct sockaddr_storage from = { };
	struct msghdr msg = {
		.msg_name	= &from,
		.msg_control	= control,
		.msg_controllen	= sizeof(control),
	};
	struct kvec bytes = {
		.iov_base	= link->data,
		.iov_len	= DATAGRAM_MAX,
	};
	int len;

	len = kernel_recvmsg(link->sock, &msg, &bytes, 1, DATAGRAM_MAX, 0);
	if (READ_ONCE(link->sock->sk->sk_shutdown) & RCV_SHUTDOWN)
		return;
	if (len < 0) {
		l4lb_sync_count(ln, L4LB_SYNC_N_RECEIVE_ERRORS);
		wait_event_idle_timeout(*sk_sleep(link->sock->sk),
					kthread_should_stop(), HZ / 10);
		return;
	}
	l4lb_sync_count(ln, L4LB_SYNC_N_PEER_IN);
	/* What was written is before the place that it now points to. */
	msg.msg_controllen = sizeof(control) - msg.msg_controllen;
	msg.msg_control = control;
	l4lb_sync_arrive(link->peers, link->data, len, &from, hops_of(&msg));
}

static int receive_thread(void *arg)
{
	struct l4lb_sync_link *link = arg;
	struct sock *sk = link->sock->sk;

	while (!kthread_should_stop() &&
	       !(READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)) {
		receive_one(link);
		cond_resched();
	}
	wait_event_idle(*sk_sleep(sk), kthread_should_stop());
	return 0;
}

struct l4lb_sync_link *l4lb_sync_link_open(struct l4lb_sync_peers *peers,
					   sa_family_t family)
{
	struct l4lb_sync_link *link = kzalloc(sizeof(*link), GFP_KERNEL);
	void *made;

	if (!link)
		return ERR_PTR(-ENOMEM);
	link->peers = peers;
	link->data = kvmalloc(DATAGRAM_MAX, GFP_KERNEL);
	made = link->data ? l4lb_sync_peer_socket(peers->ln, family,
						  peers->port) :
			    ERR_PTR(-ENOMEM);
	if (IS_ERR(made))
		goto err_close;
	link->sock = made;
	made = kthread_run(receive_thread, link, "l4lb-peer%c",
			   family == AF_INET6 ? '6' : '4');
	if (IS_ERR(made))
		goto err_close;
	link->task = made;
	return link;

err_close:
	l4lb_sync_link_close(link);
	return made;
}

void l4lb_sync_link_close(struct l4lb_sync_link *link)
{
	if (!link)
		return;
	if (link->task) {
		kernel_sock_shutdown(link->sock, SHUT_RDWR);
		kthread_stop(link->task);
	}
	if (link->sock)
		sock_release(link->sock);
	kvfree(link->data);
	kfree(link);
}
