/* SPDX-License-Identifier: BSD-3-Clause */
/* The begin and the end of an owner, its socket, and its sleep. */
#include "owner/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "base/log.h"
#include "config/settings.h"
#include "eal/runtime.h"
#include "port/drivers.h"
#include "port/guest.h"
#include "server.h"
#include "share/message.h"

#define LINK_PERIOD_NS	UINT64_C(100000000)
#define POLL_MS		1 /* where no descriptor tells of frames */
#define LINK_PAUSE_NS	10000000
#define SERVE_NS_PER_MS UINT64_C(1000000)
#define TELL_TURNS	4096 /* in each some messages */
#define TEND_TURNS	64   /* as many packets as a wire's rings usually hold, and more */
#define LINK_TRIES	600  /* copper agrees on a speed in some 4 s */
#define BUFFER_OVERHEAD 384  /* an mbuf, and what its pool keeps of it */

uint64_t server_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int server_control(struct server *server, int operation, int fd, enum server_event event,
			  uint32_t number)
{
	/* What only wakes us says nothing more: it is told of once, and not read. */
	const bool wakes = event == EVENT_WAKE || event == EVENT_BELL;
	struct epoll_event watch = {.events = EPOLLIN | (wakes ? EPOLLET : 0),
				    .data.u64 = (uint64_t)event << 32 | number};

	return epoll_ctl(server->epoll_fd, operation, fd, &watch) == 0 ? 0 : -errno;
}

int server_watch(struct server *server, int fd, enum server_event event, uint32_t number)
{
	return server_control(server, EPOLL_CTL_ADD, fd, event, number);
}

int server_rewatch(struct server *server, int fd, enum server_event event, uint32_t number)
{
	return server_control(server, EPOLL_CTL_MOD, fd, event, number);
}

/*
 * Pools keep a stack of buffers an lcore: from here on this thread is one. Not one that another
 * thread is, nor dpdk-dumpcap, whose pool is used here too, and which has the number of a CPU.
 */
void serve_begin(const struct server *server)
{
	RTE_PER_LCORE(_lcore_id) = RTE_MAX_LCORE - 1 - server->number;
}

static void serve_say_where(const char *path, int rc)
{
	if (rc == -EADDRINUSE)
		log_error("another uroced answers at %s", path);
	else if (rc == -EEXIST)
		log_error("%s is no socket: choose another name", path);
	else if (rc != 0)
		log_error("cannot listen at %s: %s", path, strerror(-rc));
}

static int serve_listen(struct server *server, const struct serve_config *config)
{
	const struct settings *settings = config->settings;
	struct listen_config where = {.path = config->socket_path,
				      .mode = config->socket_mode,
				      .owner = config->socket_owner,
				      .group = config->socket_group};
	int rc;

	rc = listen_open(server, &where, EVENT_LISTEN, &server->trusted);
	if (rc != 0 || settings->isolated[0] == '\0') {
		serve_say_where(where.path, rc);
		return rc;
	}
	where.path = settings->isolated;
	where.mode = (mode_t)settings->isolated_mode;
	rc = listen_open(server, &where, EVENT_LISTEN_ISOLATED, &server->isolated);
	serve_say_where(where.path, rc);
	return rc;
}

static const char *serve_prefix(const struct settings *settings)
{
	return settings->file_prefix[0] ? settings->file_prefix : SETTINGS_DEFAULT_PREFIX;
}

/* What takes buffers from DPDK's own memory alone, and would send whatever is at their address
 * there. */
static int serve_check_driver(const struct devargs *devargs)
{
	if (devargs->bus != DEVARGS_OTHER && !devargs_is(devargs, VIRTIO_USER_DRIVER))
		return 0;
	log_error("port '%s' cannot be shared: uroced takes kernel interfaces, PCI devices and "
		  "virtual devices that copy",
		  devargs->name);
	return -EOPNOTSUPP;
}

/* EAL finds the hardware of all ports when it starts, which is for the first of them. */
static int serve_find_hardware(const struct serve_config *config, struct devargs *devices,
			       size_t *count)
{
	int rc;

	*count = 0;
	for (uint32_t i = 0; i < RTE_MAX(config->ports, 1u); i++) {
		const char *port = config->settings[i].port;

		rc = port[0] != '\0' ? devargs_parse(port, &devices[*count]) : 0;
		if (rc != 0)
			return rc;
		*count += port[0] != '\0' && devices[*count].bus == DEVARGS_PCI;
	}
	return 0;
}

