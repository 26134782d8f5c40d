/* SPDX-License-Identifier: BSD-3-Clause */
/* The device under test, threads that have a handle of it each, and packets that its ports lose. */
#include "nic.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <rte_lcore.h>

#include "base/tuning.h"
#include "device/device.h"
#include "engine/engine.h"
#include "impair/impair_path.h"
#include "plan.h"
#include "port/port.h"
#include "verbs_internal.h"

#define MILLION	  UINT64_C(1000000)
#define BURST_MAX 1024 /* larger than any burst */

/* What one engine loses. The engine's owner reads, and whoever holds the engine writes. */
struct loss {
	const void *arg; /* of the operations */
	const struct port_ops
		*below;	       /* the port's own table; NULL: the engine has lost nothing yet */
	struct port_ops lossy; /* the same table with a lossy rx_burst */
	struct impair_config config;
	struct impair_counts counts;
	struct impair_path path;
};

static struct loss losses[DEVICE_ENGINES_MAX];

static struct loss *loss_of(const void *arg)
{
	struct loss *loss = losses;

	while (loss->arg != arg)
		loss++;
	return loss;
}

static uint16_t lossy_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct loss *loss = loss_of(arg);
	const uint16_t taken = loss->below->rx_burst(arg, mbufs, n);

	if (loss->config.loss == 0)
		return taken;
	for (uint16_t i = 0; i < taken; i++)
		impair_path_put(&loss->path, mbufs[i], NULL, true, 0);
	return impair_path_get(&loss->path, mbufs, taken, 0);
}

/*
 * Replace an engine's table by one that is lossy. It stays: its removal would have to wait until no
 * burst call is running. A port without an `open` function belongs to another process or to the
 * application, and is refused.
 */
static int lossy_port_begin(struct loss *loss, struct port *port, uint32_t engine)
{
	if (loss->below)
		return 0;
	if (engine == 0 && !port->ops->open)
		return -ENOTSUP;
	loss->arg = port->ops_arg;
	loss->below = port->ops;
	loss->lossy = *port->ops;
	loss->lossy.rx_burst = lossy_rx_burst;
	port->ops = &loss->lossy;
	if (!port->impaired)
		port->impaired = &loss->counts;
	return 0;
}

int lossy_port_set(struct port *port, uint32_t engine, uint64_t per_million, uint64_t seed)
{
	struct loss *loss = &losses[engine];
	int rc = per_million > 0 ? lossy_port_begin(loss, port, engine) : 0;

	if (rc != 0)
		return rc;
	impair_path_fini(&loss->path);
	loss->config = (struct impair_config){
		.loss = (uint64_t)((unsigned __int128)per_million * IMPAIR_ALL / MILLION),
		.limit = BURST_MAX,
		.seed = seed,
	};
	rc = impair_path_init(&loss->path, &loss->config, engine, &loss->counts);
	if (rc != 0)
		loss->config.loss = 0;
	return rc;
}

static bool lcores_used;

static void keep_to(const cpu_set_t *cpus)
{
	pthread_setaffinity_np(pthread_self(), sizeof(*cpus), cpus);
}

void nic_thread_use_lcores(void)
{
	unsigned int lcore;
	cpu_set_t all;

	CPU_ZERO(&all);
	RTE_LCORE_FOREACH(lcore)
	{
		const cpu_set_t cpus = rte_lcore_cpuset(lcore);

		CPU_OR(&all, &all, &cpus);
	}
	keep_to(&all);
	lcores_used = true;
}

void nic_thread_pin(uint32_t number)
{
	unsigned int lcore;
	cpu_set_t cpus;

	if (!lcores_used)
		return;
	lcore = rte_get_main_lcore();
	if (number % rte_lcore_count() > 0)
		lcore = rte_get_next_lcore(UINT_MAX, 1, 0);
	for (uint32_t i = number % rte_lcore_count(); i > 1; i--)
		lcore = rte_get_next_lcore(lcore, 1, 0);
	cpus = rte_lcore_cpuset(lcore);
	keep_to(&cpus);
}

static void *nic_thread_main(void *arg)
{
	struct nic_thread *thread = arg;
	int rc;

	nic_thread_pin(thread->number);
	rc = nic_share(thread->first, &thread->nic);
	thread->rc = rc;
	sem_post(&thread->ready);
	if (rc != 0)
		return NULL;
	thread->run(thread->arg);
	nic_unshare(&thread->nic);
	return NULL;
}

