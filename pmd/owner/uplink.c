/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the owner's port, and follows the state of its link. */
#include "uplink.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "arena.h"
#include "base/log.h"
#include "capture.h"
#include "config/settings.h"
#include "eal/runtime.h"
#include "event.h"
#include "forward.h"
#include "kernel.h"
#include "mads.h"
#include "netdev/manager.h"
#include "owner/serve.h"
#include "port/drivers.h"
#include "port/guest.h"
#include "resume.h"
#include "server.h"
#include "slot.h"
#include "server_poll.h"

#define LINK_PAUSE_NS	 10000000
#define CONN_POLLS	 64  /* enough to empty a memif connection's rings of the usual size */
#define LINK_TRIES	 600 /* copper agrees on a speed in some 4 s */
#define BUFFER_OVERHEAD	 384 /* bytes of an mbuf, and of what its pool keeps for it */
#define UPLINK_NS_PER_MS UINT64_C(1000000)

const char *serve_file_prefix(const struct settings *settings)
{
	return settings->file_prefix[0] ? settings->file_prefix : SETTINGS_DEFAULT_PREFIX;
}

/* Refuse drivers that accept buffers in DPDK's own memory only: they would send the wrong memory.
 */
static int uplink_check_driver(const struct devargs *devargs)
{
	if (devargs->bus != DEVARGS_OTHER && !devargs_is(devargs, VIRTIO_USER_DRIVER))
		return 0;
	log_error("port '%s' cannot be shared: uroced takes kernel interfaces, PCI devices and "
		  "virtual devices that copy",
		  devargs->name);
	return -EOPNOTSUPP;
}

/* List the hardware of all ports: EAL finds it when it starts, which is for the first port. */
static int uplink_find_hardware(const struct serve_config *config, struct devargs *devices,
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

/* Wait until the link is up, so that the first programs find it up: the two ends of a cable need
 * some seconds to agree on a speed. */
static void uplink_wait_for_link(const struct port *port)
{
	const struct timespec pause = {.tv_nsec = LINK_PAUSE_NS};
	int tries = LINK_TRIES;

	if (!port->link_comes)
		return;
	while (!port_connected(port) && tries-- > 0)
		nanosleep(&pause, NULL);
	if (tries < 0)
		log_warn("port '%s' has no link yet: is its cable in, and its switch's port on?",
			 port->devargs.name);
}

/* Become the connection manager of the kernel's interface. If that fails, programs that need no
 * rdma_cm still work. */
static void uplink_manage(struct server *server, const struct settings *settings)
{
	snprintf(server->gsi.netdev, sizeof(server->gsi.netdev), "%s", settings->netdev);
	server->gsi.manager_fd = manager_open();
	if (!mads_manage(server))
		log_warn("another program connects by rdma_cm on interface '%s': until it ends, "
			 "programs of this uroced cannot use rdma_cm",
			 settings->netdev);
}

static enum serve_dpdk uplink_dpdk_of(const struct settings *settings)
{
	struct devargs device;

	if (settings->eal[0] != '\0' || settings->capture != SETTINGS_CAPTURE_NO ||
	    settings->kernel[0] != '\0')
		return SERVE_DPDK_FIRST;
	if (settings->netdev[0] != '\0')
		return SERVE_DPDK_LATER;
	if (devargs_parse(settings->port, &device) != 0)
		return SERVE_DPDK_FIRST;
	if (devargs_is(&device, LOCAL_DRIVER))
		return SERVE_DPDK_NEVER;
	return devargs_is(&device, MEMIF_DRIVER) ? SERVE_DPDK_LATER : SERVE_DPDK_FIRST;
}

enum serve_dpdk serve_dpdk(const struct settings *settings, size_t count)
{
	enum serve_dpdk dpdk = SERVE_DPDK_NEVER;

	for (size_t i = 0; i < count; i++)
		dpdk = RTE_MAX(dpdk, uplink_dpdk_of(&settings[i]));
	return dpdk;
}

int uplink_prepare(struct server *server, const struct serve_config *config)
{
	const struct settings *settings = &config->settings[config->number];
	struct link *link = &server->uplink.link;
	struct devargs devices[SETTINGS_PORTS_MAX];
	struct runtime_config runtime = {.devices = devices,
					 .memory_bytes = (size_t)arena_buffers(server) *
							 BUFFER_OVERHEAD * server->ports,
					 .telemetry = true,
					 .eal = settings->eal[0] ? settings->eal : NULL,
					 .shared = settings->capture != SETTINGS_CAPTURE_NO,
					 .file_prefix = serve_file_prefix(settings)};
	int rc;

	server->arena.without_eal =
		serve_dpdk(config->settings, RTE_MAX(config->ports, 1u)) != SERVE_DPDK_FIRST;

	runtime_begin_tsc();
	/* The port uses the buffers of the processes. */
	link->port.make_pool = arena_make_pool;
	link->port.make_pool_arg = server;
	rc = link_prepare(link, settings);
	if (rc == 0)
		rc = uplink_check_driver(&link->port.devargs);
	if (rc == 0)
		rc = uplink_find_hardware(config, devices, &runtime.device_count);
	if (rc == 0 && !server->arena.without_eal)
		rc = runtime_start(&runtime);
	/* Without EAL the first call measures the rate of the TSC. Do it while the last owner still
	 * serves. */
	if (rc == 0)
		(void)runtime_tsc_hz();
	return rc;
}

int uplink_open(struct server *server, const struct settings *settings)
{
	struct link *link = &server->uplink.link;
	int rc;

	serve_begin(server);
	rc = link_open(link, settings);
	if (rc != 0)
		return rc;
	uplink_wait_for_link(&link->port);
	if (!settings->udp) /* only the process with the UDP socket gets MADs to these addresses */
		uplink_manage(server, settings);
	rc = kernel_open(server, settings);
	return rc == 0 ? capture_open(server, settings) : rc;
}

/* Do not change lcore ids here: they are the application's. */
int uplink_open_guest(struct server *server, const struct serve_config *config)
{
	struct link *link = &server->uplink.link;
	int rc;

	link->port.make_pool = arena_make_pool;
	link->port.make_pool_arg = server;
	rc = link_open_guest(link, config->guest, config->settings);
	snprintf(server->unique, sizeof(server->unique), "%s", link->port.devargs.name);
	return rc;
}

int uplink_watch(struct server *server)
{
	struct uplink *uplink = &server->uplink;
	int rc = 0;

	if (uplink->link.port.wake_fd >= 0) {
		uplink->port_fd = uplink->link.port.wake_fd;
		rc = event_watch(server, uplink->port_fd, EVENT_PORT, 0);
	}
	if (rc == 0 && port_has_conn(&uplink->link.port))
		rc = event_watch(server, port_conn_fd(&uplink->link.port), EVENT_CONN, 0);
	return rc;
}

void uplink_unwatch(struct server *server)
{
	if (server->uplink.port_fd >= 0)
		epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, server->uplink.port_fd, NULL);
	server->uplink.port_fd = -1;
}

