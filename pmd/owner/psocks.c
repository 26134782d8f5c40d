/* SPDX-License-Identifier: BSD-3-Clause */
/* Lends packet sockets to processes, and keeps the filter of the port's own socket. */
#include "psocks.h"

#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "config/settings.h"
#include "server.h"
#include "share/blocks.h"
#include "slot.h"

static_assert(SERVER_FULL_SHARES <= DIVIDE_BLOCKS_MAX, "a filter has room for each socket's block");

/* Return true if processes can have sockets on this port. */
static bool psocks_can(const struct server *server)
{
	const struct port *port = &server->uplink.link.port;

	return port->ops && port->ops->lend && !port->watched;
}

void psocks_init(struct server *server, const struct settings *settings)
{
	server->psocks.off = settings->uplink == SETTINGS_UPLINK_RING;
	if (settings->netdev[0] != '\0' && !settings->udp && !server->psocks.off &&
	    !psocks_can(server))
		log_info("programs reach %s through uroced, because its packets are %s",
			 settings->netdev,
			 server->uplink.link.port.watched ? "captured" : "damaged (--impair)");
}

/* Leave out the blocks of the slots that have sockets now. 0 or -errno: nothing has changed. */
static int psocks_update(struct server *server)
{
	const struct port *port = &server->uplink.link.port;
	struct divide_blocks blocks = {.shift = BLOCK_SHIFT};
	int rc;

	if (!port->ops || !port->ops->leave_out)
		return -EOPNOTSUPP;
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++) {
		const struct slot *slot = &server->slots.all[i];

		if (slot->state == SLOT_FREE || !slot->has_psock || slot->is_further)
			continue;
		if (blocks.count == DIVIDE_BLOCKS_MAX)
			return -ENOSPC;
		blocks.first[blocks.count++] = slot->qpn_first;
	}
	rc = port->ops->leave_out(port->ops_arg, &blocks);
	if (rc != 0)
		return rc;
	server->psocks.left_out = blocks;
	server->psocks.stale = false;
	return 0;
}

/* Return true if a process may have one: for a further engine, if the first one has one, too. */
static bool psocks_may(const struct server *server, const struct slot *slot)
{
	if (server->psocks.off || !psocks_can(server) || !slot->has_full_share)
		return false;
	return !slot->is_further || server->slots.all[slot->first].has_psock;
}

int psocks_lend(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];
	const struct port *port = &server->uplink.link.port;
	const struct slot *first = &server->slots.all[slot_engine_first(server, number)];
	const struct divide_part part = {.first = slot->qpn_first,
					 .shift = BLOCK_SHIFT,
					 .share = slot->engine,
					 .count = first->engine_count};
	int fd, rc;

	if (!psocks_may(server, slot))
		return -EOPNOTSUPP;
	fd = port->ops->lend(port->ops_arg, &part);
	if (fd < 0)
		return fd;
	slot->has_psock = true;
	/* The port leaves out the first engine's block, which is the whole process's. */
	rc = slot->is_further ? 0 : psocks_update(server);
	if (rc != 0) {
		slot->has_psock = false;
		close(fd);
		return rc;
	}
	server->psocks.count++;
	return fd;
}

bool psocks_keep(struct server *server, uint16_t number, uint32_t ifindex)
{
	struct slot *slot = &server->slots.all[number];

	if (ifindex == 0 || !psocks_may(server, slot) ||
	    ifindex != if_nametoindex(server->gsi.netdev))
		return false;
	slot->has_psock = true;
	if (!slot->is_further && psocks_update(server) != 0) {
		slot->has_psock = false;
		return false;
	}
	server->psocks.count++;
	return true;
}

int psocks_end(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];
	int rc;

	if (!slot->has_psock)
		return 0;
	slot->has_psock = false;
	server->psocks.count--;
	if (slot->is_further)
		return 0;
	for (uint32_t i = 1; i < slot->engine_count; i++) {
		if (slot->engine_slots[i] != BLOCK_NONE)
			(void)psocks_end(server, slot->engine_slots[i]);
	}
	rc = psocks_update(server);
	server->psocks.stale = rc != 0;
	return rc;
}

void psocks_check(struct server *server)
{
	if (unlikely(server->psocks.stale))
		psocks_update(server);
}

bool psocks_leave_out(const struct server *server, uint32_t qpn_first)
{
	const struct divide_blocks *blocks = &server->psocks.left_out;

	for (uint32_t i = 0; i < blocks->count; i++) {
		if (blocks->first[i] == qpn_first)
			return true;
	}
	return false;
}
