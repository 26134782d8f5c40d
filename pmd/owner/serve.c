/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts and ends an owner, opens its sockets, sleeps while there is no work, and takes settings
 * that were read again. */
#include "owner/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "arena.h"
#include "base/log.h"
#include "config/impair.h"
#include "config/settings.h"
#include "control.h"
#include "direct.h"
#include "eal/runtime.h"
#include "event.h"
#include "forward.h"
#include "isolated.h"
#include "kernel.h"
#include "listen.h"
#include "owner/arbiter.h"
#include "pause.h"
#include "psocks.h"
#include "report/set.h"
#include "resume.h"
#include "server.h"
#include "server_poll.h"
#include "share/message.h"
#include "slot.h"
#include "uplink.h"

#define LINK_PERIOD_NS	UINT64_C(100000000)
#define POLL_MS		1 /* longest sleep if no descriptor reports frames */
#define SERVE_NS_PER_MS UINT64_C(1000000)
#define TELL_POLLS	4096 /* polls to tell peers; each sends some messages */

/* Settings that are read again while programs are attached. Another thread leaves them, and the
 * server's thread takes them between two polls. */
struct change {
	struct settings settings;
	struct serve_tenants tenants;
	struct serve_tenant users[];
};

int serve_change(struct server *server, const struct settings *settings,
		 const struct serve_tenants *tenants)
{
	struct change *change = malloc(sizeof(*change) + tenants->count * sizeof(change->users[0]));

	if (!change)
		return -ENOMEM;
	change->settings = *settings;
	change->tenants = *tenants;
	change->tenants.users = change->users;
	memcpy(change->users, tenants->users, tenants->count * sizeof(change->users[0]));
	/* Release and acquire: whoever takes the pointer sees what was written. An older change
	 * that was not taken is replaced. */
	free(__atomic_exchange_n(&server->changes.wanted, change, __ATOMIC_ACQ_REL));
	serve_wake(server);
	return 0;
}

/* Weights and rates hold at once. The number of queue pairs is given when a program begins. */
static void change_tenants(struct server *server)
{
	for (uint16_t i = 0; i < TENANTS_MAX; i++) {
		const struct tenant *tenant = &server->tenants.all[i];

		if (tenant->limits.weight > 0)
			tenants_change(&server->tenants, i, slot_limits_of(server, tenant->user));
	}
}

static void change_take(struct server *server)
{
	struct change *change = NULL;

	if (likely(!__atomic_load_n(&server->changes.wanted, __ATOMIC_RELAXED)))
		return;
	change = __atomic_exchange_n(&server->changes.wanted, NULL, __ATOMIC_ACQ_REL);
	server->slots.max_qp = change->settings.max_qp;
	server->slots.max_memory = change->settings.max_memory;
	memcpy(server->slots.cc, change->settings.cc, sizeof(server->slots.cc));
	server->tenant_limits = &change->tenants;
	change_tenants(server);
	free(server->changes.made);
	server->changes.made = change;
	if (!link_change_addresses(&server->uplink.link, &change->settings, server->now_ns))
		return;
	for (uint16_t i = 0; i < server->slots.live_count; i++)
		control_send_addresses(server, server->slots.live[i]);
}

static void change_fini(struct server *server)
{
	free(server->changes.wanted);
	free(server->changes.made);
}

/*
 * Give this thread an lcore id, because pools keep a stack of buffers for each lcore. No other
 * thread may have the same id. Nor may dpdk-dumpcap, whose pool is used here too, and whose lcore
 * id is the number of a CPU.
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
		log_error("%s is not a socket: choose another name", path);
	else if (rc != 0)
		log_error("cannot listen at %s: %s", path, strerror(-rc));
}

static int serve_listen(struct server *server, const struct serve_config *config)
{
	const struct settings *settings = config->settings;
	struct listen_config where = {.path = config->socket_path,
				      .mode = config->socket_mode,
				      .owner = config->socket_owner,
				      .group = config->socket_group,
				      .passed = config->passed};
	int rc;

	rc = listen_open(server, &where, EVENT_LISTEN, &server->pending_clients.trusted);
	if (rc != 0 || settings->isolated[0] == '\0') {
		serve_say_where(where.path, rc);
		return rc;
	}
	where.path = settings->isolated;
	where.mode = (mode_t)settings->isolated_mode;
	rc = listen_open(server, &where, EVENT_LISTEN_ISOLATED, &server->pending_clients.isolated);
	serve_say_where(where.path, rc);
	return rc;
}

static int serve_open_events(struct server *server)
{
	int rc;

	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	server->pending_clients.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (server->epoll_fd < 0 || server->wake_fd < 0)
		rc = -errno;
	else
		rc = event_watch(server, server->wake_fd, EVENT_WAKE, 0);
	if (rc != 0)
		log_error("cannot wait for processes: %s", strerror(-rc));
	return rc;
}

static int serve_watch_ports(struct server *server)
{
	int rc = uplink_watch(server);

	if (rc == 0 && server->kernel.is_open && server->kernel.port.wake_fd >= 0)
		rc = event_watch(server, server->kernel.port.wake_fd, EVENT_PORT, 0);
	if (rc != 0)
		log_error("cannot wait for packets: %s", strerror(-rc));
	return rc;
}

bool serve_must_leave(const struct server *server)
{
	return __atomic_load_n(&server->resume.must_leave, __ATOMIC_ACQUIRE);
}

int serve_table(const struct server *server)
{
	return server->resume.fd;
}

size_t serve_slow_fds(const struct server *server, int fds[SERVE_SLOW_FDS])
{
	const struct link *link = &server->uplink.link;
	size_t count = 0;

	/* A packet socket, and the link of an eBPF program, which stops to act without us. */
	if (link->port.through_kernel && server->gsi.netdev[0] != '\0' && link->port.wake_fd >= 0)
		fds[count++] = link->port.wake_fd;
	if (link->early_drop.memory)
		fds[count++] = link->early_drop.fd;
	return count;
}

