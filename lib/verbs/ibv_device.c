/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of devices: those of the registry, in the form that verbs show. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/registry.h"

#include "verbs_internal.h"

#define DPDK_PREFIX "librte_" /* of the names of DPDK's libraries */

/*
 * Recursive: devices are started under it, and this may fork a helper program, whose fork handlers
 * lock it again (fork.c).
 */
static pthread_mutex_t list_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
/* Protected by it: how often it is locked, and whether its thread could be cancelled before. A
 * thread that is cancelled while it starts devices would leave it locked. */
static unsigned int list_depth;
static int list_cancel_state;
static struct face_device *faces;
static size_t face_count;

/* A mark in the place where a driver has its table of operations. */
static const char not_a_driver[sizeof(void *)];

void device_list_lock(void)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&list_lock);
	if (list_depth++ == 0)
		list_cancel_state = cancel_state;
}

void device_list_unlock(void)
{
	const int cancel_state = list_cancel_state;
	const bool left = --list_depth == 0;

	pthread_mutex_unlock(&list_lock);
	if (left)
		pthread_setcancelstate(cancel_state, NULL);
}

/* Forget the list. The program's pointers into it stay valid, because its memory stays. */
void device_list_forget(void)
{
	faces = NULL;
	face_count = 0;
	registry_forget();
	/* The owner is a thread of the parent, so a child cannot unlock it: make it anew. */
	list_lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	list_depth = 0;
	pthread_setcancelstate(list_cancel_state, NULL);
}

void device_list_visit(void (*visit)(struct face_device *face, void *arg), void *arg)
{
	for (size_t i = 0; i < face_count; i++)
		visit(&faces[i], arg);
}

/* Name a device as its files are named. If nothing shows it, its name matches no file of this host:
 * uverbs0 may be a kernel's device of another kind. */
static void face_name_files(struct face_device *face, const struct device *device, size_t index)
{
	if (device->shown)
		snprintf(face->ibv.dev_name, sizeof(face->ibv.dev_name), "uverbs%zu", index);
	else
		snprintf(face->ibv.dev_name, sizeof(face->ibv.dev_name), "uverbs_%.56s",
			 device->config.name);
	snprintf(face->ibv.dev_path, sizeof(face->ibv.dev_path),
		 "/sys/class/infiniband_verbs/%.63s", face->ibv.dev_name);
	snprintf(face->ibv.ibdev_path, sizeof(face->ibv.ibdev_path), "/sys/class/infiniband/%.63s",
		 device->config.name);
}

static void face_init(struct face_device *face, struct device *device, size_t index)
{
	face->ibv.node_type = IBV_NODE_CA;
	face->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(face->ibv.name, sizeof(face->ibv.name), "%s", device->config.name);
	face_name_files(face, device, index);
	face->driver_ops = not_a_driver;
	face->device = device;
	face->index = index;
	face->generation = fork_generation;
	pthread_mutex_init(&face->lock, NULL);
	TAILQ_INIT(&face->contexts);
	device->event_user = face;
	device->event = event_raise_device;
}

static int start_locked(void)
{
	struct device *const *devices;
	int count;

	if (faces)
		return 0;
	count = registry_devices(&devices);
	if (count <= 0)
		return count;
	faces = calloc((size_t)count, sizeof(*faces));
	if (!faces)
		return -ENOMEM;
	for (int i = 0; i < count; i++)
		face_init(&faces[i], devices[i], (size_t)i);
	face_count = (size_t)count;
	fork_watch();
	return 0;
}

struct face_device *device_list_present(struct face_device *face)
{
	struct face_device *present = NULL;

	if (face->generation == fork_generation)
		return face;
	device_list_lock();
	if (start_locked() == 0 && face->index < face_count)
		present = &faces[face->index];
	device_list_unlock();
	return present;
}

/*
 * Return true if code of DPDK calls. Its drivers of ConnectX and others look for the kernel's
 * device behind a PCI address. They find none here, and must not start ours: EAL is only about to
 * start.
 */
static bool is_dpdk(const void *code)
{
	Dl_info object;
	const char *name;

	if (dladdr(code, &object) == 0 || !object.dli_fname)
		return false;
	name = strrchr(object.dli_fname, '/');
	name = name ? name + 1 : object.dli_fname;
	if (strncmp(name, DPDK_PREFIX, sizeof(DPDK_PREFIX) - 1) != 0)
		return false;
	log_warn(
		"%s looks for an RDMA device of the kernel, and finds none: programs of uroce have "
		"uroce's devices only",
		name);
	return true;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	return get_device_list_op(__builtin_return_address(0), num_devices);
}

struct ibv_device **get_device_list_op(const void *caller, int *num_devices)
{
	struct ibv_device **list = NULL;
	int rc;

	if (num_devices)
		*num_devices = 0;
	if (is_dpdk(caller)) {
		list = calloc(1, sizeof(*list));
		return list ? list : face_null(-ENOMEM);
	}
	device_list_lock();
	rc = start_locked();
	if (rc == 0) {
		list = calloc(face_count + 1, sizeof(*list));
		rc = list ? 0 : -ENOMEM;
	}
	for (size_t i = 0; list && i < face_count; i++)
		list[i] = &faces[i].ibv;
	if (list && num_devices)
		*num_devices = (int)face_count;
	device_list_unlock();
	return rc == 0 ? list : face_null(rc);
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *ibv)
{
	return ibv->name;
}

__be64 ibv_get_device_guid(struct ibv_device *ibv)
{
	return face_device(ibv)->device->node_guid_be;
}

/* Return -1: an index would be the kernel's, and the kernel does not know the device. */
int ibv_get_device_index(struct ibv_device *ibv __rte_unused)
{
	return -1;
}