/* End all slots, because the port has gone. The end of their sockets shows this to the processes,
 * as the loss of a port of their own would. */
static void uplink_lose(struct server *server)
{
	struct port *port = &server->uplink.link.port;

	log_error("%s was removed: attached programs get a fatal event",
		  link_name(&server->uplink.link));
	__atomic_store_n(&server->uplink.lost, true, __ATOMIC_RELEASE);
	uplink_unwatch(server);
	port_lose(port);
	resume_give_up(server);
	while (server->slots.live_count > 0)
		slot_dismiss(server, server->slots.live[0]);
}

void uplink_check(struct server *server)
{
	bool up;

	if (!server->uplink.lost && unlikely(port_lost(&server->uplink.link.port)))
		uplink_lose(server);
	server->uplink.connected = port_connected(&server->uplink.link.port);
	up = port_link_up(&server->uplink.link.port, server->uplink.connected);
	for (uint16_t i = 0; i < server->slots.live_count; i++) {
		struct slot *slot = &server->slots.all[server->slots.live[i]];

		if (slot->isolated)
			slot->addresses_due |= up != server->uplink.up;
		else
			__atomic_store_n(&slot->page->link_up, up, __ATOMIC_RELAXED);
	}
	/* Without a report the server has not begun to serve. */
	if (up != server->uplink.up && server->status.report)
		log_warn("%s: the link is %s", link_name(&server->uplink.link),
			 up ? "up again" : "down");
	server->uplink.up = up;
}

void uplink_conn_run(struct server *server)
{
	const struct port *port = &server->uplink.link.port;
	int ms;

	/* Packets that the other end sent before it went away are still in its rings, which will
	 * be unmapped. */
	for (int i = 0; i < CONN_POLLS && server_poll_run(server) > 0; i++)
		;
	port_conn_run(port);
	ms = port_conn_ms(port);
	server->uplink.conn_due_ns =
		ms < 0 ? UINT64_MAX : event_now_ns() + (uint64_t)ms * UPLINK_NS_PER_MS;
	uplink_check(server);
}
