/* SPDX-License-Identifier: BSD-3-Clause */
/* The device under test, as programs get it, and the little of its inside that no verb tells. */
#ifndef TESTROCE_NIC_H
#define TESTROCE_NIC_H

#include <stdint.h>

#include <infiniband/verbs.h>

#include "telemetry/counters.h"

struct nic {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *idle_cq; /* always empty: to poll it is to give the engine a turn */
	union ibv_gid gid;
	uint8_t gid_index;
};

/** Open the first device there is. Not MT-safe. 0 or -errno; says on stderr what is wrong. */
int nic_open(struct nic *nic);
void nic_close(struct nic *nic);

/** Let the engine work while there is no queue of a test to poll. */
static inline void nic_turn(const struct nic *nic)
{
	struct ibv_wc wc;

	ibv_poll_cq(nic->idle_cq, 1, &wc);
}

/* Values from inside the engine. */

/** Copy the device's counters. MT-safe. */
void nic_counters(const struct nic *nic, struct counters *counters);

/** Nanoseconds of so many ticks of the time stamp counter, by the engine's clock. MT-safe. */
uint64_t nic_ns(const struct nic *nic, uint64_t tsc);

/** Do without these optimisations: a bit each, in the order of base/tuning.h. Not MT-safe. */
void nic_without(const struct nic *nic, uint64_t without);

/** Lose so many of a million packets that come. Not MT-safe. 0; or -ENOTSUP where the port is
 * another process's. */
int nic_set_loss(const struct nic *nic, uint64_t per_million, uint64_t seed);

/** Have it moved by another: "hybrid", "inline" or "dedicated". Not MT-safe. 0 or -errno. */
int nic_set_progress(const struct nic *nic, const char *progress);

/** "hybrid", "inline" or "dedicated". MT-safe. */
const char *nic_progress(const struct nic *nic);

#endif
