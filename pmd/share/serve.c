/* SPDX-License-Identifier: BSD-3-Clause */
/* The begin and the end of an owner, its socket, and its sleep. */
#include "share/serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "base/log.h"
#include "config/settings.h"
#include "link/guest.h"
#include "link/runtime.h"
#include "server.h"
#include "share/message.h"

#define BACKLOG		64
#define EVENTS_MAX	64 /* in a row, before packets have their turn */
#define LINK_PERIOD_NS	UINT64_C(100000000)
#define POLL_MS		1   /* where no descriptor tells of frames */
#define LINK_PAUSE_NS	10000000
#define LINK_TRIES	600 /* copper agrees on a speed in some 4 s */
#define BUFFER_OVERHEAD 384 /* an mbuf, and what its pool keeps of it */

static int server_control(struct server *server, int operation, int fd, enum server_event event,
			  uint32_t number)
{
	/* What wakes us says nothing more: it is told of once, and not read. */
	struct epoll_event watch = {.events = EPOLLIN | (event == EVENT_WAKE ? EPOLLET : 0),
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

/* A socket that nobody listens on is what a killed owner left. */
static int serve_remove_stale(const struct sockaddr_un *address)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return -errno;
	rc = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ? -EADDRINUSE
										  : -errno;
	close(fd);
	if (rc == -ENOENT)
		return 0;
	if (rc == -ECONNREFUSED)
		return unlink(address->sun_path) == 0 ? 0 : -errno;
	return rc;
}

/* /run is empty after a start of the system: one level is made where it is missing. */
static void serve_make_directory(const char *path)
{
	char directory[108];
	char *slash;

	snprintf(directory, sizeof(directory), "%s", path);
	slash = strrchr(directory, '/');
	if (!slash || slash == directory)
		return;
	*slash = '\0';
	if (mkdir(directory, 0755) != 0 && errno != EEXIST)
		log_warn("cannot make %s: %s", directory, strerror(errno));
}

static int serve_listen(struct server *server, const struct serve_config *config)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t mask;
	int rc;

	rc = share_socket_path(config->socket_path, config->number, &address);
	if (rc != 0)
		return rc;
	serve_make_directory(config->socket_path);
	rc = serve_remove_stale(&address);
	if (rc != 0)
		return rc;
	server->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->listen_fd < 0)
		return -errno;
	/* Nobody may come in before owner and mode are what they should be. */
	mask = umask(0777);
	rc = bind(server->listen_fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? 0
											: -errno;
	umask(mask);
	if (rc != 0)
		return rc;
	strcpy(server->socket_path, address.sun_path);
	if (chown(address.sun_path, config->socket_owner, config->socket_group) != 0 ||
	    chmod(address.sun_path, config->socket_mode) != 0 ||
	    listen(server->listen_fd, BACKLOG) != 0)
		return -errno;
	return server_watch(server, server->listen_fd, EVENT_LISTEN, 0);
}

/*
 * Pools keep a stack of buffers an lcore: from here on this thread is one. Not one that another
 * thread is, nor dpdk-dumpcap, whose pool is used here too, and which has the number of a CPU.
 */
void serve_begin(const struct server *server)
{
	RTE_PER_LCORE(_lcore_id) = RTE_MAX_LCORE - 1 - server->number;
}

static const char *serve_prefix(const struct settings *settings)
{
	return settings->file_prefix[0] ? settings->file_prefix : SETTINGS_DEFAULT_PREFIX;
}

/* What takes buffers from DPDK's own memory alone, and would send whatever is at their address there. */
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

/* A cable's two ends agree on a speed for some seconds: the first programs shall find the link up. */
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

	rc = link_prepare(link, settings);
	if (rc == 0)
		rc = serve_check_driver(&link->port.devargs);
	if (rc == 0)
		rc = serve_find_hardware(config, devices, &runtime.device_count);
	if (rc != 0)
		return rc;
	link->port.make_pool = arena_make_pool;
	link->port.make_pool_arg = server;
	rc = runtime_start(&runtime);
	if (rc != 0)
		return rc;
	serve_begin(server);
	if (link->port.driver == PORT_MEMIF)
		rc = gated_prepare(server);
	if (rc != 0)
		return rc;
	rc = link_open(link, settings);
	if (rc != 0)
		return rc;
	serve_wait_for_link(&link->port);
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
	if (server->epoll_fd < 0 || server->wake_fd < 0)
		return -errno;
	rc = server_watch(server, server->wake_fd, EVENT_WAKE, 0);
	if (rc == 0 && server->link.port.wake_fd >= 0)
		rc = server_watch(server, server->link.port.wake_fd, EVENT_PORT, 0);
	if (rc == 0 && server->has_kernel && server->kernel.wake_fd >= 0)
		rc = server_watch(server, server->kernel.wake_fd, EVENT_PORT, 0);
	return rc;
}

