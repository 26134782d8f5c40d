/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens the device that the settings in the environment name, when the program first asks for
 * devices. If that fails, the process exits with code 1 and one line on stderr: the user has asked
 * for this port by name, and would otherwise read only that there are no RDMA devices.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "alone.h"
#include "attach/attach.h"
#include "base/cpus.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/own.h"
#include "base/meter.h"
#include "base/reason.h"
#include "base/tuning.h"
#include "check/finding.h"
#include "like/like.h"
#include "config/settings.h"
#include "device/device.h"
#include "device/registry.h"
#include "publish.h"
#include "eal/cpu.h"
#include "eal/footprint.h"
#include "engine/engines.h"
#include "engine/engine.h"
#include "helper.h"
#include "mem/pager.h"
#include "net/link.h"
#include "owning.h"
#include "paging.h"
#include "port/conn_thread.h"
#include "port/impair.h"
#include "report/write.h"
#include "transport/cc.h"

#define ERROR_MAX    256
#define PEER_WAIT_NS UINT64_C(1000000000)
#define NIC_WAIT_NS  UINT64_C(6000000000) /* copper agrees on a speed in some 4 s */

#define PORTS_MAX SETTINGS_PORTS_MAX

#define MODULES "/sys/module"

/* constant after the start */
static struct engine *provider_engines[PORTS_MAX];
static struct link provider_links[PORTS_MAX];
static struct alone provider_alone[PORTS_MAX];
static uint32_t provider_count;

static const struct owning *owning; /* NULL: a process of this library cannot own a port */

void provider_set_owning(const struct owning *table)
{
	owning = table;
}

/* Return the settings of the port that the program has attached, or NULL. */
static const struct settings *provider_attached_port(void)
{
	return owning ? owning->attached_port() : NULL;
}

static int provider_end_one(struct engine *engine, void *arg)
{
	(void)arg;
	engine_end(engine);
	return 0;
}

/* The first engine ends last, because it closes the port. */
static void provider_exit(void)
{
	for (uint32_t i = 0; i < provider_count; i++) {
		struct engine *first = provider_engines[i];

		engines_each_other(first->engines, provider_end_one, NULL);
		engine_end(first);
	}
}

static bool provider_is_child; /* the parent process had started a device */

static int provider_disown_one(struct engine *engine, void *arg)
{
	(void)arg;
	engine_disown(engine);
	return 0;
}

static void provider_after_fork(void)
{
	provider_is_child = true;
	for (uint32_t i = 0; i < provider_count; i++) {
		struct engine *first = provider_engines[i];

		engines_each_other(first->engines, provider_disown_one, NULL);
		engine_disown(first);
	}
	provider_count = 0;
}

/* Install the handlers for fork and exit. A child inherits them. */
static void provider_watch(void)
{
	if (provider_is_child)
		return;
	pthread_atfork(NULL, NULL, provider_after_fork);
	if (atexit(provider_exit) != 0)
		log_warn("no room for an exit handler: packets of the last moment may be lost");
}

static int provider_empty_port(struct engine *engine, void *arg)
{
	(void)arg;
	engine_empty_port(engine);
	return 0;
}

static int provider_check_link(struct engine *engine, void *arg)
{
	(void)arg;
	engine_check_link(engine);
	return 0;
}

/* Stop all engines, and receive the packets in their rings: the rings will be unmapped. A poll of
 * the first engine may stop the others itself, so it comes before they are stopped. */
static void provider_conn_enter(void *arg)
{
	struct engine *first = arg;

	guard_serve();
	engine_lock(first);
	engine_empty_port(first);
	if (likely(engines_stop_others(first->engines))) {
		engines_each_other(first->engines, provider_empty_port, NULL);
		return;
	}
	/* The process ends, and a thread may be in an engine that nobody could stop. */
	engines_start_others(first->engines);
	engine_release(first);
	for (;;)
		pause();
}

static void provider_conn_leave(void *arg)
{
	struct engine *first = arg;

	engines_each_other(first->engines, provider_check_link, NULL);
	engines_start_others(first->engines);
	/* A first engine that finds its port lost stops the others itself. */
	engine_check_link(first);
	engine_release(first);
	guard_pause();
}

static bool provider_ended(void *arg)
{
	const struct engine *engine = arg;

	return __atomic_load_n(&engine->ended, __ATOMIC_ACQUIRE);
}

