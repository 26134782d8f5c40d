/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The devices that ids are bound to. The ids of a device learn here, with the engine's lock held,
 * that the device is lost or that their address has gone.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "id.h"

static struct {
	pthread_mutex_t lock; /* protects all below */
	struct cm_device *list[ID_DEVICES_MAX];
	int count;
	bool watches; /* the fork handler is installed */
	bool warned;
} devices = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint32_t devices_generation;

/* Return the table, or NULL: another libibverbs.so.1 does not have this symbol. */
#pragma weak uroce_private_cm

const struct cm_private *cm_calls(void)
{
	return uroce_private_cm ? uroce_private_cm(CM_PRIVATE_VERSION) : NULL;
}

/* Allocate the default domain now: programs use the domain of an id as soon as the id is bound,
 * before it has a queue pair. */
static int alloc_pd(struct cm_device *device)
{
	device->pd = ibv_alloc_pd(device->verbs);
	return device->pd ? 0 : -errno;
}

static int open_device(struct ibv_device *ibv, struct cm_device **out)
{
	struct cm_device *device = calloc(1, sizeof(*device));
	int rc = -ENOMEM;

	if (!device)
		return rc;
	pthread_mutex_init(&device->lock, NULL);
	pthread_mutex_init(&device->ids_lock, NULL);
	LIST_INIT(&device->ids);
	device->verbs = ibv_open_device(ibv);
	if (!device->verbs) {
		rc = -errno;
	} else {
		rc = -ibv_query_device(device->verbs, &device->attr);
		if (rc == 0)
			rc = -ibv_query_port(device->verbs, 1, &device->port);
		if (rc == 0)
			rc = alloc_pd(device);
		if (rc == 0)
			rc = cm_calls()->agent_of(device->verbs, &notify_agent, &device->agent);
	}
	if (rc == 0) {
		*out = device;
		return 0;
	}
	if (device->pd)
		ibv_dealloc_pd(device->pd);
	if (device->verbs)
		ibv_close_device(device->verbs);
	free(device);
	return rc;
}

/* Forget the devices in a child: it has others, and the parent's do not work here. */
static void forget(void)
{
	devices_generation++;
	devices.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	devices.count = 0;
}

static int open_all_locked(void)
{
	struct ibv_device **list;
	int count, rc = 0;

	if (devices.count > 0)
		return 0;
	if (!cm_calls()) {
		if (!devices.warned)
			fputs("uroce: this librdmacm.so.1 needs the libibverbs.so.1 that it was "
			      "built with: start the program by uroce-run\n",
			      stderr);
		devices.warned = true;
		return -ENODEV;
	}
	list = ibv_get_device_list(&count);
	if (!list)
		return -errno;
	for (int i = 0; i < count && devices.count < ID_DEVICES_MAX && rc == 0; i++) {
		rc = open_device(list[i], &devices.list[devices.count]);
		if (rc == 0)
			__atomic_store_n(&devices.count, devices.count + 1, __ATOMIC_RELEASE);
	}
	ibv_free_device_list(list);
	if (!devices.watches) {
		devices.watches = true;
		pthread_atfork(NULL, NULL, forget);
	}
	return devices.count > 0 ? 0 : rc != 0 ? rc : -ENODEV;
}

int devices_get(struct cm_device *const **list)
{
	int cancel_state, rc;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&devices.lock);
	rc = open_all_locked();
	if (rc == 0)
		rc = devices.count;
	pthread_mutex_unlock(&devices.lock);
	pthread_setcancelstate(cancel_state, NULL);
	*list = devices.list;
	return rc;
}

/* Return the device of an agent; NULL while the devices are being opened. MT-safe. */
static struct cm_device *device_of_agent(const struct agent *agent)
{
	const int count = __atomic_load_n(&devices.count, __ATOMIC_ACQUIRE);

	for (int i = 0; i < count; i++) {
		if (devices.list[i]->agent == agent)
			return devices.list[i];
	}
	return NULL;
}

bool device_is_lost(const struct cm_device *device)
{
	return __atomic_load_n(&device->lost, __ATOMIC_ACQUIRE);
}

void devices_wait(void)
{
	const int count = __atomic_load_n(&devices.count, __ATOMIC_ACQUIRE);

	for (int i = 0; i < count; i++)
		cm_calls()->agent_wait(devices.list[i]->agent);
}

struct ibv_xrcd *device_get_xrcd(struct cm_device *device)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd;

	pthread_mutex_lock(&device->lock);
	if (!device->xrcd)
		device->xrcd = ibv_open_xrcd(device->verbs, &attr);
	xrcd = device->xrcd;
	device->xrcd_users += xrcd != NULL;
	pthread_mutex_unlock(&device->lock);
	return xrcd;
}

void device_put_xrcd(struct cm_device *device)
{
	pthread_mutex_lock(&device->lock);
	if (--device->xrcd_users == 0 && ibv_close_xrcd(device->xrcd) == 0)
		device->xrcd = NULL;
	pthread_mutex_unlock(&device->lock);
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	ID_CALL();
	struct cm_device *const *list;
	const int count = devices_get(&list);
	struct ibv_context **contexts;

	if (num_devices)
		*num_devices = 0;
	if (count < 0) {
		(void)id_result(count);
		return NULL;
	}
	contexts = calloc((size_t)count + 1, sizeof(struct ibv_context *));
	if (!contexts) {
		(void)id_result(-ENOMEM);
		return NULL;
	}
	for (int i = 0; i < count; i++)
		contexts[i] = list[i]->verbs;
	if (num_devices)
		*num_devices = count;
	return contexts;
}

/* Free the list only. The devices stay open, because ids may be bound to them. */
void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}

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
