/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of both sides of a connection in one process, on a real device without the address. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include "live.h"
#include "test.h"

#define PORT 7175

TEST_FIXTURE(live_set_up, live_tear_down);

static struct sockaddr_in loopback(void)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(PORT),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Take the next event, which must be of this type. */
static struct rdma_cm_id *expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
	id = event->id;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	return id;
}

static struct rdma_cm_id *resolve(struct rdma_event_channel *channel)
{
	struct sockaddr_in to = loopback();
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
	assert_ptr_equal(expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED), id);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	assert_ptr_equal(expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED), id);
	return id;
}

TEST(live__nobody_listens_is_rejected)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = {.qp_num = 0x1234};
	struct rdma_cm_id *id = resolve(channel);

	assert_int_equal(rdma_connect(id, &param), 0);
	assert_ptr_equal(expect(channel, RDMA_CM_EVENT_REJECTED), id);
	assert_int_equal(rdma_connect(id, &param), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

/* Queue pairs that are the program's own: CONNECT_RESPONSE, rdma_establish. */
TEST(live__loopback_reaches_the_hosts_own_listener)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = {
		.qp_num = 0x1234, .private_data = "hello", .private_data_len = 5};
	struct sockaddr_in at = loopback();
	struct rdma_cm_id *listener, *second, *active, *passive;

	assert_int_equal(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(listener, (struct sockaddr *)&at), 0);
	assert_int_equal(rdma_listen(listener, 4), 0);
	assert_int_equal(rdma_create_id(channel, &second, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(second, (struct sockaddr *)&at), -1);
	assert_int_equal(errno, EADDRINUSE);
	active = resolve(channel);
	assert_int_equal(rdma_connect(active, &param), 0);
	passive = expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	param.qp_num = 0x5678;
	assert_int_equal(rdma_accept(passive, &param), 0);
	assert_ptr_equal(expect(channel, RDMA_CM_EVENT_CONNECT_RESPONSE), active);
	assert_int_equal(rdma_establish(active), 0);
	assert_ptr_equal(expect(channel, RDMA_CM_EVENT_ESTABLISHED), passive);
	assert_int_equal(rdma_disconnect(active), 0);
	assert_ptr_equal(expect(channel, RDMA_CM_EVENT_DISCONNECTED), passive);
	assert_int_equal(rdma_disconnect(passive), 0);
	assert_ptr_equal(expect(channel, RDMA_CM_EVENT_DISCONNECTED), active);
	assert_int_equal(rdma_destroy_id(active), 0);
	assert_int_equal(rdma_destroy_id(passive), 0);
	assert_int_equal(rdma_destroy_id(second), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(channel);
}

/* Return parameters with another QPN each time: a number just used would belong to a stale
 * connection. */
static struct rdma_conn_param next_param(void)
{
	static uint32_t qp_num = 0x2000;

	return (struct rdma_conn_param){.qp_num = __atomic_add_fetch(&qp_num, 1, __ATOMIC_RELAXED)};
}

/* Take the next event of a non-blocking channel, as programs with a loop of poll(2) do. */
static struct rdma_cm_id *poll_event(struct rdma_event_channel *channel,
				     enum rdma_cm_event_type type)
{
	struct pollfd poll_fd = {.fd = channel->fd, .events = POLLIN};

	assert_int_equal(poll(&poll_fd, 1, 10000), 1);
	return expect(channel, type);
}

/* A program that sleeps in poll(2) alone is woken all the same. */
TEST(live__poll_is_enough)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = next_param();
	struct rdma_cm_id *listener, *active, *passive;
	struct sockaddr_in at = loopback();

	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(listener, (struct sockaddr *)&at), 0);
	assert_int_equal(rdma_listen(listener, 4), 0);
	assert_int_equal(rdma_create_id(channel, &active, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(active, NULL, (struct sockaddr *)&at, 1000), 0);
	poll_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(active, 1000), 0);
	poll_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_connect(active, &param), 0);
	passive = poll_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	usleep(100000);
	param = next_param();
	assert_int_equal(rdma_accept(passive, &param), 0);
	poll_event(channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(rdma_establish(active), 0);
	poll_event(channel, RDMA_CM_EVENT_ESTABLISHED);
	usleep(100000);
	assert_int_equal(rdma_disconnect(passive), 0);
	assert_ptr_equal(poll_event(channel, RDMA_CM_EVENT_DISCONNECTED), active);
	assert_int_equal(rdma_destroy_id(active), 0);
	assert_int_equal(rdma_destroy_id(passive), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(channel);
}

#define CLIENTS	 4
#define ATTEMPTS 100
#define STEPS	 6

static bool closing;

/* Threads may not assert: MUST ends the program. An id that is destroyed while a thread still takes
 * its events is the program's fault, so each has a channel of its own. */
static void attempt(struct rdma_event_channel *channel, unsigned int steps)
{
	struct rdma_conn_param param = next_param();
	struct sockaddr_in to = loopback();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	MUST(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	for (unsigned int step = 0; step < steps; step++) {
		if (step == 0)
			MUST(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000) == 0);
		else if (step == 2)
			MUST(rdma_resolve_route(id, 1000) == 0);
		else if (step == 4)
			MUST(rdma_connect(id, &param) == 0);
		if (step % 2 == 0)
			continue;
		MUST(rdma_get_cm_event(channel, &event) == 0);
		if (event->event == RDMA_CM_EVENT_CONNECT_RESPONSE)
			(void)rdma_establish(id);
		MUST(rdma_ack_cm_event(event) == 0);
	}
	MUST(rdma_destroy_id(id) == 0);
}

static void *run_client(void *arg)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	unsigned int seed = (unsigned int)(uintptr_t)arg;

	MUST(channel);
	for (int i = 0; i < ATTEMPTS; i++)
		attempt(channel, (unsigned int)rand_r(&seed) % (STEPS + 1));
	rdma_destroy_event_channel(channel);
	return NULL;
}

