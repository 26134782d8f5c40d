/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports and communication ids of an attached process, which its owner keeps (cm/ports.h). */
#include <errno.h>
#include <string.h>

#include "attach/attach.h"
#include "base/log.h"
#include "client.h"
#include "cm/ports.h"
#include "net/link.h"
#include "port/port.h"

/*
 * If the first engine has a packet socket, it receives the packets to its own queue pairs only. So
 * each other engine must have a socket, too; if one cannot have it, all packets to and from other
 * hosts pass through the owner.
 */
static int client_share_sockets(struct share_client *first, const struct share_client *client)
{
	if (!first->psock || client->psock)
		return 0;
	log_info("packets pass through uroced: a further engine has no packet socket");
	return client_decline_psocks(first);
}

int client_open_queue(void *arg, uint32_t number, uint32_t count, struct port *queue)
{
	struct share_client *first = arg, *client;
	int rc;

	if (first->engines != count)
		return -EOPNOTSUPP;
	rc = attach_open_further(first, number, queue, &client);
	if (rc != 0)
		return rc;
	SLIST_INSERT_HEAD(&first->further, client, link);
	return client_share_sockets(first, client);
}

/* Send a request to the owner and return its result. -ENODEV: an owner that does not answer
 * counts as gone. */
static int ports_ask(struct share_client *client, struct share_message *message)
{
	return client_ask(client, message) == 0 ? message->result : -ENODEV;
}

static int ports_claim(void *user, struct cm_port_claim *claim, uint32_t *id)
{
	struct share_message message;
	int rc;

	memset(&message, 0, sizeof(message));
	message.type = SHARE_CLAIM;
	message.claim = (struct share_claim){
		.space = claim->space,
		.vlan_id = claim->vlan_id,
		.port = claim->port,
		.ip_version = claim->ip_version,
		.any_address = claim->any_address,
		.reuse = claim->reuse,
	};
	memcpy(message.claim.address, claim->address, sizeof(message.claim.address));
	rc = ports_ask(user, &message);
	if (rc != 0)
		return rc;
	claim->port = message.claim.port;
	*id = message.claim.id;
	return 0;
}

static int ports_listen(void *user, uint32_t id)
{
	struct share_message message;

	memset(&message, 0, sizeof(message));
	message.type = SHARE_LISTEN;
	message.claim.id = id;
	return ports_ask(user, &message);
}

static int ports_change(void *user, uint32_t id, uint8_t ip_version, bool reuse)
{
	struct share_message message;

	memset(&message, 0, sizeof(message));
	message.type = SHARE_CHANGE;
	message.claim = (struct share_claim){.id = id, .ip_version = ip_version, .reuse = reuse};
	return ports_ask(user, &message);
}

static void ports_release(void *user, uint32_t id)
{
	struct share_message message;

	memset(&message, 0, sizeof(message));
	message.type = SHARE_RELEASE;
	message.claim.id = id;
	client_tell(user, &message);
}

static int ports_ids(void *user, uint32_t *mask, uint32_t *value)
{
	const struct share_client *client = user;

	*mask = client->id_mask;
	*value = client->id_value;
	return 0;
}

static const struct cm_ports_ops client_ports = {
	.claim = ports_claim,
	.listen = ports_listen,
	.change = ports_change,
	.release = ports_release,
	.ids = ports_ids,
};

int32_t share_owner_pid(const struct link *link)
{
	const struct share_client *client = link->remote_arg;

	return client->owner_pid;
}

const struct cm_ports_ops *share_ports(const struct link *link, void **user)
{
	if (link->remote != &client_link_remote)
		return NULL;
	*user = link->remote_arg;
	return &client_ports;
}
