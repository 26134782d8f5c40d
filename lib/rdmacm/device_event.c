/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tells the ids of a device that the device is lost, or that their address has gone. Runs with the
 * engine's lock held.
 */
#include <string.h>

#include "id.h"

bool id_list(struct cm_id *id, struct cm_device *device)
{
	bool lost;

	id_unlist(id);
	pthread_mutex_lock(&device->ids_lock);
	lost = device_is_lost(device);
	if (!lost) {
		LIST_INSERT_HEAD(&device->ids, id, of_device);
		id->listed_at = device;
	}
	pthread_mutex_unlock(&device->ids_lock);
	return !lost;
}

void id_unlist(struct cm_id *id)
{
	struct cm_device *device = id->listed_at;

	if (!device)
		return;
	pthread_mutex_lock(&device->ids_lock);
	LIST_REMOVE(id, of_device);
	pthread_mutex_unlock(&device->ids_lock);
	id->listed_at = NULL;
}

/* End all that the id does on the device. No later event of the connection comes, as on Linux. */
static void remove_id(struct cm_id *id, uint64_t now_ns)
{
	const struct cm_private *calls = cm_calls();

	pthread_mutex_lock(&id->lock);
	id->state = ID_REMOVED;
	pthread_mutex_unlock(&id->lock);
	calls->agent_forget(&id->query);
	if (id->conn)
		calls->cm_conn_destroy(id->conn, now_ns);
	id->conn = NULL;
	(void)event_tell(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

void device_event_lost(struct agent *agent, uint64_t now_ns)
{
	struct cm_device *device = device_of_agent(agent);
	struct cm_id *id;

	if (!device)
		return;
	pthread_mutex_lock(&device->ids_lock);
	/* With the lock: an id is either in the list now, or id_list refuses it. */
	__atomic_store_n(&device->lost, true, __ATOMIC_RELEASE);
	LIST_FOREACH (id, &device->ids, of_device)
		remove_id(id, now_ns);
	pthread_mutex_unlock(&device->ids_lock);
}

/* Return true if the id's address was on the device until now, and has gone. */
static bool loses_address(struct cm_id *id, const struct agent *agent)
{
	struct gsi_address own;
	struct device_gid found;
	bool had, has;

	pthread_mutex_lock(&id->lock);
	own = (struct gsi_address){.vlan_id = id->sgid.vlan_id};
	memcpy(own.local, id->sgid.gid.raw, sizeof(own.local));
	had = id->has_address;
	has = cm_calls()->agent_find_own(agent, &own, &found) >= 0;
	id->has_address = has;
	pthread_mutex_unlock(&id->lock);
	return had && !has;
}

void device_event_addresses(struct agent *agent)
{
	struct cm_device *device = device_of_agent(agent);
	struct cm_id *id;

	if (!device)
		return;
	pthread_mutex_lock(&device->ids_lock);
	LIST_FOREACH (id, &device->ids, of_device) {
		if (loses_address(id, agent))
			(void)event_tell(id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	}
	pthread_mutex_unlock(&device->ids_lock);
}
