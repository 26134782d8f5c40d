/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target of mode storage. It copies blocks between its disk, which is memory, and buffers that
 * it WRITEs from and READs into, as a target does whose disks know nothing of RDMA. What one poll
 * makes ready leaves in one post for each queue pair.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "endpoint.h"
#include "passive.h"
#include "pattern.h"
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
