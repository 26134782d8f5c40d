/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode storage: a target with a disk in memory, and an initiator that reads and writes random
 * blocks of it by the messages of NVMe over Fabrics (storage.h). */
#include <errno.h>
#include <stdio.h>

#include <rte_common.h>

#include "endpoint.h"
#include "mode.h"
#include "passive.h"
#include "run.h"
#include "storage.h"

#define VERIFY_MIN_BYTES 512
#define REQUESTS_MAX	 (UINT64_C(1) << 20) /* a side's memory for each is not in the region */
#define LINE_BYTES	 UINT64_C(64)
#define CAPSULE_SGES	 2 /* the command, and the block that comes with it */
#define REQUEST_WRS	 2 /* of the target: the block, and the response */

static uint64_t storage_region(const struct plan *plan)
{
	return plan->region_bytes > 0 ? plan->region_bytes : PLAN_DISK_DEFAULT;
}

uint64_t storage_blocks(const struct plan *plan)
{
	return storage_region(plan) / plan->size_bytes;
}

bool storage_in_capsule(const struct plan *plan)
{
	return plan->size_bytes <= plan->in_capsule_bytes;
}

/* Lay out the part that both sides have, behind a disk of that size. */
static struct storage_layout storage_lay(const struct plan *plan, uint64_t disk_bytes,
					 uint64_t capsule_bytes)
{
	const uint64_t requests = plan->qps * plan->depth;
	struct storage_layout layout = {
		.buffers = RTE_ALIGN_CEIL(disk_bytes, LINE_BYTES),
		.buffer_bytes = RTE_ALIGN_CEIL(plan->size_bytes, LINE_BYTES),
		.capsule_bytes = RTE_ALIGN_CEIL(capsule_bytes, LINE_BYTES),
	};

	layout.capsules = layout.buffers + requests * layout.buffer_bytes;
	layout.responses = layout.capsules + requests * layout.capsule_bytes;
	layout.bytes = layout.responses + requests * sizeof(struct storage_response);
	return layout;
}

struct storage_layout storage_lay_initiator(const struct plan *plan)
{
	return storage_lay(plan, 0, sizeof(struct storage_command));
}

struct storage_layout storage_lay_target(const struct plan *plan)
{
	return storage_lay(plan, storage_blocks(plan) * plan->size_bytes,
			   sizeof(struct storage_command) +
				   (storage_in_capsule(plan) ? plan->size_bytes : 0));
}

int storage_check_command(const struct plan *plan, const struct storage_command *command,
			  uint32_t bytes)
{
	const bool brings = command->op == STORAGE_WRITE && storage_in_capsule(plan);

	if (bytes < sizeof(*command) || command->op >= STORAGE_OPS ||
	    bytes - sizeof(*command) != (brings ? plan->size_bytes : 0))
		return -EPROTO;
	return command->block < storage_blocks(plan) ? 0 : -ERANGE;
}

static int storage_check(const struct plan *plan, char *error, size_t error_size)
{
	const char *what = NULL;

	/* The initiator must always find a block without a request, so the disk holds more blocks
	 * than can be in flight. */
	if (storage_blocks(plan) < 2 * plan->qps * plan->depth)
		what = "the region holds less than twice the blocks under way";
	else if (plan->qps * plan->depth > REQUESTS_MAX)
		what = "more than a million requests are in flight";
	else if (plan->verify && plan->size_bytes < VERIFY_MIN_BYTES)
		what = "verified blocks have at least 512 bytes";
	if (!what)
		return 0;
	snprintf(error, error_size, "%s", what);
	return -EINVAL;
}

static void storage_shape(const struct plan *plan, struct endpoint_config *active,
			  struct endpoint_config *passive)
{
	active->send_wr = (uint32_t)plan->depth;
	active->recv_wr = (uint32_t)plan->depth;
	active->sges = CAPSULE_SGES;
	active->region_bytes = storage_lay_initiator(plan).bytes;
	passive->send_wr = REQUEST_WRS * (uint32_t)plan->depth;
	passive->recv_wr = (uint32_t)plan->depth;
	passive->sges = CAPSULE_SGES;
	passive->region_bytes = storage_lay_target(plan).bytes;
}

static void queue_clear(struct storage_queue *queue)
{
	queue->sends = NULL;
	queue->send_tail = &queue->sends;
	queue->receives = NULL;
	queue->receive_tail = &queue->receives;
}

void storage_queue_init(struct storage_queue *queue, struct ibv_qp *qp)
{
	queue->qp = qp;
	queue->is_ready = false;
	queue_clear(queue);
}

static void queue_make_ready(struct storage_ready *ready, struct storage_queue *queue)
{
	if (queue->is_ready)
		return;
	queue->is_ready = true;
	STAILQ_INSERT_TAIL(ready, queue, link);
}

void storage_queue_send(struct storage_ready *ready, struct storage_queue *queue,
			struct ibv_send_wr *first, struct ibv_send_wr *last)
{
	last->next = NULL;
	*queue->send_tail = first;
	queue->send_tail = &last->next;
	queue_make_ready(ready, queue);
}

void storage_queue_receive(struct storage_ready *ready, struct storage_queue *queue,
			   struct ibv_recv_wr *wr)
{
	wr->next = NULL;
	*queue->receive_tail = wr;
	queue->receive_tail = &wr->next;
	queue_make_ready(ready, queue);
}

/* The receive requests go first: what is sent makes the peer send messages for them. */
int storage_queue_post(struct storage_ready *ready)
{
	struct ibv_recv_wr *bad_receive;
	struct ibv_send_wr *bad_send;
	struct storage_queue *queue;
	int rc = 0;

	while (rc == 0 && (queue = STAILQ_FIRST(ready))) {
		STAILQ_REMOVE_HEAD(ready, link);
		queue->is_ready = false;
		if (queue->receives)
			rc = ibv_post_recv(queue->qp, queue->receives, &bad_receive);
		if (rc == 0 && queue->sends)
			rc = ibv_post_send(queue->qp, queue->sends, &bad_send);
		queue_clear(queue);
	}
	return -rc;
}

const struct mode mode_storage = {
	.name = "storage",
	.check = storage_check,
	.shape = storage_shape,
	.begin = storage_initiator_begin,
	.poll = storage_initiator_poll,
	.stats = storage_initiator_stats,
	.qp_messages = storage_initiator_qp_messages,
	.end = storage_initiator_end,
	.serve_begin = storage_target_begin,
	.serve_qp = storage_target_qp,
	.serve_poll = storage_target_poll,
	.serve_end = passive_count_messages,
};