bool serve_is_lost(const struct server *server)
{
	return __atomic_load_n(&server->uplink.lost, __ATOMIC_ACQUIRE);
}

/* Set the members that follow from the configuration. The server is all zero before. */
static void serve_init(struct server *server, const struct serve_config *config)
{
	const struct settings *settings = &config->settings[config->number];

	server->arena.fd = server->epoll_fd = server->pending_clients.trusted.fd = server->wake_fd =
		-1;
	server->status.report_fd = server->pending_clients.isolated.fd = server->uplink.port_fd =
		server->pending_clients.spare_fd = -1;
	server->gsi.manager_fd = server->resume.fd = server->resume.next_fd = -1;
	pending_client_init(server);
	if (settings->capture != SETTINGS_CAPTURE_NO)
		snprintf(server->capture.prefix, sizeof(server->capture.prefix), "%s",
			 serve_file_prefix(settings));
	server->status.reports = config->reports;
	server->ports = RTE_MAX(config->ports, 1u);
	server->number = config->number;
	if (config->ports > 1 || strcmp(settings->name, SETTINGS_DEFAULT_NAME) != 0)
		snprintf(server->name, sizeof(server->name), "%s", settings->name);
	server->arena.held_max = settings->max_buffers ? settings->max_buffers : SHARE_HELD_MAX;
	server->arena.held_back = impair_config_buffers(settings->impair);
	server->slots.max = SERVE_SLOTS_MAX;
	server->slots.max_qp = settings->max_qp;
	server->slots.max_memory = settings->max_memory;
	memcpy(server->slots.cc, settings->cc, sizeof(server->slots.cc));
	LIST_INIT(&server->groups);
	LIST_INIT(&server->directs.list);
	xrc_init(&server->xrc);
	server->unread_looks.wake_ns = UINT64_MAX;
	tenants_init(&server->tenants);
	server->tenant_limits = config->tenants;
	/* Packets that are captured must pass through the owner, with an ICRC. */
	server->directs.spares_icrc = settings->hand_over == SETTINGS_HAND_OVER_DIRECT &&
				      settings->capture != SETTINGS_CAPTURE_ALL;
	server->directs.passes_all = settings->hand_over == SETTINGS_HAND_OVER_OWNER ||
				     settings->capture == SETTINGS_CAPTURE_ALL;
	snprintf(server->unique, sizeof(server->unique), "%s",
		 settings->netdev[0] ? settings->netdev : settings->port);
}

int serve_prepare(const struct serve_config *config, struct server **out)
{
	struct server *server = calloc(1, sizeof(*server));
	int rc;

	if (!server)
		return -ENOMEM;
	serve_init(server, config);
	blocks_init(&server->slots.blocks);
	rc = arbiter_create(&server->gsi.arbiter);
	if (rc == 0 && !config->guest)
		rc = uplink_prepare(server, config);
	if (rc == 0)
		rc = serve_open_events(server);
	if (rc == 0)
		rc = serve_listen(server, config);
	if (rc == 0)
		*out = server;
	else
		serve_destroy(server);
	return rc;
}

int serve_take_sockets(struct server *server)
{
	const int rc = listen_take(&server->pending_clients.trusted);
	const int rc_isolated = listen_take(&server->pending_clients.isolated);

	return rc != 0 ? rc : rc_isolated;
}

