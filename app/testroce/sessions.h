/* SPDX-License-Identifier: BSD-3-Clause */
/* The server: a passive side for each client. */
#ifndef TESTROCE_SESSIONS_H
#define TESTROCE_SESSIONS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct nic;

/**
 * Serve all clients, several at a time. Not MT-safe.
 *
 * @param once
 *   End when all clients that connected have disconnected.
 * @param stop
 *   Ends the server when it becomes nonzero.
 * @return
 *   0 or -errno with `error`.
 */
int sessions_serve(struct nic *nic, const char *where, bool once, const volatile sig_atomic_t *stop,
		   char *error, size_t error_size);

#endif
