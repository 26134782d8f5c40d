/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/rs_message.c: a peer that speaks the protocol wrongly. It is made of verbs,
 * and the rsocket that it attacks must end with an error, while its listener goes on. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>

#include "live.h"
#include "rs_wire.h"
#include "test.h"

#define PORT	  7177
#define REQUESTS  16
#define TARGET_AT 1024
#define DATA_AT	  2048

/* The attacker. */
struct attacker {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t memory[4096];
	struct rs_hello victim;
};

static struct attacker attacker;
static int listener, victim;

static struct sockaddr_in loopback(void)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(PORT),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int set_up(void **state)
{
	struct sockaddr_in at = loopback();

	if (live_set_up(state) != 0)
		return -1;
	victim = -1;
	memset(&attacker, 0, sizeof(attacker));
	listener = rsocket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(rbind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(rlisten(listener, 4), 0);
	return 0;
}

/* The listener still serves who is honest. */
static void be_honest(void)
{
	struct sockaddr_in at = loopback();
	const int s = rsocket(AF_INET, SOCK_STREAM, 0);
	char byte = 0;
	int child;

	assert_int_equal(rconnect(s, (struct sockaddr *)&at, sizeof(at)), 0);
	child = raccept(listener, NULL, NULL);
	assert_int_equal(rsend(s, "x", 1, 0), 1);
	assert_int_equal(rrecv(child, &byte, 1, 0), 1);
	assert_int_equal(byte, 'x');
	assert_int_equal(rclose(s), 0);
	assert_int_equal(rclose(child), 0);
}

static int tear_down(void **state)
{
	if (victim >= 0)
		assert_int_equal(rclose(victim), 0);
	rdma_destroy_qp(attacker.id);
	if (attacker.cq)
		ibv_destroy_cq(attacker.cq);
	if (attacker.mr)
		ibv_dereg_mr(attacker.mr);
	rdma_destroy_id(attacker.id);
	rdma_destroy_event_channel(attacker.channel);
	be_honest();
	assert_int_equal(rclose(listener), 0);
	return live_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

/* Make a correct hello; both regions are in the attacker's memory, behind what it sends. */
static struct rs_hello honest_hello(void)
{
	return (struct rs_hello){
		.credits = REQUESTS,
		.target = {.addr = (uintptr_t)attacker.memory + TARGET_AT,
			   .length = 2,
			   .key = attacker.mr->rkey},
		.data = {.addr = (uintptr_t)attacker.memory + DATA_AT,
			 .length = 64,
			 .key = attacker.mr->rkey},
	};
}

static enum rdma_cm_event_type next_event(void)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;

	assert_int_equal(rdma_get_cm_event(attacker.channel, &event), 0);
	type = event->event;
	if (type == RDMA_CM_EVENT_ESTABLISHED)
		(void)rs_wire_get_hello(event->param.conn.private_data,
					event->param.conn.private_data_len, &attacker.victim);
	rdma_ack_cm_event(event);
	return type;
}

static void create_queues(void)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = REQUESTS, .max_recv_wr = REQUESTS, .max_send_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_recv_wr wr = {0}, *bad;