int nic_thread_start(struct nic_thread *thread, uint32_t number, const struct nic *nic,
		     void (*run)(void *arg), void *arg)
{
	int rc;

	thread->number = number;
	thread->first = nic;
	thread->run = run;
	thread->arg = arg;
	sem_init(&thread->ready, 0, 0);
	rc = -pthread_create(&thread->thread, NULL, nic_thread_main, thread);
	if (rc != 0)
		return rc;
	while (sem_wait(&thread->ready) != 0 && errno == EINTR)
		;
	rc = thread->rc;
	if (rc != 0)
		nic_thread_join(thread);
	return rc;
}

void nic_thread_join(struct nic_thread *thread)
{
	pthread_join(thread->thread, NULL);
}

/* Choose the GID of the first IPv4 address, or the first RoCEv2 GID if there is no IPv4 address. */
static int nic_find_gid(struct nic *nic)
{
	static const uint8_t ipv4[12] = {[10] = 0xff, 0xff};
	struct ibv_gid_entry entry;
	int found = -1;

	for (uint32_t i = 0; i < UINT8_MAX; i++) {
		if (ibv_query_gid_ex(nic->context, 1, i, &entry, 0) != 0 ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		if (found >= 0 && memcmp(entry.gid.raw, ipv4, sizeof(ipv4)) != 0)
			continue;
		found = (int)i;
		nic->gid = entry.gid;
		if (memcmp(entry.gid.raw, ipv4, sizeof(ipv4)) == 0)
			break;
	}
	if (found < 0)
		return -EADDRNOTAVAIL;
	nic->gid_index = (uint8_t)found;
	return 0;
}

int nic_open(struct nic *nic)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	const char *what = "no RDMA device";
	int rc = -ENODEV;

	memset(nic, 0, sizeof(*nic));
	if (list && list[0])
		nic->context = ibv_open_device(list[0]);
	if (list)
		ibv_free_device_list(list);
	if (nic->context) {
		what = "no domain or completion queue";
		rc = -ENOMEM;
		nic->pd = ibv_alloc_pd(nic->context);
		nic->idle_cq = ibv_create_cq(nic->context, 1, NULL, NULL, 0);
	}
	if (nic->pd && nic->idle_cq) {
		what = "the device has no address for RoCEv2";
		rc = nic_find_gid(nic);
	}
	if (rc != 0)
		fprintf(stderr, "testroce: %s\n", what);
	return rc;
}

void nic_close(struct nic *nic)
{
	ibv_destroy_cq(nic->idle_cq);
	ibv_dealloc_pd(nic->pd);
	ibv_close_device(nic->context);
}

int nic_share(const struct nic *nic, struct nic *own)
{
	*own = *nic;
	own->idle_cq = ibv_create_cq(nic->context, 1, NULL, NULL, 0);
	return own->idle_cq ? 0 : -ENOMEM;
}

void nic_unshare(struct nic *own)
{
	ibv_destroy_cq(own->idle_cq);
}

static const struct device *device_of(const struct nic *nic)
{
	return face_context(nic->context)->device;
}

void nic_counters(const struct nic *nic, struct counters *counters)
{
	device_counters(device_of(nic), counters);
}

uint64_t nic_ns(const struct nic *nic, uint64_t tsc)
{
	const struct engine *engine = device_first(device_of(nic))->driver;

	return (uint64_t)((unsigned __int128)tsc * engine->clock.ns_per_tsc >> CLOCK_SHIFT);
}

static const char *const progress_names[] = {
	[SETTINGS_PROGRESS_HYBRID] = "hybrid",
	[SETTINGS_PROGRESS_INLINE] = "inline",
	[SETTINGS_PROGRESS_DEDICATED] = "dedicated",
};

const char *nic_progress(const struct nic *nic)
{
	const struct engine *engine = device_first(device_of(nic))->driver;

	return progress_names[engine->progress];
}

/* Set the tunings with all engines stopped: they are read only within a poll of an engine. */
void nic_without(const struct nic *nic, uint64_t without)
{
	const struct device *device = device_of(nic);
	char names[PLAN_NAMES_MAX];

	plan_without_names(without, names, sizeof(names));
	device_lock(device);
	tuning_without(names);
	device_unlock(device);
}

int nic_set_loss(const struct nic *nic, uint64_t per_million, uint64_t seed)
{
	const struct device *device = device_of(nic);
	int rc = 0;

	device_lock(device);
	for (uint32_t i = 0; rc == 0 && i < device->engine_count; i++) {
		const struct engine *engine = device->engines[i]->driver;

		rc = lossy_port_set(&engine->link->port, i, per_million, seed);
	}
	device_unlock(device);
	return rc;
}

int nic_set_progress(const struct nic *nic, const char *progress)
{
	for (size_t i = 0; i < RTE_DIM(progress_names); i++)
		if (strcmp(progress_names[i], progress) == 0)
			return engine_set_progress(device_first(device_of(nic))->driver,
						   (enum settings_progress)i);
	return -EINVAL;
}
