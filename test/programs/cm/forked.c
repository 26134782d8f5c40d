/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process with a connection forks. Its connection goes on, and the child opens a device and
 * connections of its own, with its parent.
 *
 *   forked ADDRESS PORT    listens on PORT; the child on the port after it
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define BYTES	 64
#define MESSAGES 100
#define SECONDS	 60 /* a process that takes longer hangs */

/* One side of a connection. */
struct side {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char from[BYTES], to[BYTES];
};

static const char *address;
static const char *process = "parent";

static void require(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "forked: %s: %s: %s\n", process, what, strerror(errno));
	exit(1);
}

static struct rdma_cm_id *create_ep(unsigned int port, int flags)
{
	struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *found;
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.sq_sig_all = 1};
	struct rdma_cm_id *id;
	char service[16];

	snprintf(service, sizeof(service), "%u", port);
	require(rdma_getaddrinfo(address, service, &hints, &found) == 0, "rdma_getaddrinfo");
	require(rdma_create_ep(&id, found, NULL, &attr) == 0, "rdma_create_ep");
	rdma_freeaddrinfo(found);
	return id;
}

static struct rdma_cm_id *listen_on(unsigned int port)
{
	struct rdma_cm_id *id = create_ep(port, RAI_PASSIVE);

	require(rdma_listen(id, 4) == 0, "rdma_listen");
	return id;
}

static void prepare(struct side *side, struct rdma_cm_id *id)
{
	side->id = id;
	side->mr = rdma_reg_msgs(id, side, sizeof(*side));
	require(side->mr != NULL, "rdma_reg_msgs");
	require(rdma_post_recv(id, NULL, side->to, BYTES, side->mr) == 0, "rdma_post_recv");
}

static void connect_to(struct side *side, unsigned int port)
{
	prepare(side, create_ep(port, 0));
	require(rdma_connect(side->id, NULL) == 0, "rdma_connect");
}

static void accept_from(struct side *side, struct rdma_cm_id *listener)
{
	struct rdma_cm_id *id;

	require(rdma_get_request(listener, &id) == 0, "rdma_get_request");
	prepare(side, id);
	require(rdma_accept(id, NULL) == 0, "rdma_accept");
}

static void end(struct side *side)
{
	require(rdma_dereg_mr(side->mr) == 0, "rdma_dereg_mr");
	rdma_destroy_ep(side->id);
}

static void send_number(struct side *side, int number)
{
	struct ibv_wc wc;

	snprintf(side->from, BYTES, "message %d", number);
	require(rdma_post_send(side->id, NULL, side->from, BYTES, side->mr, 0) == 0,
		"rdma_post_send");
	require(rdma_get_send_comp(side->id, &wc) == 1 && wc.status == IBV_WC_SUCCESS,
		"a send completes");
}

static void take_number(struct side *side, int number)
{
	char wanted[BYTES];
	struct ibv_wc wc;

	snprintf(wanted, BYTES, "message %d", number);
	require(rdma_get_recv_comp(side->id, &wc) == 1 && wc.status == IBV_WC_SUCCESS,
		"a receive completes");
	require(strcmp(side->to, wanted) == 0, "the message is the one that was sent");
	require(rdma_post_recv(side->id, NULL, side->to, BYTES, side->mr) == 0, "rdma_post_recv");
}

static void talk(struct side *one, struct side *other)
{
	for (int i = 0; i < MESSAGES; i++) {
		send_number(one, i);
		take_number(other, i);
		send_number(other, -i);
		take_number(one, -i);
	}
}

static void send_first(struct side *side)
{
	for (int i = 0; i < MESSAGES; i++) {
		send_number(side, i);
		take_number(side, i);
	}
}

static void answer(struct side *side)
{
	for (int i = 0; i < MESSAGES; i++) {
		take_number(side, i);
		send_number(side, i);
	}
}

/* ---- the child ---- */

static void use_parents(struct side *side)
{
	require(rdma_disconnect(side->id) == -1 && errno == ENODEV, "rdma_disconnect is refused");
	require(rdma_post_send(side->id, NULL, side->from, BYTES, side->mr, 0) == -1 &&
			errno == ENODEV,
		"rdma_post_send is refused");
}

/* The last connection is not ended: its peer must be told. */
static void run_child(struct side *parents, unsigned int port)
{
	static struct side active, passive;
	struct rdma_cm_id *listener;

	process = "child";
	alarm(SECONDS);
	use_parents(parents);
	connect_to(&active, port);
	listener = listen_on(port + 1);
	send_first(&active); /* the parent connects after this */
	accept_from(&passive, listener);
	answer(&passive);
	require(rdma_disconnect(passive.id) == 0, "rdma_disconnect");
	end(&passive);
	rdma_destroy_ep(listener);
	exit(0);
}

/* ---- the parent ---- */

static void expect_disconnect(struct side *side)
{
	struct rdma_cm_event *event;

	do {
		require(rdma_get_cm_event(side->id->channel, &event) == 0, "rdma_get_cm_event");
	} while (event->event != RDMA_CM_EVENT_DISCONNECTED && rdma_ack_cm_event(event) == 0);
	rdma_ack_cm_event(event);
}

static struct side active, passive;
static unsigned int port;

static void *connect_active(void *arg)
{
	connect_to(&active, port);
	return arg;
}

static void connect_both(struct rdma_cm_id *listener)
{
	pthread_t thread;

	require(pthread_create(&thread, NULL, connect_active, NULL) == 0, "pthread_create");
	accept_from(&passive, listener);
	require(pthread_join(thread, NULL) == 0, "pthread_join");
}

static void serve_child(struct rdma_cm_id *listener, pid_t child)
{
	static struct side first, second;
	int status;

	talk(&active, &passive);
	accept_from(&first, listener);
	talk(&active, &passive);
	answer(&first);
	connect_to(&second, port + 1);
	send_first(&second);
	expect_disconnect(&second);
	end(&second); /* which the child waits for */
	require(waitpid(child, &status, 0) == child, "waitpid");
	require(status == 0, "the child ends with 0");
	expect_disconnect(&first);
	end(&first);
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *listener;
	pid_t child;

	if (argc != 3) {
		fputs("usage: forked ADDRESS PORT\n", stderr);
		return 2;
	}
	address = argv[1];
	port = (unsigned int)strtoul(argv[2], NULL, 0);
	alarm(SECONDS);
	listener = listen_on(port);
	connect_both(listener);
	talk(&active, &passive);
	child = fork();
	require(child >= 0, "fork");
	if (child == 0)
		run_child(&active, port);
	serve_child(listener, child);
	/* The child has ended. */
	talk(&active, &passive);
	end(&active);
	end(&passive);
	rdma_destroy_ep(listener);
	puts("parent and child have ended their connections");
	return 0;
}
