/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork(): the parent goes on, the child does not disturb it, and may begin anew.
 *
 * A child has copies of the parent's queues (or the very same, where a parent domain's allocator
 * gives shared memory) and shares its port and descriptors, but no thread of the engine. So there
 * every call on what the parent had opened fails with ENODEV, and touches nothing; what the device
 * can do may be asked, and device memory be had. Asked for devices, or to open one that the parent
 * had listed, the child starts its own, as far as a process can: it attaches to uroced as any other
 * does, but DPDK does not start a second time. A process that forks first and uses verbs later is
 * not concerned: devices start on first need.
 *
 * Registered memory needs no care: the transport runs in this process and reads its pages as any
 * code does, so copy-on-write between parent and child is right by itself.
 */
#include "private.h"
#include "verbs_internal.h"

uint32_t fork_generation;

static int child_poll_cq(struct ibv_cq *ibv __rte_unused, int n __rte_unused,
			 struct ibv_wc *wc __rte_unused)
{
	return -ENODEV;
}

static int child_req_notify_cq(struct ibv_cq *ibv __rte_unused, int solicited_only __rte_unused)
{
	return face_errno(-ENODEV);
}

static int child_post_send(struct ibv_qp *ibv __rte_unused, struct ibv_send_wr *wr,
			   struct ibv_send_wr **bad)
{
	*bad = wr;
	return face_errno(-ENODEV);
}

static int child_post_recv(struct ibv_qp *ibv __rte_unused, struct ibv_recv_wr *wr,
			   struct ibv_recv_wr **bad)
{
	*bad = wr;
	return face_errno(-ENODEV);
}

static int child_post_srq_recv(struct ibv_srq *ibv __rte_unused, struct ibv_recv_wr *wr,
			       struct ibv_recv_wr **bad)
{
	*bad = wr;
	return face_errno(-ENODEV);
}

/* The calls of the data path do not look at the generation; they are replaced instead. */
void context_disable(struct face_context *context)
{
	struct ibv_context_ops *ops = &context->verbs.context.ops;
	struct face_qp *qp;
	struct face_cq *cq;

	ops->poll_cq = child_poll_cq;
	ops->req_notify_cq = child_req_notify_cq;
	ops->post_send = child_post_send;
	ops->post_recv = child_post_recv;
	ops->post_srq_recv = child_post_srq_recv;
	LIST_FOREACH (qp, &context->ex_qps, ex_link)
		wr_disable(qp);
	LIST_FOREACH (cq, &context->ex_cqs, ex_link)
		cq_ex_disable(cq);
}

static void disable_contexts(struct face_device *face, void *arg __rte_unused)
{
	struct face_context *context;

	TAILQ_FOREACH (context, &face->contexts, link)
		context_disable(context);
}

static void lock_device(struct face_device *face, void *arg __rte_unused)
{
	pthread_mutex_lock(&face->lock);
}

static void unlock_device(struct face_device *face, void *arg __rte_unused)
{
	pthread_mutex_unlock(&face->lock);
}

/* The child must find the lists of contexts and the table of handles whole. */
static void before_fork(void)
{
	device_list_lock();
	device_list_visit(lock_device, NULL);
	handles_lock();
}

static void after_fork_in_parent(void)
{
	handles_unlock();
	device_list_visit(unlock_device, NULL);
	device_list_unlock();
}

static void after_fork_in_child(void)
{
	handles_unlock();
	fork_generation++;
	device_list_visit(disable_contexts, NULL);
	device_list_visit(unlock_device, NULL);
	device_list_forget();
}

void fork_watch(void)
{
	static bool watching;

	/* A child that starts devices watches already. */
	if (watching)
		return;
	watching = true;
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base __rte_unused, size_t size __rte_unused)
{
	return 0;
}

int ibv_dofork_range(void *base __rte_unused, size_t size __rte_unused)
{
	return 0;
}