static const struct conn_thread_ops provider_conn_ops = {
	.enter = provider_conn_enter,
	.leave = provider_conn_leave,
	.ended = provider_ended,
};

/* Return the congestion control that the program chooses, or else the port's owner. */
static enum cc_kind provider_cc(const struct settings *settings, const struct share_facts *facts)
{
	const char *name = settings->cc[0] != '\0' ? settings->cc : facts->cc;
	const enum cc_kind kind = cc_find(name);

	return kind == CC_KINDS ? CC_NONE : kind;
}

static uint32_t provider_wanted_engines(const struct settings *settings)
{
	if (settings->engines == SETTINGS_ENGINES_AUTO)
		return RTE_MIN(cpus_count(), (unsigned int)SETTINGS_ENGINES_MAX);
	return RTE_MAX(settings->engines, 1u);
}

/* Return how many engines the device has: as many as the user wants, if the open port has a queue
 * for each. */
static uint32_t provider_engine_count(const struct settings *settings, const struct port *port)
{
	const uint32_t wanted = provider_wanted_engines(settings);
	const uint32_t queues = port_queues(port);
	const char *name = port->devargs.name[0] ? port->devargs.name : "uroced";

	if (wanted <= queues)
		return wanted;
	log_print(settings->engines == SETTINGS_ENGINES_AUTO ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
		  "'%s' has queues for %u engine%s: the device has no more, not %u", name, queues,
		  queues == 1 ? "" : "s", wanted);
	return queues;
}

/*
 * Soft-RoCE gets each RoCE packet to an address of its host. Before a fix of 2026 it reads beyond a
 * packet with an opcode that it does not know, and so the kernel may crash. So do not say to peers
 * that they may send one while Soft-RoCE is loaded. Later it cannot have the UDP port that a kernel
 * interface of ours occupies.
 */
static enum sack_use provider_sack(const struct settings *settings)
{
	if (settings->sack == SETTINGS_SACK_YES)
		return SACK_ALWAYS;
	if (settings->sack == SETTINGS_SACK_NO || access(MODULES, F_OK) != 0 ||
	    access(MODULES "/rdma_rxe", F_OK) == 0)
		return SACK_NEVER;
	return SACK_INTRODUCED;
}

static int provider_make_device(const struct settings *settings, const struct share_facts *facts,
				const struct link *link, struct device **device)
{
	const char *name = facts->name[0] ? facts->name : settings->name;
	struct device_config config = {
		.qpn_first = facts->qpn_first,
		.qpn_count = facts->qpn_count,
		.qp_limit = facts->max_qp,
		.engines = provider_engine_count(settings, &link->port),
		.sack = provider_sack(settings),
		.mr_limit_bytes = facts->max_memory,
		.port_mtu_bytes = link->port.mtu_bytes,
		.link_mbps = link->port.link_mbps,
		.cc = provider_cc(settings, facts),
		.mac_is_random = link->port.mac_is_random,
		.unique = facts->unique,
	};
	int rc;

	snprintf(config.name, sizeof(config.name), "%s", name);
	memcpy(config.mac, link->port.mac, sizeof(config.mac));
	rc = device_create(&config, device);
	/* device_create logs wrong arguments itself. */
	if (rc != 0 && rc != -EINVAL)
		log_error("cannot make device '%s': %s", name, strerror(-rc));
	if (rc != 0)
		return rc;
	gids_sync(*device, link);
	return 0;
}

void provider_size_pool(const struct settings *settings, struct link *link)
{
	/* How many queues the port has is known only when it is open. */
	link->port.engines = link->port.ops && link->port.ops->open_queue
				     ? provider_wanted_engines(settings)
				     : 1;
	link->port.mbufs *= link->port.engines;
}

/* Return true if the port is another process's. */
static bool provider_has_no_port(const struct settings *settings)
{
	return !provider_attached_port() && settings->netdev[0] == '\0' &&
	       settings->port[0] == '\0';
}

static bool provider_isolates(const struct settings *settings)
{
	return provider_has_no_port(settings) && settings->isolated[0] != '\0';
}

static bool provider_attaches(const struct settings *settings)
{
	return provider_has_no_port(settings) && settings->isolated[0] == '\0';
}

static int provider_isolate(const struct settings *settings, struct link *link, int report_fd,
			    struct share_facts *facts)
{
	int rc;