/* A cable's two ends agree on a speed for some seconds: the first programs shall find the link up.
 */
static void serve_wait_for_link(const struct port *port)
{
	const struct timespec pause = {.tv_nsec = LINK_PAUSE_NS};
	int tries = LINK_TRIES;

	if (port->devargs.bus != DEVARGS_PCI)
		return;
	while (!port_connected(port) && tries-- > 0)
		nanosleep(&pause, NULL);
	if (tries < 0)
		log_warn("port '%s' has no link yet: is its cable in, and its switch's port on?",
			 port->devargs.name);
}

/* Programs that need no rdma_cm do not mind. */
static void serve_manage(struct server *server, const struct settings *settings)
{
	snprintf(server->netdev, sizeof(server->netdev), "%s", settings->netdev);
	if (!mads_manage(server))
		log_warn("another program connects by rdma_cm on interface '%s': while it runs, "
			 "programs of this uroced do not",
			 settings->netdev);
}

static int serve_open_link(struct server *server, const struct serve_config *config)
{
	const struct settings *settings = &config->settings[config->number];
	struct link *link = &server->link;
	struct devargs devices[SETTINGS_PORTS_MAX];
	struct runtime_config runtime = {.devices = devices,
					 .memory_bytes = (size_t)arena_buffers(server) *
							 BUFFER_OVERHEAD * server->ports,
					 .telemetry = true,
					 .shared = settings->capture != SETTINGS_CAPTURE_NO,
					 .file_prefix = serve_prefix(settings)};
	int rc;

	/* Processes' buffers are its buffers. */
	link->port.make_pool = arena_make_pool;
	link->port.make_pool_arg = server;
	rc = link_prepare(link, settings);
	if (rc == 0)
		rc = serve_check_driver(&link->port.devargs);
	if (rc == 0)
		rc = serve_find_hardware(config, devices, &runtime.device_count);
	if (rc == 0)
		rc = runtime_start(&runtime);
	if (rc != 0)
		return rc;
	serve_begin(server);
	rc = link_open(link, settings);
	if (rc != 0)
		return rc;
	serve_wait_for_link(&link->port);
	serve_manage(server, settings);
	rc = kernel_open(server, settings);
	return rc == 0 ? capture_open(server, settings) : rc;
}

/* The application's lcores are as they are. */
static int serve_open_guest(struct server *server, const struct serve_config *config)
{
	struct link *link = &server->link;
	int rc;

	link->port.make_pool = arena_make_pool;
	link->port.make_pool_arg = server;
	rc = link_open_guest(link, config->guest, config->settings);
	snprintf(server->unique, sizeof(server->unique), "%s", link->port.devargs.name);
	return rc;
}

static int serve_open_events(struct server *server)
{
	int rc;

	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (server->epoll_fd < 0 || server->wake_fd < 0)
		return -errno;
	rc = server_watch(server, server->wake_fd, EVENT_WAKE, 0);
	if (rc == 0 && server->link.port.wake_fd >= 0) {
		server->port_fd = server->link.port.wake_fd;
		rc = server_watch(server, server->port_fd, EVENT_PORT, 0);
	}
	if (rc == 0 && port_tends(&server->link.port))
		rc = server_watch(server, port_tend_fd(&server->link.port), EVENT_TEND, 0);
	if (rc == 0 && server->has_kernel && server->kernel.wake_fd >= 0)
		rc = server_watch(server, server->kernel.wake_fd, EVENT_PORT, 0);
	return rc;
}

/* It is the driver's, and stays open: it would wake us for ever. */
static void serve_unwatch_port(struct server *server)
{
	if (server->port_fd >= 0)
		epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, server->port_fd, NULL);
	server->port_fd = -1;
}

/* The processes are told what they would be told of a port of their own: by the end of their
 * sockets. */
static void serve_lose(struct server *server)
{
	struct port *port = &server->link.port;

	log_error("port '%s' has gone: who was attached is told so", port->devargs.name);
	__atomic_store_n(&server->lost, true, __ATOMIC_RELEASE);
	serve_unwatch_port(server);
	port_lose(port);
	while (server->live_count > 0)
		slot_condemn(server, server->live[0]);
}

bool serve_is_lost(const struct server *server)
{
	return __atomic_load_n(&server->lost, __ATOMIC_ACQUIRE);
}