	attacker.cq = ibv_create_cq(attacker.id->verbs, 2 * REQUESTS, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = attacker.cq;
	assert_int_equal(rdma_create_qp(attacker.id, NULL, &attr), 0);
	attacker.mr = ibv_reg_mr(attacker.id->pd, attacker.memory, sizeof(attacker.memory),
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	for (int i = 0; i < REQUESTS; i++)
		assert_int_equal(ibv_post_recv(attacker.id->qp, &wr, &bad), 0);
}

static void prepare(void)
{
	struct sockaddr_in to = loopback();

	attacker.channel = rdma_create_event_channel();
	assert_int_equal(rdma_create_id(attacker.channel, &attacker.id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(attacker.id, NULL, (struct sockaddr *)&to, 1000), 0);
	assert_int_equal(next_event(), RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(attacker.id, 1000), 0);
	assert_int_equal(next_event(), RDMA_CM_EVENT_ROUTE_RESOLVED);
	create_queues();
}

/* Connect with that hello. Return the event that ends it. */
static enum rdma_cm_event_type connect_with(const void *hello, uint8_t len)
{
	struct rdma_conn_param param = {.private_data = hello,
					.private_data_len = len,
					.rnr_retry_count = 7,
					.retry_count = 7};

	assert_int_equal(rdma_connect(attacker.id, &param), 0);
	return next_event();
}

static void connect_as(const struct rs_hello *hello)
{
	struct rs_hello_wire wire;

	rs_wire_put_hello(&wire, hello);
	assert_int_equal(connect_with(&wire, sizeof(wire)), RDMA_CM_EVENT_ESTABLISHED);
	victim = raccept(listener, NULL, NULL);
	assert_true(victim >= 0);
}

static void connect_honestly(void)
{
	struct rs_hello hello;

	prepare();
	hello = honest_hello();
	connect_as(&hello);
}

static void write_to(uint64_t addr, uint32_t key, uint32_t len, uint32_t imm)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)attacker.memory, .length = len, .lkey = attacker.mr->lkey};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.sg_list = &sge,
		.num_sge = len > 0,
		.imm_data = rte_cpu_to_be_32(imm),
		.wr.rdma = {.remote_addr = addr, .rkey = key},
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(attacker.id->qp, &wr, &bad), 0);
}

static void say(enum rs_op op, uint32_t value)
{
	write_to(0, 0, 0, rs_imm(op, value));
}

static void expect_error(int error)
{
	char byte;

	assert_int_equal(rrecv(victim, &byte, 1, 0), -1);
	assert_int_equal(errno, error);
	/* The error is reported once. After that the stream is at its end. */
	assert_int_equal(rrecv(victim, &byte, 1, 0), 0);
}

TEST(rs_listen__hello_of_another_version_is_rejected)
{
	struct rs_hello_wire wire;
	struct rs_hello hello;

	prepare();
	hello = honest_hello();
	rs_wire_put_hello(&wire, &hello);
	wire.version = 2;
	assert_int_equal(connect_with(&wire, sizeof(wire)), RDMA_CM_EVENT_REJECTED);
}

TEST(rs_listen__no_hello_is_rejected)
{
	prepare();
	assert_int_equal(connect_with("hello", 5), RDMA_CM_EVENT_REJECTED);
}

TEST(rs_message__data_that_was_not_promised)
{
	connect_honestly();
	say(RS_OP_DATA, attacker.victim.data.length * 2 + 1);
	expect_error(EPROTO);
}

TEST(rs_message__data_of_all_29_bits)
{
	connect_honestly();
	say(RS_OP_DATA, RS_IMM_VALUE);
	expect_error(EPROTO);
}

TEST(rs_message__data_of_no_bytes)
{
	connect_honestly();
	say(RS_OP_DATA, 0);
	expect_error(EPROTO);
}

TEST(rs_message__credits_that_the_peer_cannot_have)
{
	connect_honestly();
	say(RS_OP_GRANT, REQUESTS + 1);
	expect_error(EPROTO);
}

/* The second slot is free, the first has the window of the hello. */
TEST(rs_message__windows_into_slots_in_use)
{
	const struct rs_window window = {.addr = 1, .key = 2, .length = 3};

	connect_honestly();
	for (uint32_t slot = 0; slot < RS_TARGET_SLOTS; slot++) {
		const struct rs_window *target = &attacker.victim.target;

		rs_wire_put_window((struct rs_window_wire *)(void *)attacker.memory, &window,
				   rs_wire_is_big_endian());
		write_to(target->addr + (1 - slot) * sizeof(struct rs_window_wire), target->key,
			 sizeof(struct rs_window_wire), rs_imm(RS_OP_GRANT, REQUESTS));
	}
	expect_error(EPROTO);
}

TEST(rs_message__mapping_that_there_is_no_place_for)
{
	connect_honestly();
	say(RS_OP_IOMAP, 0);
	expect_error(EPROTO);
}

