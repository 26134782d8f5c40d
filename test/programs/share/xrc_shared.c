/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An XRC domain of two processes, and a requester in a third one:
 *
 *   xrc_shared data		messages, memory and atomics of the process with the queue
 *   xrc_shared kill-queue	the process with the shared receive queue is killed
 *   xrc_shared kill-target	the process with the target is killed
 *   xrc_shared apart		they share no domain: the other process's number is refused
 *
 * The target queue pair is in one process, and the shared receive queue that the requester names in
 * another one.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "must.h"
#include "raise_qp.h"
#include "xrc_domain.h"

#define BYTES	(1u << 20)
#define LONG	300001u /* bytes of a message of many packets */
#define COUNT	64u	/* messages */
#define PSN	0xfffff0u
#define SECONDS 100 /* a process that takes longer hangs */
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *bytes;
	union ibv_gid gid;
};

/* What a process tells another one. */
struct fact {
	uint32_t number;
	uint32_t rkey;
	uint64_t address;
	union ibv_gid gid;
};

static struct side side;
static int file;

static void tell(int fd, const struct fact *fact)
{
	MUST(write(fd, fact, sizeof(*fact)) == (ssize_t)sizeof(*fact));
}

static struct fact hear(int fd)
{
	struct fact fact;

	MUST(read(fd, &fact, sizeof(fact)) == (ssize_t)sizeof(fact));
	return fact;
}

static void open_side(void)
{
	alarm(SECONDS);
	side.context = xrc_open_device();
	side.pd = ibv_alloc_pd(side.context);
	side.cq = ibv_create_cq(side.context, 256, NULL, NULL, 0);
	side.bytes = aligned_alloc(4096, BYTES);
	MUST(side.pd && side.cq && side.bytes);
	side.mr = ibv_reg_mr(side.pd, side.bytes, BYTES, ACCESS);
	MUST(side.mr);
	MUST(ibv_query_gid(side.context, 1, 0, &side.gid) == 0);
}

static void raise_to(struct ibv_qp *qp, const struct fact *peer, enum ibv_qp_state last)
{
	struct ibv_qp_attr attr = raise_attr(&peer->gid, peer->number, PSN);

	attr.qp_access_flags = ACCESS;
	MUST(raise_qp_to(qp, &attr, last) == 0);
}

static struct ibv_wc wait_for(enum ibv_wc_status status)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(side.cq, 1, &wc);
	while (n == 0);
	MUST(n == 1);
	if (wc.status != status)
		fprintf(stderr, "%s, not %s\n", ibv_wc_status_str(wc.status),
			ibv_wc_status_str(status));
	MUST(wc.status == status);
	return wc;
}

static uint8_t pattern(uint32_t message, uint32_t i)
{
	return (uint8_t)(message * 31 + i * 7 + i / 251);
}

/* The process with the target. */
static void run_target(int requester)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_XRC_RECV,
					   .comp_mask = IBV_QP_INIT_ATTR_XRCD};
	struct fact mine, peer;
	struct ibv_qp *qp;

	open_side();
	peer = hear(requester);
	init.xrcd = xrc_open_domain(side.context, file, O_CREAT);
	MUST(init.xrcd);
	qp = ibv_create_qp_ex(side.context, &init);
	MUST(qp);
	mine = (struct fact){.number = qp->qp_num, .gid = side.gid};
	raise_to(qp, &peer, IBV_QPS_RTR);
	tell(requester, &mine);
	/* It sleeps: nobody polls for the target. */
	(void)hear(requester);
	MUST(ibv_destroy_qp(qp) == 0);
	MUST(ibv_close_xrcd(init.xrcd) == 0);
	exit(0);
}

static struct ibv_srq *create_srq(struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = {.max_wr = 16, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = side.pd,
		.xrcd = xrcd,
		.cq = side.cq,
	};

	return ibv_create_srq_ex(side.context, &init);
}

