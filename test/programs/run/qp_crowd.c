/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Thousands of queue pairs that many threads create, use and destroy at once; each completion is
 * counted:
 *
 *   qp_crowd alone    queue pairs of one process, connected to each other
 *   qp_crowd pair     queue pairs of two processes, each with a device of its own
 *   qp_crowd first PATH, qp_crowd second PATH
 *                     the same with fewer threads, started separately; they meet at a socket
 *
 * Each thread has a completion queue. Its queue pairs are connected to those of the next thread, so
 * threads complete each other's work.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "must.h"
#include "raise_qp.h"

/* qp_few is built from this file, too: few queue pairs, and long messages */
#ifndef QPS
#define THREADS 64 /* at most */
#define FEW	8  /* over a network whose receivers hold few packets */
#define QPS	32 /* of each thread */
#define BYTES	64
#endif
#define ROUNDS	 2
#define MESSAGES 16 /* on each queue pair, in each round */
#define DEPTH	 4
#define PSN	 7000
#define SECONDS	 120 /* a process that takes longer hangs */

/* The message that a process sends to the other one. */
struct names {
	union ibv_gid gid;
	uint32_t qpns[THREADS][QPS];
};

struct slot {
	uint64_t from[DEPTH][BYTES / 8], to[DEPTH][BYTES / 8];
};

struct queue {
	struct ibv_qp *qp;
	uint32_t sent, taken; /* messages of this round */
	uint32_t sending;     /* that have not completed */
	struct slot *slot;
};

struct crew {
	pthread_t thread;
	unsigned int number;
	struct ibv_cq *cq;
	struct queue queues[QPS];
	uint64_t sends, receives; /* completions */
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct slot slots[THREADS][QPS];
static struct crew crews[THREADS];
static struct names ours, theirs;
static pthread_barrier_t barrier;
static unsigned int threads = THREADS;
static int other = -1; /* a socket to the other process */

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	MUST(list && list[0]);
	context = ibv_open_device(list[0]);
	MUST(context && ibv_query_gid(context, 1, 0, &ours.gid) == 0);
	pd = ibv_alloc_pd(context);
	MUST(pd);
	mr = ibv_reg_mr(pd, slots, sizeof(slots), IBV_ACCESS_LOCAL_WRITE);
	MUST(mr);
}

static void create(struct crew *crew)
{
	crew->cq = ibv_create_cq(context, 2 * DEPTH * QPS, NULL, NULL, 0);
	MUST(crew->cq);
	for (unsigned int i = 0; i < QPS; i++) {
		struct queue *queue = &crew->queues[i];

		*queue = (struct queue){
			.qp = raise_create(pd, IBV_QPT_RC, crew->cq, crew->cq, NULL, DEPTH),
			.slot = &slots[crew->number][i]};
		MUST(queue->qp);
		ours.qpns[crew->number][i] = queue->qp->qp_num;
	}
}

/* The engine of a completion queue follows from the order in which they get queue pairs. With few
 * threads keep this order, so that the same engines meet each time: each of those of one process
 * meets each of the other's. */
static void create_in_order(struct crew *crew)
{
	for (unsigned int i = 0; i < threads; i++) {
		pthread_barrier_wait(&barrier);
		if (i == crew->number)
			create(crew);
	}
}

/* The first thread of each process tells the other process its queue pairs. */
static void exchange(const struct crew *crew)
{
	pthread_barrier_wait(&barrier);
	if (crew->number == 0 && other < 0) {
		theirs = ours;
	} else if (crew->number == 0) {
		MUST(send(other, &ours, sizeof(ours), 0) == sizeof(ours));
		MUST(recv(other, &theirs, sizeof(theirs), MSG_WAITALL) == sizeof(theirs));
	}
	pthread_barrier_wait(&barrier);
}