	rc = share_isolate(link, settings->isolated, report_fd, facts);
	if (rc == 0)
		rc = impair_prepare(&link->port, settings->impair);
	/* Only telemetry needs EAL. The parent's cannot be used. */
	if (rc == 0 && settings->telemetry && !provider_is_child)
		rc = owning->start_runtime(settings, link);
	return rc == 0 ? port_open(&link->port) : rc;
}

static int provider_attach(const struct settings *settings, struct link *link, uint32_t number,
			   int report_fd, struct share_facts *facts)
{
	int rc;

	/* All packets pass the bad network in one place. */
	link->port.engines = settings->impair[0] ? 1 : provider_wanted_engines(settings);
	rc = share_attach(link, settings->socket, number, report_fd, facts);
	return rc == 0 ? impair_prepare(&link->port, settings->impair) : rc;
}

struct link_request {
	const struct settings *settings;
	uint32_t number;
	int report_fd;
	struct share_facts *facts;
};

static int provider_get_link(void *arg)
{
	const struct link_request *request = arg;
	const struct settings *settings = request->settings;
	struct link *link = &provider_links[request->number];
	struct share_facts *facts = request->facts;
	int rc;

	if (provider_isolates(settings))
		return provider_isolate(settings, link, request->report_fd, facts);
	if (provider_attaches(settings))
		return provider_attach(settings, link, request->number, request->report_fd, facts);
	rc = owning->open_link(settings, link);
	if (provider_attached_port())
		snprintf(facts->unique, sizeof(facts->unique), "%s", link->port.devargs.name);
	else
		snprintf(facts->unique, sizeof(facts->unique), "%s",
			 settings->netdev[0] ? settings->netdev : settings->port);
	return rc;
}

/*
 * Wait until a memif client is connected to its server, so that the program's first packets are not
 * lost; or until the link of a NIC or a bond is up, because programs refuse a port that is down.
 */
static void provider_wait_for_peer(struct engine *engine)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	const uint64_t start_ns = clock_ns(&engine->clock);
	const struct port *port = &engine->link->port;
	/* Programs ask for the link state, which is set after `connected`. */
	const bool *there = port->link_comes ? &engine->device->link_up : &engine->tx.connected;

	if (!port->link_needs_server && !port->link_comes)
		return;
	while (!__atomic_load_n(there, __ATOMIC_ACQUIRE)) {
		if (clock_ns(&engine->clock) - start_ns >
		    (port->link_comes ? NIC_WAIT_NS : PEER_WAIT_NS)) {
			log_warn(port->link_comes
					 ? "port '%s' has no link yet: is its cable in, and its "
					   "switch's port on?"
					 : "port '%s' has no peer yet: no packet gets through "
					   "before its server has started",
				 port->devargs.name);
			return;
		}
		nanosleep(&pause, NULL);
		if (port->link_comes && engine_try(engine)) {
			engine_check_link(engine);
			engine_release(engine);
		}
	}
}

/* Choose the space of a device's CM ports: shared by all programs of uroced, by all programs on a
 * kernel interface, or private to this process; and let it share XRC domains. */
static void provider_set_ports(const struct settings *settings, uint32_t number,
			       struct device *device)
{
	device->xrc_share = share_xrc_ops(&provider_links[number], &device->xrc_share_user);
	device->cm_ports = share_ports(&provider_links[number], &device->cm_ports_user);
	/* Only the process with the UDP socket gets MADs to these addresses. */
	if (device->cm_ports || settings->netdev[0] == '\0' || settings->udp)
		return;
	device->cm_ports = alone_ports(&provider_alone[number], settings->netdev);
	device->cm_ports_user = &provider_alone[number];
}

static int provider_add_engines(struct engine *first)
{
	int rc;

	if (first->device->engine_count == 1)
		return 0;
	rc = engines_create(first);
	for (uint32_t i = 1; i < first->device->engine_count && rc == 0; i++)
		rc = engines_add(first, i);
	return rc;
}

static int provider_start_helper(struct engine *engine, void *arg)
{
	(void)arg;
	return helper_start(engine);
}

/* Start the threads of a device's engines. */
static int provider_start_helpers(struct engine *first)
{
	int rc = helper_start(first);

	if (rc == 0)
		rc = engines_each_other(first->engines, provider_start_helper, NULL);
	return rc;
}

/* The parts of a port that have been made so far. */
struct provider_port {
	struct link *link; /* NULL: not open */
	struct device *device;
	struct engine *engine; /* the first one */
	struct report *report;
	int report_fd;
};

