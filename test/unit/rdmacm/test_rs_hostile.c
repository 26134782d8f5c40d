/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/rs_link.c and rs_connect.c: a peer that speaks the protocol wrongly, or
 * that is slow. It is made of verbs. The rsocket that it attacks must end with an error, while its
 * listener goes on. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>

#include "live.h"
#include "rs.h"
#include "test.h"

#define PORT	  7177
#define REQUESTS  16
#define TARGET_AT 1024
#define DATA_AT	  2048
#define SECONDS	  60 /* a wait that takes longer never ends */

/* The attacker. */
struct attacker {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t memory[4096];
	struct rs_hello victim;
	bool is_slow; /* it posts its receive requests later */
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
	if (attacker.id->qp)
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

static void post_receives(void)
{
	struct ibv_recv_wr wr = {0}, *bad;

	for (int i = 0; i < REQUESTS; i++)
		assert_int_equal(ibv_post_recv(attacker.id->qp, &wr, &bad), 0);
}

static void create_queues(void)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = REQUESTS, .max_recv_wr = REQUESTS, .max_send_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	attacker.cq = ibv_create_cq(attacker.id->verbs, 2 * REQUESTS, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = attacker.cq;
	assert_int_equal(rdma_create_qp(attacker.id, NULL, &attr), 0);
	attacker.mr = ibv_reg_mr(attacker.id->pd, attacker.memory, sizeof(attacker.memory),
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!attacker.is_slow)
		post_receives();
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

static void ask_with(const void *hello, uint8_t len)
{
	struct rdma_conn_param param = {.private_data = hello,
					.private_data_len = len,
					.rnr_retry_count = 7,
					.retry_count = 7};

	assert_int_equal(rdma_connect(attacker.id, &param), 0);
}

/* Connect with that hello. Return the event that ends it. */
static enum rdma_cm_event_type connect_with(const void *hello, uint8_t len)
{
	ask_with(hello, len);
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
	char byte;

	connect_honestly();
	assert_int_equal(rdma_disconnect(attacker.id), 0);
	assert_int_equal(rrecv(victim, &byte, 1, MSG_PEEK), -1);
	assert_int_equal(errno, ECONNRESET);
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

/* Return the immediate data of the next message, except for grants. */
static uint32_t next_message(void)
{
	struct ibv_wc wc;
	uint32_t imm;

	alarm(SECONDS);
	do {
		while (ibv_poll_cq(attacker.cq, 1, &wc) == 0)
			usleep(1000);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		imm = rte_be_to_cpu_32(wc.imm_data);
	} while (!(wc.opcode & IBV_WC_RECV) || imm >> RS_IMM_SHIFT == RS_OP_GRANT);
	alarm(0);
	return imm;
}

static void *close_victim(void *arg)
{
	(void)arg;
	MUST(rclose(victim) == 0);
	return NULL;
}

static void *shut_victim(void *arg)
{
	MUST(rshutdown(victim, *(int *)arg) == 0);
	return NULL;
}

/* Run a call on the victim in a thread, until it sleeps or has closed the victim. */
static pthread_t start(void *(*call)(void *arg), void *arg, struct rsocket *s)
{
	bool sleeps = false;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, call, arg), 0);
	alarm(SECONDS);
	while (!sleeps) {
		usleep(1000);
		pthread_mutex_lock(&s->lock);
		sleeps = !LIST_EMPTY(&s->wakers) || s->closed || s->state == RS_ENDED;
		pthread_mutex_unlock(&s->lock);
	}
	alarm(0);
	return thread;
}

static pthread_t start_close(void)
{
	struct rsocket *s = rs_table_get(victim);
	const pthread_t thread = start(close_victim, NULL, s);

	rs_table_put(s);
	return thread;
}

static void end_close(pthread_t thread)
{
	assert_int_equal(pthread_join(thread, NULL), 0);
	victim = -1;
}

static void connect_slowly(void)
{
	attacker.is_slow = true;
	connect_honestly();
}

/* The peer has no receive request, so it has not acknowledged the last bytes. */
TEST(rclose__waits_after_both_sides_have_shut_down)
{
	struct pollfd poll = {.events = POLLIN | POLLOUT};
	pthread_t thread;
	char byte;

	connect_slowly();
	assert_int_equal(rsend(victim, "last", 4, 0), 4);
	assert_int_equal(rshutdown(victim, SHUT_WR), 0);
	say(RS_OP_CONTROL, RS_CONTROL_SHUTDOWN);
	assert_int_equal(rrecv(victim, &byte, 1, 0), 0);
	assert_int_equal(rsend(victim, &byte, 1, 0), -1);
	assert_int_equal(errno, EPIPE);
	poll.fd = victim;
	assert_int_equal(rpoll(&poll, 1, 0), 1);
	assert_int_equal(poll.revents, POLLIN | POLLOUT | POLLHUP);
	thread = start_close();
	post_receives();
	assert_int_equal(next_message(), rs_imm(RS_OP_DATA, 4));
	assert_int_equal(next_message(), rs_imm(RS_OP_CONTROL, RS_CONTROL_SHUTDOWN));
	assert_memory_equal(attacker.memory + DATA_AT, "last", 4);
	end_close(thread);
}

/* A direction that the peer has shut down first does not make rshutdown wait. */
TEST(rshutdown__after_the_peers_does_not_wait)
{
	pthread_t thread;
	char byte;

	connect_slowly();
	say(RS_OP_CONTROL, RS_CONTROL_SHUTDOWN);
	assert_int_equal(rrecv(victim, &byte, 1, 0), 0);
	assert_int_equal(rsend(victim, "last", 4, 0), 4);
	assert_int_equal(rshutdown(victim, SHUT_WR), 0);
	thread = start_close();
	post_receives();
	assert_int_equal(next_message(), rs_imm(RS_OP_DATA, 4));
	assert_int_equal(next_message(), rs_imm(RS_OP_CONTROL, RS_CONTROL_SHUTDOWN));
	end_close(thread);
}

TEST(rclose__waits_though_the_peer_shuts_down_meanwhile)
{
	bool is_told = false;
	struct rsocket *s;
	pthread_t thread;

	connect_slowly();
	assert_int_equal(rsend(victim, "last", 4, 0), 4);
	s = rs_table_get(victim);
	thread = start(close_victim, NULL, s);
	say(RS_OP_CONTROL, RS_CONTROL_SHUTDOWN);
	while (!is_told) {
		usleep(1000);
		pthread_mutex_lock(&s->lock);
		is_told = (s->shut & RS_SHUT_PEER) != 0;
		pthread_mutex_unlock(&s->lock);
	}
	rs_table_put(s);
	post_receives();
	assert_int_equal(next_message(), rs_imm(RS_OP_DATA, 4));
	assert_int_equal(next_message(), rs_imm(RS_OP_CONTROL, RS_CONTROL_DISCONNECT));
	end_close(thread);
}

/* Connect, but do not take the acceptance yet, so that no RTU is sent. */
static void connect_late(void)
{
	struct rs_hello_wire wire;
	struct rs_hello hello;

	prepare();
	hello = honest_hello();
	rs_wire_put_hello(&wire, &hello);
	ask_with(&wire, sizeof(wire));
	victim = raccept(listener, NULL, NULL);
	assert_true(victim >= 0);
}

TEST(rclose__directly_after_raccept)
{
	pthread_t thread;

	connect_late();
	thread = start_close();
	assert_int_equal(next_event(), RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(next_message(), rs_imm(RS_OP_CONTROL, RS_CONTROL_DISCONNECT));
	end_close(thread);
}

static void shut_directly_after_raccept(int how, enum rs_control told)
{
	struct rsocket *s;
	pthread_t thread;

	connect_late();
	s = rs_table_get(victim);
	thread = start(shut_victim, &how, s);
	rs_table_put(s);
	assert_int_equal(next_event(), RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(next_message(), rs_imm(RS_OP_CONTROL, told));
	assert_int_equal(pthread_join(thread, NULL), 0);
}

TEST(rshutdown__directly_after_raccept)
{
	shut_directly_after_raccept(SHUT_WR, RS_CONTROL_SHUTDOWN);
}

TEST(rshutdown__both_directions_directly_after_raccept)
{
	shut_directly_after_raccept(SHUT_RDWR, RS_CONTROL_DISCONNECT);
}

TEST(rrecv__peer_that_closes_directly_after_raccept)
{
	struct pollfd acceptance = {.events = POLLIN};
	char byte;

	connect_late();
	acceptance.fd = attacker.channel->fd;
	assert_int_equal(poll(&acceptance, 1, SECONDS * 1000), 1);
	rdma_destroy_qp(attacker.id);
	assert_int_equal(rdma_reject(attacker.id, NULL, 0), 0);
	assert_int_equal(rrecv(victim, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
}

/* Listen as the attacker. */
static struct rdma_cm_id *listen_beside(void)
{
	struct sockaddr_in at = loopback();
	struct rdma_cm_id *id;

	at.sin_port = htons(PORT + 1);
	attacker.channel = rdma_create_event_channel();
	assert_int_equal(rdma_create_id(attacker.channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&at), 0);
	assert_int_equal(rdma_listen(id, 1), 0);
	return id;
}

/* Connect an rsocket without waiting, until the attacker has its request. */
static int ask_attacker(void)
{
	struct pollfd request = {.fd = attacker.channel->fd, .events = POLLIN};
	struct pollfd answer = {.events = POLLOUT};
	struct sockaddr_in to = loopback();
	const int s = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct rdma_cm_event *event;

	to.sin_port = htons(PORT + 1);
	assert_int_equal(rconnect(s, (struct sockaddr *)&to, sizeof(to)), -1);
	assert_int_equal(errno, EINPROGRESS);
	answer.fd = s;
	alarm(SECONDS);
	while (poll(&request, 1, 1) == 0)
		assert_int_equal(rpoll(&answer, 1, 0), 0);
	alarm(0);
	assert_int_equal(rdma_get_cm_event(attacker.channel, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	attacker.id = event->id;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	return s;
}

static void accept_as_attacker(void)
{
	struct rs_hello_wire wire;
	struct rs_hello hello;
	struct rdma_conn_param param = {.private_data = &wire, .private_data_len = sizeof(wire)};

	create_queues();
	hello = honest_hello();
	rs_wire_put_hello(&wire, &hello);
	assert_int_equal(rdma_accept(attacker.id, &param), 0);
}

/* Wait until a connected or connecting rsocket has an error. */
static int wait_for_error(int s)
{
	struct pollfd poll = {.fd = s, .events = POLLIN};
	socklen_t len = sizeof(int);
	int error = 0;

	assert_int_equal(rpoll(&poll, 1, -1), 1);
	assert_int_equal(rgetsockopt(s, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	return error;
}

/* The peer accepts and closes, before the program takes the acceptance. Its REJ may come before or
 * after the RTU. */
TEST(rconnect__peer_that_closes_at_once)
{
	struct rdma_cm_id *listening = listen_beside();
	const int s = ask_attacker();

	accept_as_attacker();
	rdma_destroy_qp(attacker.id);
	assert_int_equal(rdma_destroy_id(attacker.id), 0);
	attacker.id = listening;
	assert_int_equal(wait_for_error(s), ECONNRESET);
	assert_int_equal(rclose(s), 0);
}
