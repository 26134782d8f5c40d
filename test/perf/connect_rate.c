/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rate of connections by rdma_cm that are set up and torn down.
 *
 *   connect_rate -p PORT -a ADDRESS              serve one client
 *   connect_rate -p PORT -a ADDRESS [-n COUNT] [-w WINDOW] [-o] [-l] HOST
 *
 * ADDRESS is the server's RDMA address; PORT is of rdma_cm, and of the TCP connection to HOST that
 * tells the server when its client has finished. WINDOW connections are under way at a time; with
 * -o all COUNT are open before the first one ends. The client prints connections a second, and the
 * time from rdma_connect to the established connection in us: median and longest. Either side fails
 * if it has more descriptors at its end than before its first connection. With -l the client prints
 * a further line and waits for a signal, so that a test can inspect what is left.
 */
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define COUNT	   10000
#define WINDOW	   64
#define RESOLVE_MS 5000
#define BACKLOG	   1024

struct conn {
	struct rdma_cm_id *id;
	uint64_t asked_ns;
	uint64_t established_ns;
};

static struct {
	const char *address;
	const char *port;
	unsigned int count;
	unsigned int window;
	bool all_open;
	bool lingers;
} options = {.count = COUNT, .window = WINDOW};

static struct rdma_event_channel *channel;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct conn *conns;
static unsigned int started, established, ended;
static unsigned int descriptors; /* descriptors with the device open, before the first connection */

static void require(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "connect_rate: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static unsigned int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int count = 0;

	require(dir != NULL, "/proc/self/fd");
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count;
}

/* All connections share a domain and a completion queue. */
static void create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

	attr.send_cq = cq;
	attr.recv_cq = cq;
	require(rdma_create_qp(id, pd, &attr) == 0, "rdma_create_qp");
}

static void destroy(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	require(rdma_destroy_id(id) == 0, "rdma_destroy_id");
	ended++;
}

/* Take the next event and acknowledge it. */
static enum rdma_cm_event_type next_event(struct rdma_cm_id **id)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	require(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
	type = event->event;
	*id = event->id;
	if (event->status != 0) {
		fprintf(stderr, "connect_rate: %s, status %d, after %u connections\n",
			rdma_event_str(type), event->status, established);
		exit(1);
	}
	rdma_ack_cm_event(event);
	return type;
}

static struct sockaddr_storage rdma_address(void)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	struct sockaddr_storage address = {0};
	struct addrinfo *found;

	require(getaddrinfo(options.address, options.port, &hints, &found) == 0, options.address);
	memcpy(&address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return address;
}

static void open_device(struct ibv_context *verbs)
{
	require(verbs != NULL, "no device has the address");
	pd = ibv_alloc_pd(verbs);
	cq = ibv_create_cq(verbs, 16, NULL, NULL, 0);
	require(pd && cq, "ibv_create_cq");
	descriptors = count_descriptors();
}

/* ---- the client ---- */

static void start(struct sockaddr_storage *to)
{
	struct conn *conn = &conns[started++];

	require(rdma_create_id(channel, &conn->id, conn, RDMA_PS_TCP) == 0, "rdma_create_id");
	require(rdma_resolve_addr(conn->id, NULL, (struct sockaddr *)to, RESOLVE_MS) == 0,
		"rdma_resolve_addr");
}

static void connect_it(struct conn *conn)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};

	if (!pd)
		open_device(conn->id->verbs);
	create_qp(conn->id);
	conn->asked_ns = now_ns();
	require(rdma_connect(conn->id, &param) == 0, "rdma_connect");
}

static void become_established(struct conn *conn)
{
	conn->established_ns = now_ns();
	established++;
	if (!options.all_open)
		require(rdma_disconnect(conn->id) == 0, "rdma_disconnect");
	for (unsigned int i = 0;
	     options.all_open && established == options.count && i < established; i++)
		require(rdma_disconnect(conns[i].id) == 0, "rdma_disconnect");
}