static void post_receive(struct queue *queue, unsigned int i, unsigned int place)
{
	struct ibv_sge sge = {(uintptr_t)queue->slot->to[place], BYTES, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

	MUST(ibv_post_recv(queue->qp, &wr, &bad) == 0);
}

/* The peer of queue pair i of a thread is queue pair i ^ 1 of a neighbour: of the next thread for
 * even ones, of the one before for odd ones. */
static uint32_t peer_of(const struct crew *crew, unsigned int i)
{
	return theirs.qpns[(crew->number + (i % 2 ? threads - 1 : 1)) % threads][i ^ 1];
}

static void connect_all(struct crew *crew)
{
	for (unsigned int i = 0; i < QPS; i++) {
		struct ibv_qp_attr attr = raise_attr(&theirs.gid, peer_of(crew, i), PSN);

		attr.timeout = 20; /* 4 s: 128 threads share the CPUs of the machine */
		MUST(raise_qp(crew->queues[i].qp, &attr) == 0);
		for (unsigned int k = 0; k < DEPTH; k++)
			post_receive(&crew->queues[i], i, k);
	}
}

static void send_next(struct queue *queue, unsigned int i)
{
	uint64_t *from = queue->slot->from[queue->sent % DEPTH];
	struct ibv_sge sge = {(uintptr_t)from, BYTES, mr->lkey};
	struct ibv_send_wr wr = {.wr_id = i | 0x100,
				 .opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;

	for (unsigned int word = 0; word < BYTES / 8; word++)
		from[word] = (uint64_t)queue->qp->qp_num << 32 | queue->sent;
	MUST(ibv_post_send(queue->qp, &wr, &bad) == 0);
	queue->sent++;
	queue->sending++;
}

static void take(struct crew *crew, const struct ibv_wc *wc)
{
	const unsigned int i = wc->wr_id & 0xff;
	struct queue *queue = &crew->queues[i];
	const uint64_t *to = queue->slot->to[queue->taken % DEPTH];

	if (wc->status != IBV_WC_SUCCESS) {
		fprintf(stderr, "a work request failed: %s\n", ibv_wc_status_str(wc->status));
		_exit(1);
	}
	MUST(i < QPS && wc->qp_num == queue->qp->qp_num);
	if (wc->wr_id & 0x100) {
		MUST(queue->sending > 0);
		queue->sending--;
		crew->sends++;
		return;
	}
	for (unsigned int word = 0; word < BYTES / 8; word++)
		MUST(to[word] == ((uint64_t)peer_of(crew, i) << 32 | queue->taken));
	post_receive(queue, i, queue->taken % DEPTH);
	queue->taken++;
	crew->receives++;
}

static bool is_done(const struct crew *crew)
{
	for (unsigned int i = 0; i < QPS; i++) {
		if (crew->queues[i].taken < MESSAGES || crew->queues[i].sent < MESSAGES ||
		    crew->queues[i].sending > 0)
			return false;
	}
	return true;
}

static void use(struct crew *crew)
{
	struct ibv_wc wcs[16];

	while (!is_done(crew)) {
		int n;

		for (unsigned int i = 0; i < QPS; i++) {
			struct queue *queue = &crew->queues[i];

			while (queue->sent < MESSAGES && queue->sending < DEPTH)
				send_next(queue, i);
		}
		n = ibv_poll_cq(crew->cq, 16, wcs);
		MUST(n >= 0);
		for (int k = 0; k < n; k++)
			take(crew, &wcs[k]);
	}
	/* Check that no completion arrives twice. */
	MUST(ibv_poll_cq(crew->cq, 16, wcs) == 0);
}

static void destroy(struct crew *crew)
{
	for (unsigned int i = 0; i < QPS; i++)
		MUST(ibv_destroy_qp(crew->queues[i].qp) == 0);
	MUST(ibv_destroy_cq(crew->cq) == 0);
}

/* Wait until the peers of all queue pairs have all they need, also in the other process. */
static void meet(const struct crew *crew)
{
	char word = 0;

	pthread_barrier_wait(&barrier);
	if (crew->number == 0 && other >= 0) {
		MUST(send(other, &word, 1, 0) == 1);
		MUST(recv(other, &word, 1, MSG_WAITALL) == 1);
	}
	pthread_barrier_wait(&barrier);
}

static void *run_crew(void *arg)
{
	struct crew *crew = arg;

	for (int round = 0; round < ROUNDS; round++) {
		meet(crew);
		if (threads == THREADS)
			create(crew);
		else
			create_in_order(crew);
		exchange(crew);
		connect_all(crew);
		meet(crew);
		use(crew);
		meet(crew);
		destroy(crew);
	}
	return NULL;
}

static void run_process(void)
{
	uint64_t sends = 0, receives = 0;

	MUST(pthread_barrier_init(&barrier, NULL, threads) == 0);
	for (unsigned int i = 0; i < threads; i++) {
		crews[i].number = i;
		MUST(pthread_create(&crews[i].thread, NULL, run_crew, &crews[i]) == 0);
	}
	for (unsigned int i = 0; i < threads; i++) {
		MUST(pthread_join(crews[i].thread, NULL) == 0);
		sends += crews[i].sends;
		receives += crews[i].receives;
	}
	MUST(sends == (uint64_t)threads * QPS * ROUNDS * MESSAGES && receives == sends);
	MUST(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
	printf("%u queue pairs of %u threads, %d times: %llu completions\n", threads * QPS, threads,
	       ROUNDS, (unsigned long long)(sends + receives));
}

/* Return a socket to the other process. The second process waits until the first one listens. */
static int meet_at(const char *path, bool is_first)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	MUST(fd >= 0 && strlen(path) < sizeof(at.sun_path));
	strcpy(at.sun_path, path);
	if (is_first) {
		MUST(bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 1) == 0);
		return accept(fd, NULL, NULL);
	}
	while (connect(fd, (const struct sockaddr *)&at, sizeof(at)) != 0)
		usleep(10000);
	return fd;
}

static void run_pair(void)
{
	int ends[2], status;
	pid_t child;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	child = fork();
	MUST(child >= 0);
	other = ends[child == 0];
	close(ends[child != 0]);
	alarm(SECONDS);
	open_device();
	run_process();
	if (child > 0)
		MUST(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	const bool is_first = strcmp(how, "first") == 0;

	alarm(SECONDS);
	if (argc == 2 && strcmp(how, "alone") == 0) {
		open_device();
		run_process();
	} else if (argc == 2 && strcmp(how, "pair") == 0) {
		run_pair();
	} else if (argc == 3 && (is_first || strcmp(how, "second") == 0)) {
		threads = FEW;
		/* The device of the second process may connect to that of the first one. */
		if (is_first)
			open_device();
		other = meet_at(argv[2], is_first);
		MUST(other >= 0);
		if (!is_first)
			open_device();
		run_process();
	} else {
		fputs("usage: qp_crowd alone|pair|first PATH|second PATH\n", stderr);
		return 2;
	}
	return 0;
}