void serve_check_link(struct server *server)
{
	bool up;

	if (!server->lost && unlikely(port_lost(&server->link.port)))
		serve_lose(server);
	server->connected = port_connected(&server->link.port);
	up = port_link_up(&server->link.port, server->connected);
	for (uint16_t i = 0; i < server->live_count; i++) {
		struct slot *slot = &server->slots[server->live[i]];

		if (slot->isolated)
			slot->addresses_due |= up != server->up;
		else
			__atomic_store_n(&slot->page->link_up, up, __ATOMIC_RELAXED);
	}
	server->up = up;
}

void serve_tend(struct server *server)
{
	const struct port *port = &server->link.port;
	int ms;

	/* Packets that a peer sent before it went away are still in its rings, which will be
	 * unmapped. */
	for (int i = 0; i < TEND_TURNS && forward_turn(server) > 0; i++)
		;
	port_tend(port);
	ms = port_tend_ms(port);
	server->tend_due_ns =
		ms < 0 ? UINT64_MAX : server_now_ns() + (uint64_t)ms * SERVE_NS_PER_MS;
	serve_check_link(server);
}

int serve_create(const struct serve_config *config, struct server **out)
{
	const struct settings *settings = &config->settings[config->number];
	struct server *server = calloc(1, sizeof(*server));
	int rc;

	if (!server)
		return -ENOMEM;
	server->arena_fd = server->epoll_fd = server->trusted.fd = server->wake_fd = -1;
	server->manager_fd = -1;
	server->report_fd = server->isolated.fd = server->port_fd = server->spare_fd = -1;
	stranger_init(server);
	if (settings->capture != SETTINGS_CAPTURE_NO)
		snprintf(server->shared_prefix, sizeof(server->shared_prefix), "%s",
			 serve_prefix(settings));
	server->reports = config->reports;
	server->ports = RTE_MAX(config->ports, 1u);
	server->number = config->number;
	if (config->ports > 1 || strcmp(settings->name, SETTINGS_DEFAULT_NAME) != 0)
		snprintf(server->name, sizeof(server->name), "%s", settings->name);
	server->held_max = settings->max_buffers ? settings->max_buffers : SHARE_HELD_MAX;
	server->max_qp = settings->max_qp;
	server->max_memory = settings->max_memory;
	LIST_INIT(&server->groups);
	LIST_INIT(&server->lanes);
	/* What shall be captured has to come by, with an ICRC. */
	server->spares_icrc = settings->hand_over == SETTINGS_HAND_OVER_DIRECT &&
			      settings->capture != SETTINGS_CAPTURE_ALL;
	server->passes_all = settings->hand_over == SETTINGS_HAND_OVER_OWNER ||
			     settings->capture == SETTINGS_CAPTURE_ALL;
	snprintf(server->unique, sizeof(server->unique), "%s",
		 settings->netdev[0] ? settings->netdev : settings->port);
	rc = blocks_init(&server->blocks);
	if (rc == 0)
		rc = arbiter_create(&server->arbiter);
	if (rc == 0)
		rc = config->guest ? serve_open_guest(server, config)
				   : serve_open_link(server, config);
	if (rc != 0)
		goto failed;
	rc = serve_open_events(server);
	if (rc != 0)
		log_error("cannot wait for processes: %s", strerror(-rc));
	if (rc == 0)
		rc = serve_listen(server, config);
	if (rc != 0)
		goto failed;
	serve_check_link(server);
	rc = status_open_report(server, settings);
	if (rc != 0) {
		log_error("no memory to tell how it stands: %s", strerror(-rc));
		goto failed;
	}
	server->tend_due_ns = UINT64_MAX;
	if (port_tends(&server->link.port))
		serve_tend(server);
	*out = server;
	return 0;
failed:
	serve_destroy(server);
	return rc;
}

/* What is looked at from time to time. */
static void serve_look_around(struct server *server)
{
	uint8_t frame[LINK_REPLY_MAX];
	bool changed;
	size_t len;

	if (server->now_ns < server->link_due_ns)
		return;
	server->link_due_ns = server->now_ns + LINK_PERIOD_NS;
	serve_check_link(server);
	status_answer_report(server);
	lanes_look(server);
	changed = link_refresh(&server->link);
	for (uint16_t i = 0; i < server->live_count; i++) {
		if (changed || server->slots[server->live[i]].addresses_due)
			control_send_addresses(server, server->live[i]);
	}
	while ((len = link_report(&server->link, server->now_ns, frame)) > 0) {
		struct rte_mbuf *mbuf = rte_pktmbuf_alloc(server->link.port.pool);

		if (!mbuf) {
			server->totals.no_buffer++;
			break;
		}
		memcpy(rte_pktmbuf_mtod(mbuf, uint8_t *), frame, len);
		forward_send_own(server, mbuf, len);
	}
}