/* Make the device of a port, with its engines, which do not run yet. */
static int provider_make_port(const struct settings *settings, uint32_t number,
			      struct share_facts *facts, struct provider_port *port)
{
	struct link_request request = {settings, number, -1, facts};
	int rc;

	/* The descriptor stays open: monitoring programs find the report through it. */
	rc = report_create(&port->report_fd, &port->report);
	if (rc != 0) {
		log_error("cannot make the report of the device: %s", strerror(-rc));
		return rc;
	}
	request.report_fd = port->report_fd;
	rc = cpu_run_ordinary(provider_get_link, &request);
	if (rc != 0)
		return rc;
	port->link = &provider_links[number];
	rc = provider_make_device(settings, facts, port->link, &port->device);
	if (rc != 0)
		return rc;
	provider_set_ports(settings, number, port->device);
	rc = engine_create(device_first(port->device), port->link, settings->progress,
			   &port->engine);
	return rc == 0 ? provider_add_engines(port->engine) : rc;
}

/* Write the constant facts of a device into its report, and a first report. */
static void show_begin(struct report *report, const struct share_facts *facts,
		       const struct link *link, struct device *device)
{
	const bool attached = link->remote != NULL;
	struct report_facts *shown = &report->facts;

	shown->role = attached ? REPORT_ATTACHED : REPORT_STANDALONE;
	shown->owner_pid = facts->owner_pid;
	shown->qpn_first = facts->qpn_first;
	shown->qpn_count = facts->qpn_count;
	snprintf(shown->device, sizeof(shown->device), "%s", device->config.name);
	snprintf(shown->port, sizeof(shown->port), "%s", facts->unique);
	shown->netdev = link->addresses.count > 0 && link->addresses.list[0].ifindex != 0;
	shown->udp = link->by_udp;
	shown->guid_be = device->node_guid_be;
	shown->mtu_bytes = link->port.mtu_bytes;
	shown->path_mtu = device->mtu;
	shown->link_mbps = link->port.link_mbps;
	memcpy(shown->mac, link->port.mac, sizeof(shown->mac));
	report_write_device(report, device);
}

/* Let the engines of a port run. */
static int provider_run_port(const struct settings *settings, const struct share_facts *facts,
			     const struct provider_port *port)
{
	struct engine *engine = port->engine;
	int rc = 0;

	show_begin(port->report, facts, port->link, port->device);
	engine->report = port->report;
	own_mark(port->report_fd);
	engine->canary_fd = port->report_fd;
	paging_start(engine);
	if (settings->telemetry && !provider_attaches(settings) && !provider_is_child)
		rc = owning->start_telemetry(port->report);
	if (rc == 0)
		rc = provider_start_helpers(engine);
	if (rc == 0 && port_has_conn(&port->link->port))
		rc = conn_thread_start(&port->link->port, &provider_conn_ops, engine);
	return rc;
}

static int provider_stop_helper(struct engine *engine, void *arg)
{
	(void)arg;
	if (engine) /* a further engine may be what could not be made */
		helper_stop(engine);
	return 0;
}

/*
 * Free what was made of a port that cannot be used: an application that called uroce_attach_port,
 * and the child of a fork, continue without it. What an attached child shares with the owner stays
 * until the child ends, as the owner expects.
 */
static void provider_drop_port(const struct provider_port *port)
{
	if (port->engine) {
		provider_stop_helper(port->engine, NULL);
		if (port->engine->engines)
			engines_each_other(port->engine->engines, provider_stop_helper, NULL);
		pager_destroy(port->device->pager);
		engines_destroy(port->engine->engines);
		engine_destroy(port->engine);
	}
	device_destroy(port->device);
	if (port->link)
		link_close(port->link);
	report_unmap(port->report);
	if (port->report_fd >= 0)
		close(port->report_fd);
}

/* Open one port. Set `ports` to the number of ports. */
static int provider_bring_port(const struct settings *settings, uint32_t number,
			       struct device **device, uint32_t *ports)
{
	struct provider_port port = {.report_fd = -1};
	struct share_facts facts = {0};
	int rc;

	rc = provider_make_port(settings, number, &facts, &port);
	*ports = facts.ports;
	if (rc == 0)
		rc = provider_run_port(settings, &facts, &port);
	if (rc != 0) {
		provider_drop_port(&port);
		return rc;
	}
	*device = port.device;
	provider_engines[provider_count++] = port.engine;
	provider_wait_for_peer(port.engine);
	publish_begin(port.engine, provider_count - 1);
	return 0;
}

