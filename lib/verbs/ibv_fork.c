/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork(): the parent continues undisturbed, and the child may start devices of its own.
 *
 * A child has copies of the parent's queues (or the very same queues, if a parent domain's
 * allocator gives shared memory), and it shares the parent's port and descriptors. But it has no
 * thread of the engine. So every call of the child on an object that the parent opened fails with
 * ENODEV, and touches nothing. Queries of the device's abilities and device memory still work. When
 * the child asks for devices, or opens one that the parent had listed, it starts its own as far as
 * a process can: it can attach to uroced, but it cannot start DPDK a second time. A process that
 * forks first and uses verbs later is not affected, because devices start on first need.
 *
 * Registered memory needs no special care: the transport runs in this process and accesses its
 * pages as any code does, so copy-on-write between parent and child works by itself.
 */
#include "base/origin.h"
#include "check.h"
#include "cm/ports.h"
#include "private.h"
#include "inject.h"
#include "unfold.h"
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

/* Replace the functions of the data path, because they do not check the generation. */
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

/* Lock, so that the child finds the lists of contexts and the table of handles complete. */
static void before_fork(void)
{
	device_list_lock();
	device_list_visit(lock_device, NULL);
	handles_lock();
	origin_before_fork();
}

static void after_fork_in_parent(void)
{
	origin_after_fork();
	handles_unlock();
	device_list_visit(unlock_device, NULL);
	device_list_unlock();
}

static void after_fork_in_child(void)
{
	origin_after_fork();
	handles_unlock();
	fork_generation++;
	cm_ports_forget();
	inject_forget();
	unfold_forget();
	check_forget();
	check_forget_work();
	device_list_visit(disable_contexts, NULL);
	device_list_visit(unlock_device, NULL);
	device_list_forget();
}

void fork_watch(void)
{
	static bool watching;

	/* A child that starts devices has the handlers already. */
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
