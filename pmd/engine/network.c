/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device needs of its network and its port (device/device_net.h, device/device_map.h), by
 * the first engine's link. */
#include <errno.h>
#include <string.h>

#include "device/device.h"
#include "engine/engine.h"
#include "engine/polling.h"

#define RESOLVE_TIMEOUT_NS UINT64_C(3000000000)
#define RESOLVE_STALE_NS   UINT64_C(500000000) /* after this, an old answer is better than none */
#define RESOLVE_PAUSE_NS   20000
#define UNMAP_WAIT_NS	   UINT64_C(100000000)
#define UNMAP_PAUSE_NS	   20000

/* Another process has the port, which answers, later if it is just restarted. It must not find the
 * engine waiting for it. */
static bool is_shared(const struct engine *engine)
{
	return engine->link->remote != NULL;
}

static int network_join(void *arg, const union ibv_gid *gid)
{
	struct engine *engine = arg;
	int rc;

	if (is_shared(engine))
		return engine_has_ended(engine) ? 0 : link_join(engine->link, gid->raw, 0);
	if (!engine_lock_unless_ended(engine))
		return 0;
	rc = link_join(engine->link, gid->raw, engine->now_ns);
	engine_ops_pmd.unlock(engine);
	return rc;
}

static void network_leave(void *arg, const union ibv_gid *gid)
{
	struct engine *engine = arg;
	uint8_t frame[LINK_REPLY_MAX];
	size_t len;

	if (is_shared(engine)) {
		if (!engine_has_ended(engine))
			(void)link_leave(engine->link, gid->raw, 0, frame, &len);
		return;
	}
	if (!engine_lock_unless_ended(engine))
		return;
	while (link_leave(engine->link, gid->raw, engine->now_ns, frame, &len)) {
		if (len > 0)
			engine_send_frame(engine, frame, len);
	}
	engine_ops_pmd.unlock(engine);
}

/* Do one step of address resolution: look the address up, and send a request if one is due. Return
 * true if `mac` is known. */
static bool resolve_step_locked(struct engine *engine, const struct address *from,
				const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	struct rte_mbuf *mbuf = tx_alloc(&engine->tx);
	size_t len = 0;
	bool known;

	if (!mbuf)
		return false;
	known = link_resolve(engine->link, NEIGH_TRUSTED, from, gid, clock_ns(&engine->clock), mac,
			     rte_pktmbuf_mtod(mbuf, uint8_t *), &len);
	if (len > 0)
		tx_send(&engine->tx, mbuf, (uint32_t)len);
	else
		rte_pktmbuf_free(mbuf);
	return known;
}

static bool resolve_step(struct engine *engine, const struct address *from,
			 const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	bool known;

	engine_ops_pmd.lock(engine);
	known = resolve_step_locked(engine, from, gid, mac);
	engine_ops_pmd.unlock(engine);
	return known;
}

static struct address address_of(const struct engine *engine, uint8_t sgid_index)
{
	const struct device_gid *gid = &engine->device->gids[sgid_index];
	struct address from = {.vlan = gid->vlan_id, .ifindex = gid->ndev_ifindex};

	memcpy(from.gid, gid->gid.raw, sizeof(from.gid));
	return from;
}

/* Return the source address. It is read anew for each resolution, because addresses may change
 * meanwhile. */
static struct address resolve_from(struct engine *engine, uint8_t sgid_index)
{
	struct address from;

	engine_ops_pmd.lock(engine);
	from = address_of(engine, sgid_index);
	engine_ops_pmd.unlock(engine);
	return from;
}

static int network_route(void *arg, uint8_t sgid_index, const union ibv_gid *dgid,
			 struct device_hop *hop)
{
	struct engine *engine = arg;
	struct link_hop found;
	struct address from;
	int rc;

	if (engine_has_ended(engine) || sgid_index >= DEVICE_GIDS_MAX)
		return -ENETUNREACH;
	from = resolve_from(engine, sgid_index);
	rc = link_route(engine->link, &from, dgid->raw, &found);
	if (rc != 0)
		return rc;
	*hop = (struct device_hop){.known = found.known, .has_stale = found.has_stale};
	memcpy(hop->mac, found.mac, sizeof(hop->mac));
	memcpy(hop->gid, found.gid, sizeof(hop->gid));
	return 0;
}

static bool network_look(void *arg, uint8_t sgid_index, const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	struct engine *engine = arg;
	struct address from;

	if (engine_has_ended(engine) || sgid_index >= DEVICE_GIDS_MAX)
		return false;
	from = address_of(engine, sgid_index);
	return resolve_step_locked(engine, &from, gid, mac);
}

static int network_resolve(void *arg, uint8_t sgid_index, const union ibv_gid *dgid, uint8_t mac[6])
{
	struct engine *engine = arg;
	const uint64_t start_ns = clock_ns(&engine->clock);
	uint64_t waited_ns;
	struct address from;
	struct link_hop hop;
	int rc;

	if (engine_has_ended(engine) || sgid_index >= DEVICE_GIDS_MAX)
		return -ENETUNREACH;
	from = resolve_from(engine, sgid_index);
	rc = link_route(engine->link, &from, dgid->raw, &hop);
	if (rc != 0)
		return rc;
	if (hop.known) {
		memcpy(mac, hop.mac, sizeof(hop.mac));
		return 0;
	}
	while (!resolve_step(engine, &from, hop.gid, mac)) {
		waited_ns = clock_ns(&engine->clock) - start_ns;
		if (hop.has_stale && waited_ns > RESOLVE_STALE_NS) {
			memcpy(mac, hop.mac, sizeof(hop.mac));
			return 0;
		}
		if (waited_ns > RESOLVE_TIMEOUT_NS)
			return -ETIMEDOUT;
		/* No other thread may be there to receive the answer. */
		engine_ops_pmd.poll(engine);
		polling_pause(RESOLVE_PAUSE_NS);
	}
	return 0;
}

static void network_learn(void *arg, int32_t vlan_id, const uint8_t gid[GID_LEN],
			  const uint8_t mac[6])
{
	struct engine *engine = arg;

	link_hear(engine->link, vlan_id, gid, mac, engine->now_ns);
}

static void *network_map(void *arg, const void *addr, size_t length)
{
	struct engine *engine = arg;

	return engine_has_ended(engine) ? NULL : dma_map(&engine->dma, addr, length);
}

/*
 * Give the port time to send packets from this memory and to report that, which some drivers do
 * only when they send more packets. A port without a link may never report it. Then the memory
 * stays mapped (and its pages allocated) until it does, so that the port never reads memory that is
 * in other use.
 */
static void network_unmap(void *arg, void *mapping)
{
	struct engine *engine = arg;
	const uint64_t start_ns = clock_ns(&engine->clock);

	if (engine_has_ended(engine))
		return;
	dma_forget(&engine->dma, mapping);
	while (dma_is_busy(mapping) && clock_ns(&engine->clock) - start_ns < UNMAP_WAIT_NS) {
		engine_tx_cleanup(engine);
		if (dma_is_busy(mapping))
			polling_pause(UNMAP_PAUSE_NS);
	}
	dma_unmap(&engine->dma, mapping);
}

const struct device_net_ops engine_net_ops = {
	.join = network_join,
	.leave = network_leave,
	.resolve = network_resolve,
	.route = network_route,
	.look = network_look,
	.learn = network_learn,
};

const struct device_dma_ops engine_dma_ops = {.map = network_map, .unmap = network_unmap};
