/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libibverbs.so.1 that shows the devices of two libraries to one program: uroce's libibverbs.so.1
 * and the system's. Each call goes to the library that owns the object. The objects are the
 * libraries' own, so that a program's inline calls (ibv_post_send, ibv_poll_cq and others) go to
 * the right library by themselves.
 *
 * The system's drivers link to libibverbs.so.1 by name, so they get this library. It has the
 * symbols that they need, and forwards these to the system's library.
 *
 * Private to this room.
 */
#ifndef BOTH_H
#define BOTH_H

#include <stdbool.h>

#include <infiniband/verbs.h>

/* Macros of the header stand in the way of functions of the same name. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

enum private_gid_type;

/* Calls of one library. */
struct both_calls {
#define CALL(type, name, device, parameters, arguments) type(*name) parameters;
#define CALL_VOID(name, device, parameters, arguments)	void(*name) parameters;
#include "calls.def"
#undef CALL
#undef CALL_VOID
	struct ibv_device **(*ibv_get_device_list)(int *count);
	void (*ibv_free_device_list)(struct ibv_device **list);
	void (*ibv_ack_async_event)(struct ibv_async_event *event);
	struct ibv_context *(*ibv_import_device)(int cmd_fd);
	int (*ibv_fork_init)(void);
	enum ibv_fork_status (*ibv_is_fork_initialized)(void);
};

/* Set before any function of this library can be called, and constant from then on. */
extern struct both_calls both_ours, both_systems;
extern bool *both_systems_allow_disassociate;

/** Return the calls of the library that owns a device. MT-safe. */
const struct both_calls *both_calls_of(const struct ibv_device *device);

#endif