int serve_open(struct server *server, const struct serve_config *config)
{
	const struct settings *settings = &config->settings[config->number];
	int rc;

	rc = config->guest ? uplink_open_guest(server, config) : uplink_open(server, settings);
	if (rc != 0)
		return rc;
	psocks_init(server, settings);
	resume_open(server, config);
	rc = serve_watch_ports(server);
	if (rc != 0)
		return rc;
	uplink_check(server);
	rc = status_open_report(server, settings);
	if (rc != 0) {
		log_error("no memory for the report of uroced: %s", strerror(-rc));
		return rc;
	}
	server->uplink.conn_due_ns = UINT64_MAX;
	if (port_has_conn(&server->uplink.link.port))
		uplink_conn_run(server);
	return 0;
}

int serve_create(const struct serve_config *config, struct server **server)
{
	int rc = serve_prepare(config, server);

	if (rc != 0)
		return rc;
	rc = serve_take_sockets(*server);
	if (rc == 0)
		rc = serve_open(*server, config);
	if (rc == 0)
		return 0;
	serve_destroy(*server);
	*server = NULL;
	return rc;
}

/* Do the periodic checks. */
static void serve_look_around(struct server *server)
{
	uint8_t frame[LINK_REPLY_MAX];
	bool changed;
	size_t len;

	if (server->now_ns < server->uplink.link_due_ns)
		return;
	server->uplink.link_due_ns = server->now_ns + LINK_PERIOD_NS;
	uplink_check(server);
	status_answer_report(server);
	psocks_check(server);
	xrc_send_waiting(server);
	changed = link_refresh(&server->uplink.link);
	for (uint16_t i = 0; i < server->slots.live_count; i++) {
		if (changed || server->slots.all[server->slots.live[i]].addresses_due)
			control_send_addresses(server, server->slots.live[i]);
	}
	while ((len = link_report(&server->uplink.link, server->now_ns, frame)) > 0) {
		if (!forward_send_copy(server, frame, len))
			break;
	}
}

static void serve_say_asleep(struct server *server, uint32_t asleep)
{
	for (uint16_t i = 0; i < server->slots.live_count; i++) {
		const struct slot *slot = &server->slots.all[server->slots.live[i]];

		if (slot->isolated)
			isolated_listen(slot, asleep);
		else
			__atomic_store_n(&slot->page->owner_sleeps, asleep, __ATOMIC_RELAXED);
	}
}

/* Ask all sources of work to wake us. Return true if there is no work now. */
static bool serve_arm(struct server *server)
{
	serve_say_asleep(server, 1);
	/* Orders the stores before the loads: either we see what a process put, or it sees that we
	 * sleep. Pairs with client_wake_owner. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (server->uplink.pending_count > 0 || server_poll_waits(server) ||
	    port_arm(&server->uplink.link.port))
		return false;
	/* Interrupts that could not be switched on are given up. */
	if (server->uplink.link.port.wake_fd < 0)
		uplink_unwatch(server);
	return true;
}

/* Return the time until `due_ns` in milliseconds, but at most `ms`. */
static int serve_until_ms(uint64_t due_ns, uint64_t now_ns, int ms)
{
	if (due_ns <= now_ns)
		return 0;
	if (due_ns - now_ns >= (uint64_t)ms * SERVE_NS_PER_MS)
		return ms;
	return (int)((due_ns - now_ns) / SERVE_NS_PER_MS) + 1;
}

/* Return the milliseconds that the port does not need us, at most `ms`: it may hold packets back.
 * The last part of a millisecond is not slept. */
static int serve_port_ms(const struct server *server, int ms)
{
	const uint64_t in_ns = port_due_ns(&server->uplink.link.port);

	return (int)RTE_MIN((uint64_t)ms, in_ns / SERVE_NS_PER_MS);
}

/* Return how long the owner may sleep, at most `ms`, before it must look at something that does
 * not wake it. */
static int serve_longest_ms(const struct server *server, int ms)
{
	const bool is_told = server->uplink.link.port.wake_fd >= 0 || server->uplink.lost;
	const uint64_t now_ns = event_now_ns();

	if (!is_told || (server->kernel.is_open && server->kernel.port.wake_fd < 0))
		ms = RTE_MIN(ms, POLL_MS);
	ms = serve_until_ms(server->uplink.conn_due_ns, now_ns, ms);
	ms = serve_until_ms(arbiter_due_ns(server->gsi.arbiter), now_ns, ms);
	ms = serve_until_ms(server->tenants.due_ns, now_ns, ms);
	ms = serve_until_ms(server->unread_looks.wake_ns, now_ns, ms);
	ms = mad_queue_longest_ms(server, ms);
	ms = serve_port_ms(server, ms);
	if (unlikely(server->resume.gathers))
		ms = RTE_MIN(ms, POLL_MS);
	return pause_longest_ms(server, ms);
}