TEST(rs_message__unknown_kinds)
{
	connect_honestly();
	say(RS_OP_CONTROL, 99);
	expect_error(EPROTO);
}

TEST(rs_message__reserved_kinds)
{
	connect_honestly();
	say((enum rs_op)5, 0);
	expect_error(EPROTO);
}

TEST(rs_message__a_send_is_no_message)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;

	connect_honestly();
	assert_int_equal(ibv_post_send(attacker.id->qp, &wr, &bad), 0);
	expect_error(EPROTO);
}

TEST(rs_message__data_after_the_end)
{
	connect_honestly();
	say(RS_OP_CONTROL, RS_CONTROL_SHUTDOWN);
	say(RS_OP_DATA, 1);
	expect_error(EPROTO);
}

/* Writing anywhere but into what was granted fails, and ends the connection. */
TEST(rs_message__write_outside_of_the_ring)
{
	const struct rs_window *data = &attacker.victim.data;

	connect_honestly();
	write_to(data->addr + 2 * (uint64_t)data->length + 4096, data->key, 64,
		 rs_imm(RS_OP_DATA, 64));
	expect_error(ECONNRESET);
}

/* A window that leads nowhere is the peer's own loss. */
TEST(rs_message__window_that_is_not_the_peers)
{
	struct rs_hello hello;
	char byte = 0;

	prepare();
	hello = honest_hello();
	hello.data.key ^= 1;
	connect_as(&hello);
	assert_int_equal(rsend(victim, &byte, 1, 0), 1);
	assert_int_equal(rrecv(victim, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
}

TEST(rs_message__peer_that_vanishes)
{
	connect_honestly();
	assert_int_equal(rdma_disconnect(attacker.id), 0);
	expect_error(ECONNRESET);
}

static void *say_after_data(void *arg)
{
	volatile const uint8_t *first = attacker.memory + DATA_AT;

	(void)arg;
	while (*first == 0)
		usleep(1000);
	say(RS_OP_CONTROL, 99);
	return NULL;
}

/* A send that has sent a part tells nothing of the error, so it is told next. */
TEST(rsend__error_after_a_part_stays_pending)
{
	uint8_t data[128];
	pthread_t thread;

	connect_honestly();
	memset(data, 0xff, sizeof(data));
	assert_int_equal(pthread_create(&thread, NULL, say_after_data, NULL), 0);
	/* The window has 64 bytes. */
	assert_int_equal(rsend(victim, data, sizeof(data), 0), 64);
	pthread_join(thread, NULL);
	expect_error(EPROTO);
}

/* The program polls, and never sleeps. */
TEST(rs_wait_progress__tells_of_a_peer_that_vanishes)
{
	ssize_t rc = -1;
	char byte;

	connect_honestly();
	write_to(attacker.victim.data.addr, attacker.victim.data.key, 1, rs_imm(RS_OP_DATA, 1));
	assert_int_equal(rrecv(victim, &byte, 1, 0), 1);
	assert_int_equal(rdma_disconnect(attacker.id), 0);
	errno = EAGAIN;
	for (int ms = 0; ms < 5000 && rc < 0 && errno == EAGAIN; ms++) {
		rc = rrecv(victim, &byte, 1, MSG_DONTWAIT);
		usleep(1000);
	}
	assert_int_equal(rc, -1);
	assert_int_equal(errno, ECONNRESET);
}

TEST(rs_message__keepalive_and_credits_change_nothing)
{
	char text[2] = {0};

	connect_honestly();
	say(RS_OP_CONTROL, RS_CONTROL_KEEPALIVE);
	say(RS_OP_GRANT, REQUESTS);
	attacker.memory[0] = 'a';
	write_to(attacker.victim.data.addr, attacker.victim.data.key, 1, rs_imm(RS_OP_DATA, 1));
	assert_int_equal(rrecv(victim, text, sizeof(text), 0), 1);
	assert_string_equal(text, "a");
	say(RS_OP_CONTROL, RS_CONTROL_DISCONNECT);
	assert_int_equal(rrecv(victim, text, 1, 0), 0);
}
