/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes what a process gets with its slot. */
#ifndef OWNER_SLOT_PREPARE_H
#define OWNER_SLOT_PREPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "share/user.h"

struct server;
struct share_engine;
struct tenants_limits;

/** Return the limits of a user. */
const struct tenants_limits *slot_limits_of(const struct server *server, user_t user);

/**
 * Prepare all that a slot needs before the welcome.
 *
 * @param engines
 *   Of the process's device.
 * @param page_fd
 *   Is set to the descriptor of the slot's page, which the caller closes. It stays -1 if the
 *   process is isolated.
 * @return
 *   0; -errno: what was prepared before stays in the slot (slot_release).
 */
int slot_prepare(struct server *server, uint16_t number, int socket, bool isolated,
		 uint32_t engines, int *page_fd);

/** The same for the slot of a further engine of a process, after slot_engine_check. */
int slot_prepare_further(struct server *server, uint16_t number, int socket,
			 const struct share_engine *engine, int *page_fd);

#endif