static void answer(struct rdma_cm_id *id, unsigned int *seed)
{
	struct rdma_conn_param param = next_param();

	switch (rand_r(seed) % 3) {
	case 0:
		(void)rdma_reject(id, NULL, 0);
		break;
	case 1:
		(void)rdma_accept(id, &param);
		break;
	default:
		break;
	}
	MUST(rdma_destroy_id(id) == 0);
}

static void *run_server(void *arg)
{
	struct rdma_event_channel *channel = arg;
	struct pollfd poll_fd = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;
	unsigned int seed = 99;

	while (!__atomic_load_n(&closing, __ATOMIC_ACQUIRE)) {
		if (poll(&poll_fd, 1, 10) != 1 || rdma_get_cm_event(channel, &event) != 0)
			continue;
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			answer(event->id, &seed);
		MUST(rdma_ack_cm_event(event) == 0);
	}
	return NULL;
}

/* Ids that end in every state, while other threads connect. */
TEST(live__ids_end_at_any_time)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in at = loopback();
	struct rdma_cm_id *listener;
	pthread_t clients[CLIENTS], server;

	__atomic_store_n(&closing, false, __ATOMIC_RELEASE);
	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(listener, (struct sockaddr *)&at), 0);
	assert_int_equal(rdma_listen(listener, 4), 0);
	assert_int_equal(pthread_create(&server, NULL, run_server, channel), 0);
	for (uintptr_t i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_create(&clients[i], NULL, run_client, (void *)(i + 1)), 0);
	for (int i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_join(clients[i], NULL), 0);
	__atomic_store_n(&closing, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(server, NULL), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(channel);
}

#define ROUNDS 200

/* Take all events of a channel, whatever they are, until the test is closing. */
static void *take_events(void *arg)
{
	struct rdma_event_channel *channel = arg;
	struct pollfd poll_fd = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;

	while (!__atomic_load_n(&closing, __ATOMIC_ACQUIRE)) {
		if (poll(&poll_fd, 1, 10) == 1 && rdma_get_cm_event(channel, &event) == 0)
			MUST(rdma_ack_cm_event(event) == 0);
	}
	return NULL;
}

static int create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	return rdma_create_qp(id, NULL, &attr);
}

static void end_id(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	MUST(rdma_destroy_id(id) == 0);
}

/* Accept a request. Return false if its peer has given up. */
static bool accept_with_qp(struct rdma_cm_id *id)
{
	MUST(create_qp(id) == 0);
	if (rdma_accept(id, NULL) == 0)
		return true;
	end_id(id);
	return false;
}