static void post(struct ibv_srq *srq)
{
	struct ibv_sge sge = {.addr = (uintptr_t)side.bytes, .length = LONG, .lkey = side.mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	MUST(ibv_post_srq_recv(srq, &wr, &bad) == 0);
}

static void check_target(struct ibv_xrcd *xrcd, uint32_t number)
{
	struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						     IBV_QP_OPEN_ATTR_TYPE,
					.qp_num = number,
					.xrcd = xrcd,
					.qp_type = IBV_QPT_XRC_RECV};
	struct ibv_qp *qp = ibv_open_qp(side.context, &attr);

	MUST(qp && qp->qp_num == number);
	MUST(ibv_destroy_qp(qp) == 0);
	attr.qp_num = number ^ 1u;
	MUST(!ibv_open_qp(side.context, &attr) && errno == EINVAL);
}

/* The process with the shared receive queue. */
static void run_queue(int requester, bool apart)
{
	struct fact mine, target;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	uint32_t number;

	open_side();
	MUST(!xrc_open_domain(side.context, file, 0) && errno == EAGAIN);
	mine = (struct fact){0};
	tell(requester, &mine);
	target = hear(requester);
	if (!apart)
		MUST(!xrc_open_domain(side.context, file, O_CREAT | O_EXCL) && errno == EINVAL);
	xrcd = xrc_open_domain(side.context, file, apart ? O_CREAT : 0);
	MUST(xrcd);
	if (!apart)
		check_target(xrcd, target.number);
	srq = create_srq(xrcd);
	MUST(srq && ibv_get_srq_num(srq, &number) == 0);
	for (uint32_t i = 0; i < BYTES; i++)
		side.bytes[i] = pattern(7, i);
	mine = (struct fact){.number = number,
			     .rkey = side.mr->rkey,
			     .address = (uintptr_t)side.bytes,
			     .gid = side.gid};
	post(srq);
	tell(requester, &mine);
	for (uint32_t m = 0; m < COUNT && !apart; m++) {
		const struct ibv_wc wc = wait_for(IBV_WC_SUCCESS);

		MUST(wc.qp_num == target.number && wc.opcode == IBV_WC_RECV);
		for (uint32_t i = 0; i < wc.byte_len; i++)
			MUST(side.bytes[i] == pattern(m, i));
		/* The requester waits: sometimes the queue is empty. */
		post(srq);
	}
	tell(requester, &mine);
	(void)hear(requester);
	MUST(ibv_destroy_srq(srq) == 0);
	MUST(ibv_close_xrcd(xrcd) == 0);
	exit(0);
}

static void send_one(struct ibv_qp *qp, const struct fact *queue, enum ibv_wr_opcode opcode,
		     uint32_t from, uint32_t length, uint32_t to)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)side.bytes + from, .length = length, .lkey = side.mr->lkey};
	struct ibv_send_wr wr = {.opcode = opcode,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	wr.qp_type.xrc.remote_srqn = queue->number;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = queue->address + to;
		wr.wr.atomic.rkey = queue->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = queue->address + to;
		wr.wr.rdma.rkey = queue->rkey;
	}
	MUST(ibv_post_send(qp, &wr, &bad) == 0);
}

/* Messages of one and of many packets; the queue may be empty. */
static void send_messages(struct ibv_qp *qp, const struct fact *queue)
{
	for (uint32_t m = 0; m < COUNT; m++) {
		const uint32_t length = m % 16 == 5 ? LONG : m * 97 % 9000;

		for (uint32_t i = 0; i < length; i++)
			side.bytes[i] = pattern(m, i);
		send_one(qp, queue, IBV_WR_SEND, 0, length, 0);
		wait_for(IBV_WC_SUCCESS);
	}
}