/* The processes are told what they would be told of a port of their own: by the end of their sockets. */
static void serve_lose(struct server *server)
{
	struct port *port = &server->link.port;

	log_error("port '%s' has gone: who was attached is told so", port->devargs.name);
	__atomic_store_n(&server->lost, true, __ATOMIC_RELEASE);
	if (port->wake_fd >= 0)
		epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, port->wake_fd, NULL);
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
	for (uint16_t i = 0; i < server->live_count; i++)
		__atomic_store_n(&server->slots[server->live[i]].page->link_up, up,
				 __ATOMIC_RELAXED);
}

int serve_create(const struct serve_config *config, struct server **out)
{
	const struct settings *settings = &config->settings[config->number];
	struct server *server = calloc(1, sizeof(*server));
	int rc;

	if (!server)
		return -ENOMEM;
	server->arena_fd = server->epoll_fd = server->listen_fd = server->wake_fd = -1;
	server->report_fd = -1;
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
		rc = config->guest ? serve_open_guest(server, config)
				   : serve_open_link(server, config);
	if (rc != 0)
		goto failed;
	rc = serve_open_events(server);
	if (rc == 0)
		rc = serve_listen(server, config);
	if (rc == -EADDRINUSE)
		log_error("another uroced answers at %s", config->socket_path);
	else if (rc != 0)
		log_error("cannot listen at %s: %s", config->socket_path, strerror(-rc));
	if (rc != 0)
		goto failed;
	serve_check_link(server);
	rc = status_open_report(server, settings);
	if (rc != 0) {
		log_error("no memory to tell how it stands: %s", strerror(-rc));
		goto failed;
	}
	gated_open(server);
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

		if (!mbuf)
			break;
		memcpy(rte_pktmbuf_mtod(mbuf, uint8_t *), frame, len);
		forward_send_own(server, mbuf, len);
	}
}

static void serve_say_asleep(struct server *server, uint32_t asleep)
{
	for (uint16_t i = 0; i < server->live_count; i++)
		__atomic_store_n(&server->slots[server->live[i]].page->owner_sleeps, asleep,
				 __ATOMIC_RELAXED);
}

/* Whether there is nothing to do, and whoever has something will wake us. */
static bool serve_arm(struct server *server)
{
	serve_say_asleep(server, 1);
	/* Orders the stores before the loads: either we see what a process put, or it sees that we
	 * sleep. Pairs with client_wake_owner. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return server->pending_count == 0 && !forward_waits(server) &&
	       !port_arm(&server->link.port);
}

void serve_sleep(struct server *server, int ms)
{
	struct epoll_event event;

	gated_lock(server);
	serve_look_around(server);
	gated_unlock(server);
	if (server->link.port.wake_fd < 0 || (server->has_kernel && server->kernel.wake_fd < 0))
		ms = RTE_MIN(ms, POLL_MS);
	if (ms != 0 && !serve_arm(server))
		ms = 0;
	/* One at a time: what is done for one may end what another is about. */
	for (int i = 0; i < EVENTS_MAX; i++) {
		if (epoll_wait(server->epoll_fd, &event, 1, i == 0 ? ms : 0) <= 0)
			break;
		gated_lock(server);
		control_event(server, (enum server_event)(event.data.u64 >> 32),
			      (uint32_t)event.data.u64);
		gated_unlock(server);
		/* Packets come first. Frames wait on, and so does their event. */
		if (event.data.u64 >> 32 == EVENT_PORT || event.data.u64 >> 32 == EVENT_WAKE)
			break;
	}
	serve_say_asleep(server, 0);
	if (ms != 0)
		port_disarm(&server->link.port);
}

void serve_wake(struct server *server)
{
	const uint64_t one = 1;

	/* The only failure is a counter that is full, and then it wakes anyway. */
	if (write(server->wake_fd, &one, sizeof(one)) < 0)
		return;
}

const struct link *serve_link(const struct server *server)
{
	return &server->link;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void serve_destroy(struct server *server)
{
	/* First of all: who comes from here on is told that nobody is here. */
	if (server->socket_path[0] != '\0')
		unlink(server->socket_path);
	close_fd(server->listen_fd);
	gated_end(server);
	while (server->live_count > 0)
		slot_condemn(server, server->live[0]);
	kernel_close(server);
	if (server->link.port.started) {
		forward_flush(server);
		port_close(&server->link.port);
	}
	report_set_remove(server->reports, server->report);
	close_fd(server->report_fd);
	lanes_destroy(server);
	close_fd(server->epoll_fd);
	close_fd(server->wake_fd);
	arena_destroy(server);
	if (server->shared_prefix[0] != '\0')
		runtime_remove_files(server->shared_prefix);
	free(server);
}
