/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of processes over their sockets. */
#ifndef OWNER_CONTROL_H
#define OWNER_CONTROL_H

#include <stdint.h>
#include <sys/queue.h>

#include "event.h"
#include "wire/gid.h"

struct server;

/* A process's membership of a multicast group. */
struct server_group {
	LIST_ENTRY(server_group) link;
	uint16_t slot;
	uint8_t gid[GID_LEN];
};

/** Handle an event of a descriptor. */
void control_event(struct server *server, enum server_event event, uint32_t number);

/** Send the port's addresses to a process, if its socket has room. */
void control_send_addresses(struct server *server, uint16_t number);

/** Leave all groups of a slot. */
void control_leave_all(struct server *server, uint16_t number);

#endif