/* Write, read back, and add, in memory behind the messages. */
static void use_memory(struct ibv_qp *qp, const struct fact *queue)
{
	const uint32_t place = LONG + 7, half = BYTES / 2;
	uint64_t value, sum = 0;

	for (uint32_t i = 0; i < LONG; i++)
		side.bytes[i] = pattern(3, i);
	send_one(qp, queue, IBV_WR_RDMA_WRITE, 0, LONG, place);
	send_one(qp, queue, IBV_WR_RDMA_READ, half, LONG, place);
	wait_for(IBV_WC_SUCCESS);
	wait_for(IBV_WC_SUCCESS);
	MUST(memcmp(side.bytes, side.bytes + half, LONG) == 0);
	memset(side.bytes, 0, sizeof(value));
	send_one(qp, queue, IBV_WR_RDMA_WRITE, 0, sizeof(value), BYTES - sizeof(value));
	wait_for(IBV_WC_SUCCESS);
	for (uint64_t i = 0; i < 100; i++) {
		send_one(qp, queue, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, sizeof(value),
			 BYTES - sizeof(value));
		wait_for(IBV_WC_SUCCESS);
		memcpy(&value, side.bytes + 8, sizeof(value));
		MUST(value == sum++);
	}
}

static void end_process(pid_t pid, int fd, bool killed)
{
	const struct fact end = {0};
	int status;

	if (!killed)
		tell(fd, &end);
	MUST(waitpid(pid, &status, 0) == pid);
	if (!killed)
		MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void kill_now(pid_t pid)
{
	MUST(kill(pid, SIGKILL) == 0);
}

static void run_requester(const char *how, const pid_t pids[2], const int fds[2])
{
	const bool kills_target = strcmp(how, "kill-target") == 0;
	const bool kills_queue = strcmp(how, "kill-queue") == 0;
	const bool apart = strcmp(how, "apart") == 0;
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_XRC_SEND,
					   .cap = {.max_send_wr = 16, .max_send_sge = 1},
					   .comp_mask = IBV_QP_INIT_ATTR_PD};
	struct fact mine, target, queue;
	struct ibv_qp *qp;

	open_side();
	init.pd = side.pd;
	init.send_cq = side.cq;
	qp = ibv_create_qp_ex(side.context, &init);
	MUST(qp);
	mine = (struct fact){.number = qp->qp_num, .gid = side.gid};
	/* The queue's process has found no domain before the target's process makes it. */
	(void)hear(fds[1]);
	tell(fds[0], &mine);
	target = hear(fds[0]);
	raise_to(qp, &target, IBV_QPS_RTS);
	tell(fds[1], &target);
	queue = hear(fds[1]);
	if (apart) {
		send_one(qp, &queue, IBV_WR_SEND, 0, 8, 0);
		wait_for(IBV_WC_REM_INV_REQ_ERR);
	} else {
		send_messages(qp, &queue);
	}
	(void)hear(fds[1]);
	if (!apart && !kills_queue && !kills_target)
		use_memory(qp, &queue);
	if (kills_queue) {
		kill_now(pids[1]);
		end_process(pids[1], fds[1], true);
		/* Receive requests are posted, but nobody has them any more. */
		send_one(qp, &queue, IBV_WR_RDMA_WRITE, 0, 8, 0);
		wait_for(IBV_WC_REM_INV_REQ_ERR);
	}
	if (kills_target) {
		kill_now(pids[0]);
		end_process(pids[0], fds[0], true);
		send_one(qp, &queue, IBV_WR_SEND, 0, 8, 0);
		wait_for(IBV_WC_RETRY_EXC_ERR);
	}
	if (!kills_target)
		end_process(pids[0], fds[0], false);
	if (!kills_queue)
		end_process(pids[1], fds[1], false);
}

int main(int argc, char **argv)
{
	int fds[2];
	pid_t pids[2];

	MUST(argc == 2);
	file = xrc_file();
	for (int i = 0; i < 2; i++) {
		int pair[2];

		MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
		pids[i] = fork();
		MUST(pids[i] >= 0);
		if (pids[i] == 0 && i == 0)
			run_target(pair[1]);
		if (pids[i] == 0)
			run_queue(pair[1], strcmp(argv[1], "apart") == 0);
		close(pair[1]);
		fds[i] = pair[0];
	}
	run_requester(argv[1], pids, fds);
	return 0;
}
