/* SPDX-License-Identifier: BSD-3-Clause */
/* The port spaces of a process that has its devices alone. */
#include "cm/ports.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "wire/gid.h"

/* Default of Linux's net.ipv4.ip_local_port_range. */
#define EPHEMERAL_FIRST 32768u
#define EPHEMERAL_COUNT (60999u - EPHEMERAL_FIRST + 1)

#define PORT_BUCKETS 1024u /* a program may have tens of thousands of connections */

struct port {
	LIST_ENTRY(port) by_port;
	LIST_ENTRY(port) by_id;
	struct cm_port_claim claim;
	uint32_t id;
	bool listens;
};

static struct {
	pthread_mutex_t lock;			 /* protects all below */
	LIST_HEAD(, port) by_port[PORT_BUCKETS]; /* ports of all spaces */
	LIST_HEAD(, port) by_id[PORT_BUCKETS];
	uint32_t next_id;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool cm_port_overlaps(const struct cm_port_claim *a, const struct cm_port_claim *b)
{
	if (a->space != b->space || a->port != b->port)
		return false;
	if (a->ip_version != 0 && b->ip_version != 0 && a->ip_version != b->ip_version)
		return false;
	if (a->any_address || b->any_address)
		return true;
	return a->vlan_id == b->vlan_id && memcmp(a->address, b->address, GID_LEN) == 0;
}

/* Return true if no other claim has the port, or only claims that share it. `self` is the claim
 * itself, if it is in the table. */
static bool is_free_locked(const struct cm_port_claim *claim, const struct port *self)
{
	const struct port *port;

	LIST_FOREACH (port, &table.by_port[claim->port % PORT_BUCKETS], by_port) {
		if (port != self && cm_port_overlaps(&port->claim, claim) &&
		    !(port->claim.reuse && claim->reuse))
			return false;
	}
	return true;
}

/* Choose a free port, starting at a random one, so that nobody can guess the next one. Such a port
 * is not shared, even with REUSEADDR. */
static int choose_locked(struct cm_port_claim *claim)
{
	struct cm_port_claim alone = *claim;
	uint32_t start;

	alone.reuse = false;
	if (getrandom(&start, sizeof(start), 0) != (ssize_t)sizeof(start))
		return -EIO;
	for (uint32_t i = 0; i < EPHEMERAL_COUNT; i++) {
		alone.port = (uint16_t)(EPHEMERAL_FIRST +
					(start % EPHEMERAL_COUNT + i) % EPHEMERAL_COUNT);
		if (is_free_locked(&alone, NULL)) {
			claim->port = alone.port;
			return 0;
		}
	}
	return -EADDRINUSE;
}

static struct port *find_locked(uint32_t id)
{
	struct port *port;

	LIST_FOREACH (port, &table.by_id[id % PORT_BUCKETS], by_id) {
		if (port->id == id)
			return port;
	}
	return NULL;
}

static int claim_locked(struct cm_port_claim *claim, struct port *made)
{
	int rc = 0;

	if (claim->port == 0)
		rc = choose_locked(claim);
	else if (!is_free_locked(claim, NULL))
		rc = -EADDRINUSE;
	if (rc != 0)
		return rc;
	made->claim = *claim;
	do
		made->id = ++table.next_id;
	while (find_locked(made->id));
	LIST_INSERT_HEAD(&table.by_port[made->claim.port % PORT_BUCKETS], made, by_port);
	LIST_INSERT_HEAD(&table.by_id[made->id % PORT_BUCKETS], made, by_id);
	return 0;
}

static int local_claim(void *user, struct cm_port_claim *claim, uint32_t *id)
{
	struct port *made = calloc(1, sizeof(*made));
	int rc;

	(void)user;
	if (!made)
		return -ENOMEM;
	pthread_mutex_lock(&table.lock);
	rc = claim_locked(claim, made);
	if (rc == 0)
		*id = made->id;
	pthread_mutex_unlock(&table.lock);
	if (rc != 0)
		free(made);
	return rc;
}

/* Check that no other claim has the port, and stop sharing it: with REUSEADDR many claims may have
 * an address, but a listener has it alone, as on Linux. */
static int listen_locked(struct port *port)
{
	const struct port *other;

	LIST_FOREACH (other, &table.by_port[port->claim.port % PORT_BUCKETS], by_port) {
		if (other != port && cm_port_overlaps(&other->claim, &port->claim))
			return -EADDRINUSE;
	}
	port->claim.reuse = false;
	port->listens = true;
	return 0;
}

static int local_listen(void *user, uint32_t id)
{
	struct port *port;
	int rc;

	(void)user;
	pthread_mutex_lock(&table.lock);
	port = find_locked(id);
	rc = port ? listen_locked(port) : -EINVAL;
	pthread_mutex_unlock(&table.lock);
	return rc;
}

bool cm_port_may_change(const struct cm_port_claim *claim, uint8_t ip_version)
{
	if (!claim->any_address)
		return ip_version == claim->ip_version;
	return ip_version == 0 || ip_version == 4 || ip_version == 6;
}

static int change_locked(struct port *port, uint8_t ip_version, bool reuse)
{
	struct cm_port_claim changed = port->claim;

	if (port->listens || !cm_port_may_change(&changed, ip_version))
		return -EINVAL;
	changed.ip_version = ip_version;
	changed.reuse = reuse;
	if (!is_free_locked(&changed, port))
		return -EADDRINUSE;
	port->claim = changed;
	return 0;
}

static int local_change(void *user, uint32_t id, uint8_t ip_version, bool reuse)
{
	struct port *port;
	int rc;

	(void)user;
	pthread_mutex_lock(&table.lock);
	port = find_locked(id);
	rc = port ? change_locked(port, ip_version, reuse) : -EINVAL;
	pthread_mutex_unlock(&table.lock);
	return rc;
}

static void local_release(void *user, uint32_t id)
{
	struct port *port;

	(void)user;
	pthread_mutex_lock(&table.lock);
	port = find_locked(id);
	if (port) {
		LIST_REMOVE(port, by_port);
		LIST_REMOVE(port, by_id);
	}
	pthread_mutex_unlock(&table.lock);
	free(port);
}

static int local_ids(void *user, uint32_t *mask, uint32_t *value)
{
	(void)user;
	*mask = 0;
	*value = 0;
	return 0;
}

void cm_ports_forget(void)
{
	table.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	memset(table.by_port, 0, sizeof(table.by_port));
	memset(table.by_id, 0, sizeof(table.by_id));
}

const struct cm_ports_ops cm_ports_local = {
	.claim = local_claim,
	.listen = local_listen,
	.change = local_change,
	.release = local_release,
	.ids = local_ids,
};
