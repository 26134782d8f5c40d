/* SPDX-License-Identifier: BSD-3-Clause */
/* Lends packet sockets to processes, and keeps the filter of the port's own socket. */
#include "psocks.h"

#include <assert.h>
#include <errno.h>
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
	if (settings->netdev[0] != '\0' && !server->psocks.off && !psocks_can(server))
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

		if (slot->state == SLOT_FREE || !slot->has_psock)
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

int psocks_lend(struct server *server, uint16_t number, uint32_t *ifindex)
{
	struct slot *slot = &server->slots.all[number];
	const struct port *port = &server->uplink.link.port;
	int fd, rc;

	if (server->psocks.off || !psocks_can(server) || !slot->has_full_share)
		return -EOPNOTSUPP;
	fd = port->ops->lend(port->ops_arg, slot->qpn_first, BLOCK_SHIFT, ifindex);
	if (fd < 0)
		return fd;
	slot->has_psock = true;
	rc = psocks_update(server);
	if (rc != 0) {
		slot->has_psock = false;
		close(fd);
		return rc;
	}
	server->psocks.count++;
	return fd;
}

int psocks_end(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];
	int rc;

	if (!slot->has_psock)
		return 0;
	slot->has_psock = false;
	server->psocks.count--;
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