static void serve_say_asleep(struct server *server, uint32_t asleep)
{
	for (uint16_t i = 0; i < server->live_count; i++) {
		const struct slot *slot = &server->slots[server->live[i]];

		if (slot->isolated)
			isolated_listen(slot, asleep);
		else
			__atomic_store_n(&slot->page->owner_sleeps, asleep, __ATOMIC_RELAXED);
	}
}

/* Whether there is nothing to do, and whoever has something will wake us. */
static bool serve_arm(struct server *server)
{
	serve_say_asleep(server, 1);
	/* Orders the stores before the loads: either we see what a process put, or it sees that we
	 * sleep. Pairs with client_wake_owner. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (server->pending_count > 0 || forward_waits(server) || port_arm(&server->link.port))
		return false;
	/* Interrupts that could not be switched on are given up. */
	if (server->link.port.wake_fd < 0)
		serve_unwatch_port(server);
	return true;
}

/* Return how long it is, of `ms`, before a time comes. */
static int serve_until_ms(uint64_t due_ns, uint64_t now_ns, int ms)
{
	if (due_ns <= now_ns)
		return 0;
	if (due_ns - now_ns >= (uint64_t)ms * SERVE_NS_PER_MS)
		return ms;
	return (int)((due_ns - now_ns) / SERVE_NS_PER_MS) + 1;
}

/* How long it is before somebody has to look who is not woken. */
static int serve_longest_ms(const struct server *server, int ms)
{
	const bool is_told = server->link.port.wake_fd >= 0 || server->lost;
	const uint64_t now_ns = server_now_ns();

	if (!is_told || (server->has_kernel && server->kernel.wake_fd < 0))
		ms = RTE_MIN(ms, POLL_MS);
	ms = serve_until_ms(server->tend_due_ns, now_ns, ms);
	ms = serve_until_ms(arbiter_due_ns(server->arbiter), now_ns, ms);
	return rest_longest_ms(server, ms);
}

void serve_sleep(struct server *server, int ms)
{
	struct epoll_event event;

	if (server_now_ns() >= server->tend_due_ns)
		serve_tend(server);
	serve_look_around(server);
	rest_look(server);
	mads_farewell(server);
	ms = serve_longest_ms(server, ms);
	if (ms != 0 && !serve_arm(server))
		ms = 0;
	/* One, and packets have their turn: nobody who asks and asks keeps the thread from them.
	 * The others wait on, and so do their events, those first who waited longest. */
	if (epoll_wait(server->epoll_fd, &event, 1, ms) > 0)
		control_event(server, (enum server_event)(event.data.u64 >> 32),
			      (uint32_t)event.data.u64);
	serve_say_asleep(server, 0);
	if (ms != 0)
		port_disarm(&server->link.port);
}

void serve_wake(struct server *server)
{
	const uint64_t one = 1;

	/* Nobody rings often enough to fill the counter, which is ours alone. */
	if (write(server->wake_fd, &one, sizeof(one)) < 0)
		return;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Say to the peers of all connections that these have ended: once, as far as the port takes it. */
static void serve_tell_peers(struct server *server)
{
	for (int i = 0; i < TELL_TURNS && arbiter_due_ns(server->arbiter) <= server->now_ns; i++) {
		mads_farewell(server);
		forward_flush(server);
	}
}

void serve_destroy(struct server *server)
{
	/* First of all: who comes from here on is told that nobody is here. */
	listen_close(&server->trusted);
	listen_close(&server->isolated);
	stranger_close_all(server);
	while (server->live_count > 0)
		slot_condemn(server, server->live[0]);
	kernel_close(server);
	if (server->link.port.started) {
		serve_tell_peers(server);
		forward_flush(server);
		port_close(&server->link.port);
	}
	port_destroy(&server->link.port);
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++)
		slot_abandon(server, i);
	report_set_remove(server->reports, server->report);
	close_fd(server->report_fd);
	lanes_destroy(server);
	close_fd(server->epoll_fd);
	close_fd(server->wake_fd);
	close_fd(server->spare_fd);
	close_fd(server->manager_fd);
	arena_destroy(server);
	arbiter_destroy(server->arbiter);
	if (server->shared_prefix[0] != '\0')
		runtime_remove_files(server->shared_prefix);
	free(server);
}
