/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes whose threads open the XRC domain of one file, make a shared receive queue, and close
 * the domain, again and again, while another process sends to these queues. Each message must be
 * delivered or refused, and at the end nobody has the domain.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "must.h"
#include "raise_qp.h"
#include "xrc_domain.h"

#define PROCESSES 3u
#define THREADS	  2u
#define QUEUES	  (PROCESSES * THREADS)
#define BYTES	  6000u /* of a message: several packets */
#define DELIVERED 20u	/* messages of a run */
#define REFUSED	  10u
#define STALE	  4u /* each fourth message is for a queue that may have gone */
#define PSN	  0xfffff0u
#define LONG_US	  150000u /* longer than a process waits for the owner's messages */
#define SECONDS	  100	  /* a process that takes longer hangs */

/* The processes share this memory. */
struct shared {
	uint32_t numbers[QUEUES]; /* of the queues that there are now, or 0; atomic */
	bool over;		  /* atomic */
};

struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	union ibv_gid gid;
};

static struct shared *shared;
static struct side side;
static int file;

static void open_side(void)
{
	alarm(SECONDS);
	side.context = xrc_open_device();
	side.pd = ibv_alloc_pd(side.context);
	MUST(side.pd && ibv_query_gid(side.context, 1, 0, &side.gid) == 0);
}

/* Bytes for messages, registered. */
struct buffer {
	struct ibv_mr *mr;
	uint8_t *bytes;
};

static struct buffer make_buffer(void)
{
	struct buffer buffer = {.bytes = calloc(1, BYTES)};

	MUST(buffer.bytes);
	buffer.mr = ibv_reg_mr(side.pd, buffer.bytes, BYTES, IBV_ACCESS_LOCAL_WRITE);
	MUST(buffer.mr);
	return buffer;
}

static struct ibv_srq *make_queue(struct ibv_xrcd *xrcd, struct ibv_cq *cq,
				  const struct buffer *buffer)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = {.max_wr = 1, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = side.pd,
		.xrcd = xrcd,
		.cq = cq,
	};
	struct ibv_sge sge = {(uintptr_t)buffer->bytes, BYTES, buffer->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_srq *srq = ibv_create_srq_ex(side.context, &init);

	MUST(srq && ibv_post_srq_recv(srq, &wr, &bad) == 0);
	return srq;
}

static void check_message(struct ibv_cq *cq, const struct buffer *buffer)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(cq, 1, &wc) == 0)
		return;
	MUST(wc.status == IBV_WC_SUCCESS && wc.byte_len == BYTES);
	for (uint32_t i = 1; i < BYTES; i++)
		MUST(buffer->bytes[i] == (uint8_t)(buffer->bytes[0] + i));
}

/* Have a queue for a short time, or for a long one, and then no domain for a moment. */
static void *open_and_close(void *number)
{
	struct ibv_cq *cq = ibv_create_cq(side.context, 4, NULL, NULL, 0);
	const struct buffer buffer = make_buffer();

	MUST(cq);
	for (unsigned int round = 0; !__atomic_load_n(&shared->over, __ATOMIC_ACQUIRE); round++) {
		struct ibv_xrcd *xrcd = xrc_open_domain(side.context, file, O_CREAT);
		struct ibv_srq *srq;
		uint32_t srqn;

		MUST(xrcd);
		srq = make_queue(xrcd, cq, &buffer);
		MUST(ibv_get_srq_num(srq, &srqn) == 0);
		__atomic_store_n((uint32_t *)number, srqn, __ATOMIC_RELEASE);
		usleep(round % 4 == 0 ? LONG_US : round % 7 * 1000);
		__atomic_store_n((uint32_t *)number, 0, __ATOMIC_RELEASE);
		check_message(cq, &buffer);
		MUST(ibv_destroy_srq(srq) == 0);
		MUST(ibv_close_xrcd(xrcd) == 0);
	}
	return NULL;
}

static void run_receivers(uint32_t *numbers)
{
	pthread_t threads[THREADS];

	open_side();
	for (unsigned int i = 0; i < THREADS; i++)
		MUST(pthread_create(&threads[i], NULL, open_and_close, &numbers[i]) == 0);
	for (unsigned int i = 0; i < THREADS; i++)
		MUST(pthread_join(threads[i], NULL) == 0);
	exit(0);
}

/* The sender, and the target that it sends to. */
struct ends {
	struct ibv_qp *sender;
	struct ibv_qp *target;
	struct ibv_cq *cq;
};

