/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * As many programs as a port takes, all attached at once:
 *
 *   members FILE COUNT TOTAL [full | SECONDS]
 *
 * Starts COUNT processes, each with a device of its own, of the TOTAL that meet in FILE. They form
 * a ring. In each round every one writes a block into the memory of the next, and checks the block
 * that it got. With `full`, one more process must be refused while all are attached.
 *
 * With SECONDS each writes blocks for so long instead, and polls all the time. The program prints
 * how many blocks a second all members wrote, how many the slowest, and the longest time in ms that
 * a member waited for a completion.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "must.h"
#include "raise_qp.h"

#define MEMBERS_MAX 512
#define WORDS	    512 /* of a block: more than one packet */
#define ROUNDS	    3
#define DEPTH	    16	  /* blocks at once, if it measures */
#define SECONDS	    120	  /* a process that takes longer hangs */
#define PAUSE_US    20000 /* hundreds of processes must leave each other the CPUs */
#define PSN	    77
#define ACCESS	    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define STAGES	    (2 + 2 * ROUNDS)

/* The others must know this of a member. */
struct name {
	union ibv_gid gid;
	uint64_t address;
	uint32_t rkey;
	uint32_t from_qpn; /* of the queue pair that the one before writes to */
	uint32_t to_qpn;
};

static struct table {
	uint32_t members;	  /* atomic: numbers that were taken */
	uint32_t reached[STAGES]; /* atomic: members that have reached each stage */
	struct name names[MEMBERS_MAX];
	struct share {
		uint64_t blocks;  /* that this member has written */
		uint64_t wait_ns; /* its longest wait */
	} shares[MEMBERS_MAX];
} * table;

static uint32_t total;
static double seconds; /* to write for; 0: rounds instead */

struct member {
	uint32_t number;
	uint32_t stage;
	struct ibv_cq *cq;
	struct ibv_qp *from, *to;
	struct ibv_mr *mr;
	uint64_t sent[WORDS], got[WORDS];
};

static void wait_for_stage(uint32_t stage)
{
	while (__atomic_load_n(&table->reached[stage], __ATOMIC_ACQUIRE) < total)
		usleep(PAUSE_US);
}

/* Wait until all have come this far. */
static void meet(struct member *member)
{
	__atomic_fetch_add(&table->reached[member->stage], 1, __ATOMIC_ACQ_REL);
	wait_for_stage(member->stage++);
}

static void open_member(struct member *member)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct name *name = &table->names[member->number];
	struct ibv_context *context;
	struct ibv_pd *pd;

	MUST(list && list[0]);
	context = ibv_open_device(list[0]);
	MUST(context && ibv_query_gid(context, 1, 0, &name->gid) == 0);
	pd = ibv_alloc_pd(context);
	member->cq = ibv_create_cq(context, 2 * DEPTH, NULL, NULL, 0);
	MUST(pd && member->cq);
	member->from = raise_create(pd, IBV_QPT_RC, member->cq, member->cq, NULL, DEPTH);
	member->to = raise_create(pd, IBV_QPT_RC, member->cq, member->cq, NULL, DEPTH);
	member->mr = ibv_reg_mr(pd, member, sizeof(*member), ACCESS);
	MUST(member->from && member->to && member->mr);
	name->address = (uintptr_t)member->got;
	name->rkey = member->mr->rkey;
	name->from_qpn = member->from->qp_num;
	name->to_qpn = member->to->qp_num;
}

static void connect_qp(struct ibv_qp *qp, const struct name *peer, uint32_t qpn)
{
	struct ibv_qp_attr attr = raise_attr(&peer->gid, qpn, PSN);

	attr.qp_access_flags = ACCESS;
	attr.timeout = 20; /* 4 s: a peer may have to wait long for a CPU */
	MUST(raise_qp(qp, &attr) == 0);
}

static const struct name *neighbour(const struct member *member, uint32_t distance)
{
	return &table->names[(member->number + distance) % total];
}

static uint64_t word_of(uint32_t number, uint32_t round, uint32_t i)
{
	return (uint64_t)number << 48 | (uint64_t)round << 32 | i;
}

static void post_block(struct member *member)
{
	struct ibv_sge sge = {(uintptr_t)member->sent, sizeof(member->sent), member->mr->lkey};
	const struct name *next = neighbour(member, 1);
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .wr.rdma = {next->address, next->rkey}},
			   *bad;

	MUST(ibv_post_send(member->to, &wr, &bad) == 0);
}

static void write_block(struct member *member, uint32_t round)
{
	struct ibv_wc wc;
	int n;

	for (uint32_t i = 0; i < WORDS; i++)
		member->sent[i] = word_of(member->number, round, i);
	post_block(member);
	while ((n = ibv_poll_cq(member->cq, 1, &wc)) == 0)
		usleep(PAUSE_US);
	if (n == 1 && wc.status != IBV_WC_SUCCESS)
		fprintf(stderr, "member %u, round %u: %s\n", member->number, round,
			ibv_wc_status_str(wc.status));
	MUST(n == 1 && wc.status == IBV_WC_SUCCESS);
}

