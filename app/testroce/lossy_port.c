/* SPDX-License-Identifier: BSD-3-Clause */
/* Drop received packets on request, in a wrapper around the rx_burst of each engine's port. The
 * port itself may have been impaired when it was opened; this can also begin and end between two
 * tests. */
#include "lossy_port.h"

#include <errno.h>

#include "device/device.h"
#include "impair/impair_path.h"
#include "port/port.h"

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