static struct ends make_ends(struct ibv_xrcd *xrcd)
{
	struct ends ends = {.cq = ibv_create_cq(side.context, 4, NULL, NULL, 0)};
	struct ibv_qp_init_attr_ex sender = {.qp_type = IBV_QPT_XRC_SEND,
					     .send_cq = ends.cq,
					     .cap = {.max_send_wr = 1, .max_send_sge = 1},
					     .comp_mask = IBV_QP_INIT_ATTR_PD,
					     .pd = side.pd};
	struct ibv_qp_init_attr_ex target = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};

	ends.sender = ibv_create_qp_ex(side.context, &sender);
	ends.target = ibv_create_qp_ex(side.context, &target);
	MUST(ends.cq && ends.sender && ends.target);
	return ends;
}

static void raise_one(struct ibv_qp *qp, const struct ibv_qp *peer, enum ibv_qp_state last)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct ibv_qp_attr attr = raise_attr(&side.gid, peer->qp_num, PSN);

	MUST(ibv_modify_qp(qp, &reset, IBV_QP_STATE) == 0);
	MUST(raise_qp_to(qp, &attr, last) == 0);
}

static void connect_ends(const struct ends *ends)
{
	raise_one(ends->target, ends->sender, IBV_QPS_RTR);
	raise_one(ends->sender, ends->target, IBV_QPS_RTS);
}

/* Return true if the message was delivered, false if it was refused. */
static bool send_to(const struct ends *ends, uint32_t number, const struct buffer *buffer)
{
	struct ibv_sge sge = {(uintptr_t)buffer->bytes, BYTES, buffer->mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_wc wc;

	wr.qp_type.xrc.remote_srqn = number;
	MUST(ibv_post_send(ends->sender, &wr, &bad) == 0);
	while (ibv_poll_cq(ends->cq, 1, &wc) == 0)
		;
	if (wc.status == IBV_WC_SUCCESS)
		return true;
	if (wc.status != IBV_WC_REM_INV_REQ_ERR)
		fprintf(stderr, "%s\n", ibv_wc_status_str(wc.status));
	MUST(wc.status == IBV_WC_REM_INV_REQ_ERR);
	connect_ends(ends);
	return false;
}

static void send_messages(const struct ends *ends)
{
	const struct buffer buffer = make_buffer();
	uint32_t delivered = 0, refused = 0, stale = 0;

	for (unsigned int i = 0; delivered < DELIVERED || refused < REFUSED; i++) {
		uint32_t number = __atomic_load_n(&shared->numbers[i % QUEUES], __ATOMIC_ACQUIRE);

		if (stale != 0 && i % STALE == 0)
			number = stale;
		else
			stale = number;
		if (number == 0) {
			usleep(1000);
			continue;
		}
		for (uint32_t at = 0; at < BYTES; at++)
			buffer.bytes[at] = (uint8_t)(i + at);
		if (send_to(ends, number, &buffer))
			delivered++;
		else
			refused++;
	}
	MUST(ibv_dereg_mr(buffer.mr) == 0);
	free(buffer.bytes);
}

/* The others' processes have closed the domain, and ended. The owner learns it soon. */
static void check_end(void)
{
	struct ibv_xrcd *xrcd;

	while ((xrcd = xrc_open_domain(side.context, file, 0)) != NULL) {
		MUST(ibv_close_xrcd(xrcd) == 0);
		usleep(1000);
	}
	MUST(errno == EAGAIN);
	xrcd = xrc_open_domain(side.context, file, O_CREAT | O_EXCL);
	MUST(xrcd && ibv_close_xrcd(xrcd) == 0);
}

static void run_sender(const pid_t pids[PROCESSES])
{
	struct ibv_xrcd *xrcd;
	struct ends ends;

	open_side();
	xrcd = xrc_open_domain(side.context, file, O_CREAT);
	MUST(xrcd);
	ends = make_ends(xrcd);
	connect_ends(&ends);
	send_messages(&ends);
	__atomic_store_n(&shared->over, true, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < PROCESSES; i++) {
		int status;

		MUST(waitpid(pids[i], &status, 0) == pids[i]);
		MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	MUST(ibv_destroy_qp(ends.sender) == 0 && ibv_destroy_qp(ends.target) == 0);
	MUST(ibv_close_xrcd(xrcd) == 0);
	check_end();
}

int main(void)
{
	pid_t pids[PROCESSES];

	file = xrc_file();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	MUST(shared != MAP_FAILED);
	for (unsigned int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		MUST(pids[i] >= 0);
		if (pids[i] == 0)
			run_receivers(&shared->numbers[i * THREADS]);
	}
	run_sender(pids);
	return 0;
}
