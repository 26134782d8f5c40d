/* SPDX-License-Identifier: BSD-3-Clause */
/* Let only one process per interface use rdma_cm. */
#include "alone.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "netdev/manager.h"

static int alone_claim(void *user, struct cm_port_claim *claim, uint32_t *id)
{
	(void)user;
	return cm_ports_local.claim(NULL, claim, id);
}

static int alone_listen(void *user, uint32_t id)
{
	(void)user;
	return cm_ports_local.listen(NULL, id);
}

static int alone_change(void *user, uint32_t id, uint8_t ip_version, bool reuse)
{
	(void)user;
	return cm_ports_local.change(NULL, id, ip_version, reuse);
}

static void alone_release(void *user, uint32_t id)
{
	(void)user;
	cm_ports_local.release(NULL, id);
}

static int alone_take(struct alone *alone)
{
	int rc = 0;

	pthread_mutex_lock(&alone->lock);
	if (!alone->is_manager)
		rc = manager_take(&alone->fd, alone->ifname);
	alone->is_manager = rc == 0;
	pthread_mutex_unlock(&alone->lock);
	if (rc == -EADDRINUSE)
		log_error("another program connects by rdma_cm on interface '%s': run uroced on "
			  "it, and start both programs without --netdev",
			  alone->ifname);
	else if (rc != 0)
		log_error("rdma_cm cannot be used on interface '%s': %s", alone->ifname,
			  strerror(-rc));
	return rc;
}

static int alone_ids(void *user, uint32_t *mask, uint32_t *value)
{
	const int rc = alone_take(user);

	return rc == 0 ? cm_ports_local.ids(NULL, mask, value) : rc;
}

static const struct cm_ports_ops alone_ports_ops = {
	.claim = alone_claim,
	.listen = alone_listen,
	.change = alone_change,
	.release = alone_release,
	.ids = alone_ids,
};

const struct cm_ports_ops *alone_ports(struct alone *alone, const char *ifname)
{
	pthread_mutex_init(&alone->lock, NULL);
	snprintf(alone->ifname, sizeof(alone->ifname), "%s", ifname);
	alone->fd = manager_open();
	alone->is_manager = false;
	return &alone_ports_ops;
}