/* Accept all requests, and end each connection when its peer does. */
static void *serve_qps(void *arg)
{
	struct rdma_event_channel *channel = arg;
	struct pollfd poll_fd = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_event *event, copy;
	unsigned int open = 0;

	while (open > 0 || !__atomic_load_n(&closing, __ATOMIC_ACQUIRE)) {
		if (poll(&poll_fd, 1, 10) != 1 || rdma_get_cm_event(channel, &event) != 0)
			continue;
		copy = *event;
		MUST(rdma_ack_cm_event(event) == 0);
		if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			open += accept_with_qp(copy.id);
		} else if (copy.event != RDMA_CM_EVENT_ESTABLISHED) {
			end_id(copy.id);
			open--;
		}
	}
	return NULL;
}

static struct rdma_cm_id *listen_at_loopback(struct rdma_event_channel *channel, int backlog)
{
	struct sockaddr_in at = loopback();
	struct rdma_cm_id *listener;

	__atomic_store_n(&closing, false, __ATOMIC_RELEASE);
	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(listener, (struct sockaddr *)&at), 0);
	assert_int_equal(rdma_listen(listener, backlog), 0);
	return listener;
}

/* A program gives up a connect: it destroys the queue pair, then the id. Another thread takes the
 * events meanwhile, which uses the queue pair. */
TEST(live__queue_pair_ends_while_events_are_taken)
{
	struct rdma_event_channel *served = rdma_create_event_channel();
	struct rdma_event_channel *taken = rdma_create_event_channel();
	struct rdma_event_channel *own = rdma_create_event_channel();
	struct rdma_cm_id *listener = listen_at_loopback(served, 16);
	pthread_t server, taker;
	unsigned int seed = 7;

	assert_int_equal(fcntl(taken->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(pthread_create(&server, NULL, serve_qps, served), 0);
	assert_int_equal(pthread_create(&taker, NULL, take_events, taken), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct rdma_cm_id *id = resolve(own);

		assert_int_equal(rdma_migrate_id(id, taken), 0);
		assert_int_equal(create_qp(id), 0);
		assert_int_equal(rdma_connect(id, NULL), 0);
		usleep((useconds_t)rand_r(&seed) % 1500);
		end_id(id);
	}
	__atomic_store_n(&closing, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(taker, NULL), 0);
	assert_int_equal(pthread_join(server, NULL), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(own);
	rdma_destroy_event_channel(taken);
	rdma_destroy_event_channel(served);
}

static unsigned int misplaced; /* requests that were read from another channel than their id's */

static void *refuse_all(void *arg)
{
	struct rdma_event_channel *channel = arg;
	struct pollfd poll_fd = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	while (!__atomic_load_n(&closing, __ATOMIC_ACQUIRE)) {
		if (poll(&poll_fd, 1, 10) != 1 || rdma_get_cm_event(channel, &event) != 0)
			continue;
		id = event->id;
		if (id->channel != channel)
			__atomic_add_fetch(&misplaced, 1, __ATOMIC_RELAXED);
		MUST(rdma_ack_cm_event(event) == 0);
		MUST(rdma_destroy_id(id) == 0);
	}
	return NULL;
}

static unsigned int clients_left;

static void *connect_often(void *arg)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	(void)arg;
	MUST(channel);
	for (int i = 0; i < ROUNDS / 2; i++)
		attempt(channel, STEPS);
	rdma_destroy_event_channel(channel);
	__atomic_sub_fetch(&clients_left, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* A listener is migrated all the time. The id of each request has the channel from which its event
 * is read, else its later events would come where nobody waits for them. */
TEST(live__requests_of_a_listener_that_is_migrated)
{
	struct rdma_event_channel *channels[2];
	pthread_t readers[2], clients[CLIENTS];
	struct rdma_cm_id *listener;

	for (int i = 0; i < 2; i++)
		channels[i] = rdma_create_event_channel();
	assert_int_equal(fcntl(channels[1]->fd, F_SETFL, O_NONBLOCK), 0);
	listener = listen_at_loopback(channels[0], 16);
	clients_left = CLIENTS;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, refuse_all, channels[i]), 0);
	for (int i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_create(&clients[i], NULL, connect_often, NULL), 0);
	for (int i = 1; __atomic_load_n(&clients_left, __ATOMIC_ACQUIRE) > 0; i++)
		assert_int_equal(rdma_migrate_id(listener, channels[i % 2]), 0);
	__atomic_store_n(&closing, true, __ATOMIC_RELEASE);
	for (int i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_join(clients[i], NULL), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(readers[i], NULL), 0);
	assert_int_equal(misplaced, 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
	for (int i = 0; i < 2; i++)
		rdma_destroy_event_channel(channels[i]);
}