static void check_block(const struct member *member, uint32_t round)
{
	const uint32_t before = (member->number + total - 1) % total;

	for (uint32_t i = 0; i < WORDS; i++)
		MUST(((const volatile uint64_t *)member->got)[i] == word_of(before, round, i));
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Take completions, and post as many blocks again. Returns how many. */
static uint32_t take_and_post(struct member *member)
{
	struct ibv_wc wc[DEPTH];
	const int n = ibv_poll_cq(member->cq, DEPTH, wc);

	MUST(n >= 0);
	for (int i = 0; i < n; i++) {
		MUST(wc[i].status == IBV_WC_SUCCESS);
		post_block(member);
	}
	return (uint32_t)n;
}

/* Write for some time, and measure. */
static void write_on(struct member *member)
{
	struct share *share = &table->shares[member->number];
	uint64_t time_ns = now_ns(), found_ns = time_ns;
	const uint64_t end_ns = time_ns + (uint64_t)(seconds * 1e9);

	for (uint32_t i = 0; i < DEPTH; i++)
		post_block(member);
	while (time_ns < end_ns) {
		const uint32_t n = take_and_post(member);

		time_ns = now_ns();
		if (n == 0)
			continue;
		if (time_ns - found_ns > share->wait_ns)
			share->wait_ns = time_ns - found_ns;
		found_ns = time_ns;
		share->blocks += n;
	}
	if (time_ns - found_ns > share->wait_ns)
		share->wait_ns = time_ns - found_ns;
}

static void print_shares(void)
{
	uint64_t sum = 0, least = UINT64_MAX, wait_ns = 0;

	for (uint32_t i = 0; i < total; i++) {
		const struct share *share = &table->shares[i];

		sum += share->blocks;
		least = share->blocks < least ? share->blocks : least;
		wait_ns = share->wait_ns > wait_ns ? share->wait_ns : wait_ns;
	}
	printf("%.0f %.0f %.2f\n", (double)sum / seconds, (double)least / seconds,
	       (double)wait_ns / 1e6);
}

static void be_member(void)
{
	static struct member member;

	alarm(SECONDS);
	member.number = __atomic_fetch_add(&table->members, 1, __ATOMIC_ACQ_REL);
	MUST(member.number < total);
	open_member(&member);
	meet(&member);
	connect_qp(member.from, neighbour(&member, total - 1),
		   neighbour(&member, total - 1)->to_qpn);
	connect_qp(member.to, neighbour(&member, 1), neighbour(&member, 1)->from_qpn);
	meet(&member);
	if (seconds > 0) {
		write_on(&member);
		meet(&member);
		exit(0);
	}
	for (uint32_t round = 0; round < ROUNDS; round++) {
		write_block(&member, round);
		meet(&member);
		check_block(&member, round);
		meet(&member);
	}
	exit(0);
}

/* A process that gets no slot says why, and ends with 1. */
static void be_refused(void)
{
	int status;
	pid_t child;

	wait_for_stage(0);
	child = fork();
	MUST(child >= 0);
	if (child == 0) {
		struct ibv_device **list = ibv_get_device_list(NULL);

		_exit(list && list[0] ? 0 : 3);
	}
	MUST(waitpid(child, &status, 0) == child);
	MUST(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	printf("one more program than %u is refused\n", total);
}

static void map_table(const char *path)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	MUST(fd >= 0 && ftruncate(fd, sizeof(*table)) == 0);
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(table != MAP_FAILED);
}

int main(int argc, char **argv)
{
	uint32_t count, failed = 0;
	int status;

	if (argc < 4) {
		fputs("usage: members FILE COUNT TOTAL [full | SECONDS]\n", stderr);
		return 2;
	}
	count = (uint32_t)strtoul(argv[2], NULL, 10);
	total = (uint32_t)strtoul(argv[3], NULL, 10);
	MUST(count <= total && total <= MEMBERS_MAX);
	seconds = argc > 4 ? strtod(argv[4], NULL) : 0;
	map_table(argv[1]);
	alarm(SECONDS);
	for (uint32_t i = 0; i < count; i++) {
		const pid_t child = fork();

		MUST(child >= 0);
		if (child == 0)
			be_member();
	}
	if (argc > 4 && strcmp(argv[4], "full") == 0)
		be_refused();
	for (uint32_t i = 0; i < count; i++) {
		MUST(wait(&status) > 0);
		failed += status != 0;
	}
	if (seconds > 0)
		print_shares();
	if (failed > 0)
		fprintf(stderr, "%u of %u members failed\n", failed, count);
	return failed > 0;
}
