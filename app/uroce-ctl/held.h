/* SPDX-License-Identifier: BSD-3-Clause */
/* The UNIX sockets with a name that a process has. */
#ifndef HELD_H
#define HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct held_socket {
	uint64_t inode;
	unsigned int type; /* SOCK_SEQPACKET and so on */
	bool listens;
	char path[108];
};

/**
 * Pass each such socket of a process to a callback, from any network namespace. MT-safe.
 *
 * @param root
 *   In front of /proc; "": this host.
 * @return
 *   false if the process's descriptors cannot be read.
 */
bool held_each(const char *root, const char *pid,
	       void (*tell)(void *arg, const struct held_socket *socket), void *arg);

#endif
