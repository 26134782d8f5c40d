/* SPDX-License-Identifier: BSD-3-Clause */
/* A host: its device, and the application's objects on it. */
#include "sim_host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "mem/pd.h"
#include "queue/cq.h"
#include "sim.h"

const uint8_t group_mac[6] = {0x33, 0x33, 0, 0, 0, 9};

int host_resolve(const struct host *host, const union ibv_gid *dgid, uint8_t mac[6])
{
	const struct sim *sim = host->sim;

	if (memcmp(dgid, &sim->group, sizeof(*dgid)) == 0) {
		memcpy(mac, group_mac, 6);
		return 0;
	}
	for (unsigned int i = 0; i < sim->hosts; i++) {
		if (memcmp(dgid, &sim->host[i].gid, sizeof(*dgid)) == 0) {
			memcpy(mac, sim->host[i].mac, 6);
			return 0;
		}
	}
	return -ENETUNREACH;
}

void host_deliver(void *context, void *argument)
{
	struct host *host = context;
	struct frame *frame = argument;

	if (host->device == NULL) {
		free(frame);
		return;
	}
	engines_deliver(host, frame);
}

static void host_overrun(void *user)
{
	const struct host *host = ((struct host_cq *)user)->host;

	sim_fail(host->sim, "host %d: a completion queue overran", host->number);
}

void host_start(struct host *host, uint32_t cqe)
{
	struct device_config config = {.port_mtu_bytes = host->port_mtu,
				       .link_mbps = 100000,
				       .unique = "sim",
				       .engines = host->engine_count,
				       .cc = (enum cc_kind)(host->sim->variant.cc % CC_KINDS)};
	struct sim *sim = host->sim;

	snprintf(config.name, sizeof(config.name), "sim%d", host->number);
	memcpy(config.mac, host->mac, sizeof(config.mac));
	sim_check(sim, device_create(&config, &host->device) == 0, "device_create");
	engines_start(host);
	host->device->link_up = true;
	sim_check(sim, device_add_gid(host->device, &host->gid, -1, 0) == 0, "device_add_gid");
	sim_check(sim, pd_create(host->device->keys, &host->pd) == 0, "pd_create");
	absent_start(host);
	sim_check(sim, channel_init(&host->channel) == 0, "channel_init");
	fcntl(host->channel.fd, F_SETFL, O_NONBLOCK);
	rings_start(host, cqe);
	for (unsigned int i = 0; i < host->cq_count; i++) {
		struct host_cq *cq = &host->cqs[i];
		const struct cq_attr attr = {
			.cqe = cqe,
			.channel = host->pace.wakes != WAKES_NEVER ? &host->channel : NULL,
			.user = cq,
			.overrun = host_overrun,
			.domain = &host->rings.domain,
		};

		cq->host = host;
		cq->home = host->device->engines[cq->vector % host->engine_count];
		sim_check(sim, cq_create_in(&attr, &cq->cq) == 0, "cq_create_in");
		if (host->pace.wakes != WAKES_NEVER)
			cq_arm(cq->cq, host->pace.wakes == WAKES_SOLICITED);
	}
}

void host_stop(struct host *host)
{
	struct sim *sim = host->sim;

	memory_deregister(&host->memory);
	for (unsigned int i = 0; i < POOLS; i++) {
		if (host->pools[i].in_use)
			pool_stop(&host->pools[i]);
	}
	for (unsigned int i = 0; i < host->cq_count; i++)
		sim_check(sim, cq_destroy(host->cqs[i].cq) == 0, "host %d: cq_destroy",
			  host->number);
	rings_stop(host);
	channel_fini(&host->channel);
	sim_check(sim, pd_destroy(host->pd) == 0, "host %d: pd_destroy", host->number);
	engines_stop(host);
	device_destroy(host->device);
	host->device = NULL;
	memory_clear(&host->memory);
}

void host_fini(struct host *host)
{
	memory_fini(&host->memory);
	engines_fini(host);
}