static void serve_event(struct sockaddr_storage *to)
{
	struct rdma_cm_id *id;
	const enum rdma_cm_event_type type = next_event(&id);

	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		require(rdma_resolve_route(id, RESOLVE_MS) == 0, "rdma_resolve_route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		connect_it(id->context);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		become_established(id->context);
		if (options.all_open && started < options.count)
			start(to);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		destroy(id);
		if (started < options.count)
			start(to);
		break;
	default:
		break;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct conn *one = a, *other = b;
	const uint64_t times[2] = {one->established_ns - one->asked_ns,
				   other->established_ns - other->asked_ns};

	return times[0] < times[1] ? -1 : times[0] > times[1];
}

static double time_us(unsigned int index)
{
	return (double)(conns[index].established_ns - conns[index].asked_ns) / 1e3;
}

static void run_client(void)
{
	struct sockaddr_storage to = rdma_address();
	const uint64_t begun_ns = now_ns();
	uint64_t took_ns;

	while (started < options.count && started < options.window)
		start(&to);
	while (ended < options.count)
		serve_event(&to);
	took_ns = now_ns() - begun_ns;
	qsort(conns, options.count, sizeof(*conns), by_time);
	printf("%.0f %.0f %.0f\n", options.count * 1e9 / (double)took_ns,
	       time_us(options.count / 2), time_us(options.count - 1));
	fflush(stdout);
	require(count_descriptors() <= descriptors, "descriptors are left");
}

/* ---- the server ---- */

static void serve(void)
{
	struct rdma_conn_param param = {.rnr_retry_count = 7};
	struct rdma_cm_id *id;

	switch (next_event(&id)) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		started++;
		if (!pd)
			open_device(id->verbs);
		create_qp(id);
		require(rdma_accept(id, &param) == 0, "rdma_accept");
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(id);
		destroy(id);
		break;
	default:
		break;
	}
}

static int tcp_socket(const char *host, struct addrinfo **found)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = host ? 0 : AI_PASSIVE};
	const int on = 1;
	int fd;

	require(getaddrinfo(host, options.port, &hints, found) == 0, "getaddrinfo");
	fd = socket((*found)->ai_family, SOCK_STREAM, 0);
	require(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0,
		"socket");
	return fd;
}

/* Listen by TCP as well: a test sees by the port that the server is ready. */
static int wait_for_client(void)
{
	struct addrinfo *found;
	int listener = tcp_socket(NULL, &found), fd;

	require(bind(listener, found->ai_addr, found->ai_addrlen) == 0 && listen(listener, 1) == 0,
		"listen");
	freeaddrinfo(found);
	fd = accept(listener, NULL, NULL);
	require(fd >= 0, "accept");
	close(listener);
	return fd;
}

static void run_server(void)
{
	struct sockaddr_storage at = rdma_address();
	struct pollfd fds[2] = {{.events = POLLIN}, {.fd = channel->fd, .events = POLLIN}};
	struct rdma_cm_id *listener;
	bool finished = false;

	require(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
	require(rdma_bind_addr(listener, (struct sockaddr *)&at) == 0, "rdma_bind_addr");
	require(rdma_listen(listener, BACKLOG) == 0, "rdma_listen");
	fds[0].fd = wait_for_client();
	while (!finished || ended < started) {
		require(poll(fds + finished, 2u - finished, -1) > 0, "poll");
		if (fds[1].revents)
			serve();
		finished |= fds[0].revents != 0;
	}
	require(count_descriptors() <= descriptors, "descriptors are left");
	rdma_destroy_id(listener);
}

static void call(const char *host)
{
	struct addrinfo *found;
	const int fd = tcp_socket(host, &found);

	require(connect(fd, found->ai_addr, found->ai_addrlen) == 0, host);
	freeaddrinfo(found);
	conns = calloc(options.count, sizeof(*conns));
	require(conns != NULL, "calloc");
	run_client();
	if (options.lingers) {
		puts("all are ended");
		fflush(stdout);
		pause();
	}
	close(fd);
	free(conns);
}

static void usage(void)
{
	fputs("usage: connect_rate -p PORT -a ADDRESS [-n COUNT] [-w WINDOW] [-o] [-l] [HOST]\n",
	      stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "p:a:n:w:ol")) != -1) {
		if (option == 'p')
			options.port = optarg;
		else if (option == 'a')
			options.address = optarg;
		else if (option == 'n')
			options.count = (unsigned int)strtoul(optarg, NULL, 0);
		else if (option == 'w')
			options.window = (unsigned int)strtoul(optarg, NULL, 0);
		else if (option == 'o')
			options.all_open = true;
		else if (option == 'l')
			options.lingers = true;
		else
			usage();
	}
	if (!options.port || !options.address || options.count == 0 || options.window == 0 ||
	    optind < argc - 1)
		usage();
	channel = rdma_create_event_channel();
	require(channel != NULL, "rdma_create_event_channel");
	if (optind < argc)
		call(argv[optind]);
	else
		run_server();
	if (cq)
		require(ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0, "ibv_dealloc_pd");
	rdma_destroy_event_channel(channel);
	return 0;
}