/* Open the devices. An owner may share several ports. */
static int provider_bring(const struct settings *settings, struct device **devices, size_t max)
{
	const uint32_t first = provider_count; /* not 0: the program attaches one more port */
	const uint32_t room = (uint32_t)RTE_MIN(max, (size_t)(PORTS_MAX - first));
	uint32_t ports = 1;
	int rc = 0;

	for (uint32_t i = 0; i < RTE_MIN(ports, room) && rc == 0; i++) {
		rc = provider_bring_port(settings, first + i, &devices[provider_count - first],
					 &ports);
		/* Continue with the other ports if one was pulled out. */
		if (rc == -ENODEV && ports > 1)
			rc = 0;
	}
	if (rc == 0 && provider_count == first)
		rc = -ENODEV;
	if (rc == 0 && first == 0)
		provider_watch();
	return rc;
}

/* Open the devices so that a program which this one executes inherits nothing. */
static int provider_bring_quietly(const struct settings *settings, struct device **devices,
				  size_t max)
{
	struct footprint footprint;
	int rc;

	rc = footprint_save(&footprint);
	if (rc != 0) {
		log_error("cannot read this process's state from /proc: %s", strerror(-rc));
		return rc;
	}
	rc = provider_bring(settings, devices, max);
	/* A child has no thread of EAL's. */
	if (rc == 0 && owning && !provider_is_child && !provider_attaches(settings) &&
	    !provider_attached_port())
		owning->settle();
	footprint_restore(&footprint);
	return rc;
}

static enum store_way provider_stores(enum settings_stores stores)
{
	static const enum store_way ways[] = {
		[SETTINGS_STORES_AUTO] = STORE_WAYS,
		[SETTINGS_STORES_ROUND] = STORE_ROUND,
		[SETTINGS_STORES_PAST_CACHES] = STORE_PAST,
	};

	return ways[stores];
}

/* Return true if only a process with EAL can do what the settings say. */
static bool provider_needs_eal(const struct settings *settings)
{
	return !provider_has_no_port(settings) ||
	       (provider_isolates(settings) && settings->telemetry);
}

static int provider_check(const struct settings *settings)
{
	char error[ERROR_MAX];
	int rc = 0;

	if (settings->check != SETTINGS_CHECK_NO)
		rc = check_start(settings->check == SETTINGS_CHECK_ERROR, settings->check_suppress,
				 error, sizeof(error));
	if (rc != 0)
		log_error("%s", error);
	return rc;
}

/* Start the devices; see device/registry.h. */
static int provider_start(struct device **devices, size_t max)
{
	struct settings settings;
	char error[ERROR_MAX] = "";
	int rc;

	/* The program has called uroce_attach_port, so return the error to it. */
	if (provider_attached_port()) {
		if (provider_is_child)
			return -ENODEV;
		rc = provider_bring_quietly(provider_attached_port(), devices, max);
		return rc == 0 ? 1 : rc;
	}
	rc = settings_import(&settings, error, sizeof(error));
	if (rc == -ENOENT || max == 0)
		return 0;
	/* The port is the parent's, and DPDK cannot start again in a process that has its remains.
	 * The owner of another port gives the child a slot of its own. */
	if (provider_is_child && !provider_has_no_port(&settings))
		return -ENODEV;
	if (rc != 0) {
		log_error("%s", error);
	} else if (!owning && provider_needs_eal(&settings)) {
		log_error("UROCE_PORT, UROCE_NETDEV or UROCE_TELEMETRY was set after the program's "
			  "first call of verbs: set it before");
		rc = -ENOTSUP;
	} else {
		log_set_level((enum log_level)settings.log_level);
		reason_wanted = settings.explain;
		(void)like_choose(settings.like);
		rc = provider_check(&settings);
	}
	if (rc == 0) {
		/* The names were checked when they were set. */
		tuning_without(settings.without);
		store_force(provider_stores(settings.stores));
		rc = provider_bring_quietly(&settings, devices, max);
	}
	if (rc == 0)
		return (int)provider_count;
	/* The parent's program is running already, and may do without the device. */
	if (provider_is_child)
		return rc;
	/* Do not call exit(): its handlers may belong to threads and libraries that wait for locks
	 * that we hold. */
	fflush(stdout);
	_exit(1);
}

static const struct device_provider provider = {
	.start = provider_start,
};

static void __attribute__((constructor)) provider_register(void)
{
	registry_set_provider(&provider);
}
