/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet sockets of attached processes on the owner's kernel interface: by its own socket a process
 * sends and receives without the owner. */
#ifndef OWNER_PSOCKS_H
#define OWNER_PSOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "netdev/divide.h"

struct server;
struct settings;

struct psocks {
	bool off;   /* by the setting */
	bool stale; /* the port still leaves out a block of a slot that has no socket any more */
	uint32_t count;		       /* slots that have one */
	struct divide_blocks left_out; /* blocks whose packets the port does not receive now */
};

/** Follow the settings, and log why no process gets a socket if the port's are of no use. */
void psocks_init(struct server *server, const struct settings *settings);

/**
 * Make a socket for the packets of a process. From now on the port does not receive them.
 *
 * @return
 *   The socket; -EOPNOTSUPP or another -errno: the process's packets pass through the owner.
 */
int psocks_lend(struct server *server, uint16_t number);

/** Let a process use the packet socket that it has from the last owner, if that is on our
 * interface. From now on the port does not receive its packets. Return false if it may not. */
bool psocks_keep(struct server *server, uint16_t number, uint32_t ifindex);

/** Receive the packets of a slot again, because its process does not use its socket, nor those of
 * its further engines, or has ended. 0; -errno: later (psocks_check). */
int psocks_end(struct server *server, uint16_t number);

/** Try again what psocks_end could not do. */
void psocks_check(struct server *server);

/** Return true if the port leaves out the block that begins with a number. */
bool psocks_leave_out(const struct server *server, uint32_t qpn_first);

#endif