void serve_sleep(struct server *server, int ms)
{
	struct epoll_event event;

	if (event_now_ns() >= server->uplink.conn_due_ns)
		uplink_conn_run(server);
	change_take(server);
	serve_look_around(server);
	resume_check(server);
	pause_check(server);
	mads_disconnect_orphans(server);
	/* Some of these messages may be for processes of this owner. */
	if (ms != 0)
		server_poll_wake(server);
	ms = serve_longest_ms(server, ms);
	if (ms != 0 && !serve_arm(server))
		ms = 0;
	/* Handle one event, and then packets have their turn: no client can keep the thread from
	 * packets by sending many messages. Other events wait, and the one that has waited longest
	 * comes first. */
	if (epoll_wait(server->epoll_fd, &event, 1, ms) > 0)
		control_event(server, (enum server_event)(event.data.u64 >> 32),
			      (uint32_t)event.data.u64);
	serve_say_asleep(server, 0);
	if (ms != 0)
		port_disarm(&server->uplink.link.port);
}

unsigned int serve_poll(struct server *server)
{
	return server_poll_run(server);
}

void serve_wake(struct server *server)
{
	const uint64_t one = 1;

	/* The write does not fail: the counter is ours alone, and is not written often enough to
	 * fill it. */
	if (write(server->wake_fd, &one, sizeof(one)) < 0)
		return;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Tell the peers of all connections that these have ended: once, as far as the port takes the
 * messages. */
static void serve_tell_peers(struct server *server)
{
	for (int i = 0; i < TELL_POLLS && arbiter_due_ns(server->gsi.arbiter) <= server->now_ns;
	     i++) {
		mads_disconnect_orphans(server);
		forward_flush(server);
	}
}

void serve_release_manager(struct server *server)
{
	close_fd(server->gsi.manager_fd);
	server->gsi.manager_fd = -1;
}

/* Return true if the next owner can open the port while this one still closes it. It cannot while
 * captures are possible: EAL keeps files for them, which only one process can have. */
static bool serve_shares_port(const struct server *server)
{
	return serve_must_leave(server) && server->gsi.netdev[0] != '\0' &&
	       server->capture.prefix[0] == '\0';
}

static void serve_close_port(struct server *server)
{
	if (server->uplink.link.port.started)
		port_close(&server->uplink.link.port);
}

static void *serve_release_others(void *arg)
{
	struct server *server = arg;

	serve_release_manager(server);
	/* The next owner does not wait for this. */
	if (!serve_shares_port(server))
		early_drop_stop(&server->uplink.link.early_drop);
	return NULL;
}

/* Close the port, and let the next owner have it. The kernel waits for two grace periods before it
 * closes a packet socket with a ring, and for one before it closes that of the connection manager
 * or detaches an eBPF program. So another thread does the latter two meanwhile. */
static void serve_release_port(struct server *server)
{
	const bool shares = serve_shares_port(server);
	pthread_t closer;
	bool closes;

	closes = server->gsi.manager_fd >= 0 &&
		 pthread_create(&closer, NULL, serve_release_others, server) == 0;
	if (!closes)
		serve_release_manager(server);
	if (server->uplink.link.port.started)
		forward_flush(server);
	if (!shares)
		serve_close_port(server);
	if (closes)
		pthread_join(closer, NULL);
	if (serve_must_leave(server))
		close_fd(server->resume.next_fd);
	if (shares)
		serve_close_port(server);
}

void serve_destroy(struct server *server)
{
	/* Close the sockets first: a client that connects from now on learns that no owner is
	 * here. */
	const bool hands_over = resume_hand_over(server);

	/* The next owner has our listening sockets, or makes its own. */
	if (hands_over && serve_must_leave(server))
		server->pending_clients.trusted.path[0] = server->pending_clients.isolated.path[0] =
			'\0';
	listen_close(&server->pending_clients.trusted);
	listen_close(&server->pending_clients.isolated);
	pending_client_close_all(server);
	while (server->slots.live_count > 0)
		slot_close(server, server->slots.live[0]);
	kernel_close(server);
	if (server->uplink.link.port.started && !hands_over)
		serve_tell_peers(server);
	serve_release_port(server);
	port_destroy(&server->uplink.link.port);
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++)
		slot_abandon(server, i);
	report_set_remove(server->status.reports, server->status.report);
	close_fd(server->status.report_fd);
	directs_destroy(server);
	close_fd(server->epoll_fd);
	close_fd(server->wake_fd);
	close_fd(server->pending_clients.spare_fd);
	arena_destroy(server);
	resume_close(server);
	arbiter_destroy(server->gsi.arbiter);
	change_fini(server);
	if (server->capture.prefix[0] != '\0')
		runtime_remove_files(server->capture.prefix);
	free(server);
}
