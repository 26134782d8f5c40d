/* SPDX-License-Identifier: BSD-3-Clause */
/* The exported functions: each calls the same function of the library that owns its argument. */
#include <errno.h>
#include <stdlib.h>

#include "both.h"

/* The system's library has read it from the environment. Its drivers look at this one. */
extern bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy;

/* No public header has this one. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
		       enum private_gid_type *type);

#define CALL(type, name, device, parameters, arguments)       \
	type name parameters                                  \
	{                                                     \
		return both_calls_of(device)->name arguments; \
	}
#define CALL_VOID(name, device, parameters, arguments) \
	void name parameters                           \
	{                                              \
		both_calls_of(device)->name arguments; \
	}
#include "calls.def"

/* A list of the program, and the libraries' lists, which keep their devices. */
struct both_list {
	struct ibv_device **ours, **systems; /* NULL: the library found none */
	struct ibv_device *devices[];	     /* ends with NULL */
};

static void lists_free(struct ibv_device **ours, struct ibv_device **systems)
{
	if (ours)
		both_ours.ibv_free_device_list(ours);
	if (systems)
		both_systems.ibv_free_device_list(systems);
}

/* List uroce's devices first: many programs take the first one. */
struct ibv_device **ibv_get_device_list(int *count)
{
	int our_count = 0, system_count = 0, error = 0;
	struct ibv_device **ours, **systems;
	struct both_list *list;

	if (count)
		*count = 0;
	ours = both_ours.ibv_get_device_list(&our_count);
	if (!ours) {
		error = errno;
		our_count = 0;
	}
	/* The call fails if the host has no RDMA driver at all. */
	systems = both_systems.ibv_get_device_list(&system_count);
	if (!systems)
		system_count = 0;
	verbs_allow_disassociate_destroy = *both_systems_allow_disassociate;
	if (!ours && !systems) {
		errno = error;
		return NULL;
	}
	list = calloc(1, sizeof(*list) + ((size_t)our_count + (size_t)system_count + 1) *
						 sizeof(list->devices[0]));
	if (!list) {
		lists_free(ours, systems);
		errno = ENOMEM;
		return NULL;
	}
	list->ours = ours;
	list->systems = systems;
	for (int i = 0; i < our_count; i++)
		list->devices[i] = ours[i];
	for (int i = 0; i < system_count; i++)
		list->devices[our_count + i] = systems[i];
	if (count)
		*count = our_count + system_count;
	return list->devices;
}

void ibv_free_device_list(struct ibv_device **devices)
{
	struct both_list *list;

	if (!devices)
		return;
	list = (void *)((char *)devices - offsetof(struct both_list, devices));
	lists_free(list->ours, list->systems);
	free(list);
}

/* Return the device of an event's object; NULL: the event has none, and nobody waits for its
 * acknowledgement. */
static const struct ibv_device *event_device(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return event->element.cq->context->device;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return event->element.srq->context->device;
	case IBV_EVENT_WQ_FATAL:
		return event->element.wq->context->device;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return event->element.qp->context->device;
	default:
		return NULL;
	}
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	const struct ibv_device *device = event_device(event);

	if (device)
		both_calls_of(device)->ibv_ack_async_event(event);
}

/* uroce knows its own descriptors and refuses others. */
struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *context = both_ours.ibv_import_device(cmd_fd);

	return context ? context : both_systems.ibv_import_device(cmd_fd);
}

int ibv_fork_init(void)
{
	const int rc = both_ours.ibv_fork_init();

	return rc == 0 ? both_systems.ibv_fork_init() : rc;
}

/* uroce never needs it, so the system's devices decide. */
enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return both_systems.ibv_is_fork_initialized();
}
