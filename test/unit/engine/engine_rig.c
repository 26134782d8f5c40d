/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine on the fake's port, and two queue pairs. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/engines.h"
#include "engine_rig.h"
#include "skipped.h"
#include "test.h"

#define SKIPPED 77 /* as Meson understands it */

struct engine *engine;
struct qp qp, other;
const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 0x99};
const struct engine_ops *const ops = &engine_ops_pmd;

int rig_group_set_up(TEST_STATE)
{
	if (!fake_start()) {
		skipped_for("EAL does not start here, or has no net_ring driver");
		exit(SKIPPED);
	}
	return 0;
}

int rig_begin(enum settings_progress progress)
{
	engine = fake_engine(progress);
	fake_qp_init(&qp, peer_mac);
	fake_qp_init(&other, peer_mac);
	return engine ? 0 : -1;
}

int rig_set_up(TEST_STATE)
{
	return rig_begin(SETTINGS_PROGRESS_INLINE);
}

int rig_tear_down(TEST_STATE)
{
	fake_engine_end(engine);
	return 0;
}

static uint16_t queue_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	(void)arg, (void)mbufs, (void)n;
	return 0;
}

static uint16_t queue_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	(void)arg;
	rte_pktmbuf_free_bulk(mbufs, n);
	return n;
}

static bool queue_arm(void *arg)
{
	(void)arg;
	return false;
}

static bool queue_connected(void *arg)
{
	(void)arg;
	return true;
}

static int rig_open_queue(void *arg, uint32_t number, uint32_t count, struct port *queue)
{
	static const struct port_ops queue_ops = {
		.rx_burst = queue_rx_burst,
		.tx_burst = queue_tx_burst,
		.arm = queue_arm,
		.connected = queue_connected,
	};

	(void)arg, (void)number, (void)count;
	queue->ops = &queue_ops;
	return 0;
}

struct engine *rig_add_engine(void)
{
	static struct device_engine home;
	static struct port_ops opening_ops;
	struct device *device = engine->device;
	struct port *port = &engine->link->port;

	memset(&home, 0, sizeof(home));
	home.device = device;
	home.number = 1;
	TAILQ_INIT(&home.waiting);
	moderator_init(&home.moderator);
	device->engines[1] = &home;
	device->engine_count = 2;
	opening_ops = *port->ops;
	opening_ops.open_queue = rig_open_queue;
	port->ops = &opening_ops;
	return engines_create(engine) == 0 && engines_add(engine, 1) == 0 ? home.driver : NULL;
}

uint64_t rig_count(enum counter counter)
{
	return device_counter(engine->device, counter);
}

void rig_send(struct qp *sender, unsigned int n)
{
	sender->to_send = n;
	engine_mark_ready(engine, sender);
}

void rig_polls(int n)
{
	while (n-- > 0) {
		assert_true(engine_try(engine));
		engine_poll(engine);
		engine_release(engine);
	}
}

bool rig_eventually(const unsigned int *value, unsigned int want)
{
	for (int i = 0; i < TIMEOUT_MS; i++) {
		if (__atomic_load_n(value, __ATOMIC_ACQUIRE) == want)
			return true;
		usleep(1000);
	}
	return false;
}

void rig_empty_port(void)
{
	struct rte_mbuf *mbufs[32];
	uint16_t n;

	while ((n = port_rx_burst(&engine->link->port, mbufs, 32)) > 0)
		rte_pktmbuf_free_bulk(mbufs, n);
}

void rig_add_address(const uint8_t gid[GID_LEN])
{
	struct address address = {.prefix_len = 24, .vlan = VLAN_NONE};

	memcpy(address.gid, gid, GID_LEN);
	addresses_add(&engine->link->addresses, &address);
}
