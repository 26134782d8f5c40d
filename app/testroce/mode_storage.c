/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode storage: a target with a disk in memory, and an initiator that reads and writes random
 * blocks of it by the messages of NVMe over Fabrics (storage.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>
#include <rte_common.h>

#include "endpoint.h"
#include "mode.h"
#include "passive.h"
#include "pattern.h"
#include "run.h"
#include "storage.h"

#define POLL_MAX  32
#define KIND_BITS 2
#define KIND_MASK ((UINT64_C(1) << KIND_BITS) - 1)

/* The lower bits of wr_id; an index stands above them. */
enum target_kind {
	KIND_CAPSULE,  /* a received command */
	KIND_DATA,     /* a READ */
	KIND_RESPONSE, /* the SEND behind all that a request needs */
};

/* A receive request. */
struct target_capsule {
	struct ibv_recv_wr wr;
	struct ibv_sge sges[2]; /* the command, and the block that comes with it */
	struct target_qp *qp;
	uint32_t bytes; /* received */
	STAILQ_ENTRY(target_capsule) link;
};

/* A request that is executed. */
struct target_request {
	struct ibv_send_wr data, response;
	struct ibv_sge data_sge, response_sge;
	struct target_qp *qp;
	uint8_t *buffer;
	struct storage_response *answer;
	uint64_t block;
	STAILQ_ENTRY(target_request) link;
};

struct target_qp {
	struct storage_queue queue;
	STAILQ_HEAD(, target_request) free;    /* at most `depth` */
	STAILQ_HEAD(, target_capsule) waiting; /* commands for which no request is free */
};

/* passive.state: one allocation, which begins with this. */
struct target {
	const struct plan *plan;
	uint8_t *disk;
	struct target_qp *qps;
	struct target_capsule *capsules;
	struct target_request *requests;
	struct storage_ready ready;
};

static uint8_t *target_block(const struct target *target, uint64_t block)
{
	return target->disk + block * target->plan->size_bytes;
}

static void target_transfer(struct target_request *request, enum ibv_wr_opcode opcode,
			    const struct storage_command *command)
{
	request->data.opcode = opcode;
	request->data.send_flags = opcode == IBV_WR_RDMA_READ ? IBV_SEND_SIGNALED : 0;
	request->data.wr.rdma.remote_addr = command->addr;
	request->data.wr.rdma.rkey = command->rkey;
}

/* Execute a command, up to its response or its READ. */
static void target_execute(struct target *target, struct target_request *request,
			   struct target_capsule *capsule)
{
	/* A copy: the initiator may not change a command that has been checked. */
	const struct storage_command command = *(struct storage_command *)capsule->sges[0].addr;
	const uint64_t size = target->plan->size_bytes;
	struct target_qp *qp = request->qp;

	request->answer->number = command.number;
	request->answer->status = storage_check_command(target->plan, &command, capsule->bytes);
	request->block = command.block;
	if (request->answer->status != 0) {
		storage_queue_send(&target->ready, &qp->queue, &request->response,
				   &request->response);
	} else if (command.op == STORAGE_READ) {
		memcpy(request->buffer, target_block(target, command.block), size);
		target_transfer(request, IBV_WR_RDMA_WRITE, &command);
		request->data.next = &request->response;
		storage_queue_send(&target->ready, &qp->queue, &request->data, &request->response);
	} else if (storage_in_capsule(target->plan)) {
		memcpy(target_block(target, command.block), (void *)capsule->sges[1].addr, size);
		storage_queue_send(&target->ready, &qp->queue, &request->response,
				   &request->response);
	} else {
		target_transfer(request, IBV_WR_RDMA_READ, &command);
		storage_queue_send(&target->ready, &qp->queue, &request->data, &request->data);
	}
	storage_queue_receive(&target->ready, &capsule->qp->queue, &capsule->wr);
}

/* Execute the commands that wait, as far as requests are free. */
static void target_go_on(struct target *target, struct target_qp *qp)
{
	struct target_capsule *capsule;
	struct target_request *request;

	while ((capsule = STAILQ_FIRST(&qp->waiting)) && (request = STAILQ_FIRST(&qp->free))) {
		STAILQ_REMOVE_HEAD(&qp->waiting, link);
		STAILQ_REMOVE_HEAD(&qp->free, link);
		target_execute(target, request, capsule);
	}
}

static int target_take(struct passive *passive, const struct ibv_wc *wc)
{
	struct target *target = passive->state;
	const uint64_t index = wc->wr_id >> KIND_BITS;
	struct target_capsule *capsule = &target->capsules[index];
	struct target_request *request = &target->requests[index];

	if (wc->status != IBV_WC_SUCCESS)
		return -EIO;
	switch (wc->wr_id & KIND_MASK) {
	case KIND_CAPSULE:
		passive->messages++;
		capsule->bytes = wc->byte_len;
		STAILQ_INSERT_TAIL(&capsule->qp->waiting, capsule, link);
		target_go_on(target, capsule->qp);
		break;
	case KIND_DATA:
		memcpy(target_block(target, request->block), request->buffer,
		       target->plan->size_bytes);
		storage_queue_send(&target->ready, &request->qp->queue, &request->response,
				   &request->response);
		break;
	default:
		STAILQ_INSERT_HEAD(&request->qp->free, request, link);
		target_go_on(target, request->qp);
		break;
	}
	return 0;
}

int storage_target_poll(struct passive *passive)
{
	struct ibv_wc wc[POLL_MAX];
	struct target *target = passive->state;
	const int n = ibv_poll_cq(passive->endpoint.cq, POLL_MAX, wc);
	int rc = n < 0 ? -EIO : 0;

	for (int i = 0; rc == 0 && i < n; i++)
		rc = target_take(passive, &wc[i]);
	return rc == 0 ? storage_queue_post(&target->ready) : rc;
}

int storage_target_begin(struct passive *passive)
{
	const struct plan *plan = &passive->plan;
	const uint64_t requests = plan->qps * plan->depth;
	struct target *target = calloc(
		1, sizeof(*target) + plan->qps * sizeof(target->qps[0]) +
			   requests * (sizeof(target->capsules[0]) + sizeof(target->requests[0])));

	if (!target)
		return -ENOMEM;
	passive->state = target;
	STAILQ_INIT(&target->ready);
	target->plan = plan;
	target->qps = (void *)(target + 1);
	target->capsules = (void *)(target->qps + plan->qps);
	target->requests = (void *)(target->capsules + requests);
	target->disk = passive->endpoint.memory + storage_lay_target(plan).disk;
	for (uint64_t block = 0; plan->verify && block < storage_blocks(plan); block++)
		pattern_fill(target_block(target, block), plan->size_bytes, plan->seed,
			     pattern_tag(block, 0));
	return 0;
}

static void target_prepare_capsule(struct passive *passive, struct target_qp *qp, uint64_t index)
{
	const struct storage_layout layout = storage_lay_target(&passive->plan);
	const uint32_t lkey = passive->endpoint.mr->lkey;
	struct target *target = passive->state;
	struct target_capsule *capsule = &target->capsules[index];
	uint8_t *at = passive->endpoint.memory + layout.capsules + index * layout.capsule_bytes;

	capsule->qp = qp;
	capsule->sges[0] = (struct ibv_sge){(uintptr_t)at, sizeof(struct storage_command), lkey};
	capsule->sges[1] = (struct ibv_sge){(uintptr_t)at + sizeof(struct storage_command),
					    (uint32_t)passive->plan.size_bytes, lkey};
	capsule->wr = (struct ibv_recv_wr){
		.wr_id = index << KIND_BITS | KIND_CAPSULE,
		.sg_list = capsule->sges,
		.num_sge = storage_in_capsule(&passive->plan) ? 2 : 1,
	};
	storage_queue_receive(&target->ready, &capsule->qp->queue, &capsule->wr);
}

static void target_prepare_request(struct passive *passive, struct target_qp *qp, uint64_t index)
{
	const struct storage_layout layout = storage_lay_target(&passive->plan);
	const uint32_t lkey = passive->endpoint.mr->lkey;
	struct target *target = passive->state;
	struct target_request *request = &target->requests[index];
	uint8_t *memory = passive->endpoint.memory;

	request->qp = qp;
	request->buffer = memory + layout.buffers + index * layout.buffer_bytes;
	request->answer = (void *)(memory + layout.responses + index * sizeof(*request->answer));
	request->data_sge = (struct ibv_sge){(uintptr_t)request->buffer,
					     (uint32_t)passive->plan.size_bytes, lkey};
	request->data = (struct ibv_send_wr){
		.wr_id = index << KIND_BITS | KIND_DATA,
		.sg_list = &request->data_sge,
		.num_sge = 1,
	};
	request->response_sge =
		(struct ibv_sge){(uintptr_t)request->answer, sizeof(*request->answer), lkey};
	request->response = (struct ibv_send_wr){
		.wr_id = index << KIND_BITS | KIND_RESPONSE,
		.sg_list = &request->response_sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	STAILQ_INSERT_TAIL(&qp->free, request, link);
}

int storage_target_qp(struct passive *passive, unsigned int number)
{
	const uint64_t depth = passive->plan.depth;
	struct target *target = passive->state;
	struct target_qp *qp = &target->qps[number];

	storage_queue_init(&qp->queue, passive->endpoint.qps[number]);
	STAILQ_INIT(&qp->free);
	STAILQ_INIT(&qp->waiting);
	for (uint64_t i = number * depth; i < (number + 1) * depth; i++) {
		target_prepare_capsule(passive, qp, i);
		target_prepare_request(passive, qp, i);
	}
	return storage_queue_post(&target->ready);
}

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
