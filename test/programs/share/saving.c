/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server that forks to save its memory, as databases do, while a peer goes on writing into it:
 *
 *   saving alone    the peer is a queue pair of the same process saving pair     the peer is a
 *   process with a device of its own
 *
 * Each child must see every byte as it was when the server forked. The server must see every byte
 * that was written later.
 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "must.h"
#include "raise_qp.h"

#define PAGE	4096
#define BLOCKS	1024
#define BYTES	((size_t)BLOCKS * PAGE)
#define SAVES	12
#define LOOKS	4  /* how often each child checks the whole memory */
#define BURST	16 /* blocks written at once */
#define PSN	100
#define SECONDS 120 /* a process that takes longer is taken to hang, and killed */
#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* The message that each side sends to the other. */
struct name {
	union ibv_gid gid;
	uint64_t address;
	uint32_t qpn, rkey;
};

struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
	struct name name;
};

static void make_side(struct side *side, struct ibv_context *context)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = BURST,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	side->context = context;
	MUST(ibv_query_gid(context, 1, 0, &side->name.gid) == 0);
	side->pd = ibv_alloc_pd(context);
	side->cq = ibv_create_cq(context, BURST, NULL, NULL, 0);
	MUST(side->pd && side->cq);
	init.send_cq = init.recv_cq = side->cq;
	side->qp = ibv_create_qp(side->pd, &init);
	side->memory =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(side->qp && side->memory != MAP_FAILED);
	side->mr = ibv_reg_mr(side->pd, side->memory, BYTES, ACCESS);
	MUST(side->mr);
	side->name.address = (uintptr_t)side->memory;
	side->name.qpn = side->qp->qp_num;
	side->name.rkey = side->mr->rkey;
}

static void connect_side(struct side *side, const struct name *peer)
{
	struct ibv_qp_attr attr = raise_attr(&peer->gid, peer->qpn, PSN);

	attr.qp_access_flags = ACCESS;
	attr.timeout = 17;
	MUST(raise_qp(side->qp, &attr) == 0);
}

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	MUST(list && list[0]);
	context = ibv_open_device(list[0]);
	MUST(context);
	return context;
}

/* Each word of a block contains the block's number and the generation. */
static uint64_t word_of(unsigned int block, uint32_t generation)
{
	return (uint64_t)generation << 32 | block;
}

static void fill(uint8_t *memory, uint32_t generation)
{
	for (unsigned int block = 0; block < BLOCKS; block++) {
		uint64_t *words = (uint64_t *)(void *)(memory + (size_t)block * PAGE);

		for (unsigned int i = 0; i < PAGE / 8; i++)
			words[i] = word_of(block, generation);
	}
}

static void expect(const uint8_t *memory, uint32_t generation)
{
	for (unsigned int block = 0; block < BLOCKS; block++) {
		const uint64_t *words =
			(const uint64_t *)(const void *)(memory + (size_t)block * PAGE);

		for (unsigned int i = 0; i < PAGE / 8; i++)
			MUST(words[i] == word_of(block, generation));
	}
}

/* ---- the peer ---- */

/* Write all blocks of the next generation. */
static void write_all(struct side *side, const struct name *server, uint32_t generation)
{
	fill(side->memory, generation);
	for (unsigned int block = 0; block < BLOCKS; block += BURST) {
		struct ibv_wc wc;

		for (unsigned int i = 0; i < BURST; i++) {
			const size_t offset = (size_t)(block + i) * PAGE;
			struct ibv_sge sge = {(uintptr_t)side->memory + offset, PAGE,
					      side->mr->lkey};
			struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
						 .sg_list = &sge,
						 .num_sge = 1,
						 .wr.rdma = {server->address + offset,
							     server->rkey}},
					   *bad;

			MUST(ibv_post_send(side->qp, &wr, &bad) == 0);
		}
		for (unsigned int i = 0; i < BURST;) {
			const int n = ibv_poll_cq(side->cq, 1, &wc);

			MUST(n >= 0 && (n == 0 || wc.status == IBV_WC_SUCCESS));
			i += (unsigned int)n;
		}
	}
}

/* Write a generation whenever the server asks for it. */
static void run_peer(int socket)
{
	static struct side side;
	struct name server;
	uint32_t generation;

	make_side(&side, open_device());
	MUST(send(socket, &side.name, sizeof(side.name), 0) == sizeof(side.name));
	MUST(recv(socket, &server, sizeof(server), MSG_WAITALL) == sizeof(server));
	connect_side(&side, &server);
	while (recv(socket, &generation, sizeof(generation), MSG_WAITALL) == sizeof(generation)) {
		write_all(&side, &server, generation);
		MUST(send(socket, &generation, sizeof(generation), 0) == sizeof(generation));
	}
}

/* ---- the server ---- */

static struct side server, peer; /* the peer is here with "alone" */
static int to_peer = -1;

static void begin_write(uint32_t generation)
{
	if (to_peer >= 0)
		MUST(send(to_peer, &generation, sizeof(generation), 0) == sizeof(generation));
	else
		write_all(&peer, &server.name, generation);
}

static void end_write(uint32_t generation)
{
	uint32_t written = generation;

	if (to_peer >= 0)
		MUST(recv(to_peer, &written, sizeof(written), MSG_WAITALL) == sizeof(written));
	MUST(written == generation);
}

/* Check the memory before, during and after the peer's writes to the parent's memory. */
static void save(uint32_t generation, int parent)
{
	char word;

	alarm(SECONDS);
	for (int i = 0; i < LOOKS; i++) {
		if (i == LOOKS - 1)
			MUST(read(parent, &word, 1) == 1);
		expect(server.memory, generation);
	}
	_exit(0);
}

static void serve(void)
{
	begin_write(1);
	end_write(1);
	for (uint32_t generation = 1; generation <= SAVES; generation++) {
		int status, ends[2];
		pid_t child;

		expect(server.memory, generation);
		MUST(pipe(ends) == 0);
		child = fork();
		MUST(child >= 0);
		if (child == 0)
			save(generation, ends[0]);
		begin_write(generation + 1);
		end_write(generation + 1);
		MUST(write(ends[1], "", 1) == 1);
		MUST(waitpid(child, &status, 0) == child && status == 0);
		close(ends[0]);
		close(ends[1]);
	}
	expect(server.memory, SAVES + 1);
	printf("%d saves of %zu bytes while a peer overwrote all of them\n", SAVES, BYTES);
}

static void start_pair(void)
{
	struct name name;
	int ends[2];
	pid_t child;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	child = fork();
	MUST(child >= 0);
	close(ends[child != 0]);
	alarm(SECONDS);
	if (child == 0) {
		run_peer(ends[1]);
		exit(0);
	}
	to_peer = ends[0];
	make_side(&server, open_device());
	MUST(recv(to_peer, &name, sizeof(name), MSG_WAITALL) == sizeof(name));
	connect_side(&server, &name);
	MUST(send(to_peer, &server.name, sizeof(server.name), 0) == sizeof(server.name));
}

int main(int argc, char **argv)
{
	if (argc != 2 || (strcmp(argv[1], "alone") != 0 && strcmp(argv[1], "pair") != 0)) {
		fputs("usage: saving alone|pair\n", stderr);
		return 2;
	}
	MUST(ibv_fork_init() == 0);
	alarm(SECONDS);
	if (strcmp(argv[1], "alone") == 0) {
		make_side(&server, open_device());
		make_side(&peer, server.context);
		connect_side(&server, &peer.name);
		connect_side(&peer, &server.name);
	} else {
		start_pair();
	}
	serve();
	return 0;
}
