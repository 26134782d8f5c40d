/* SPDX-License-Identifier: BSD-3-Clause */
/* The server: a passive side for each client. */
#ifndef TESTROCE_SERVER_H
#define TESTROCE_SERVER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nic;

/**
 * Serve all clients, several at a time. Not MT-safe.
 *
 * @param threads
 *   The calling thread and others, up to PLAN_THREADS_MAX. A new client goes to the thread that has
 *   the fewest.
 * @param once
 *   End when all clients that connected have disconnected.
 * @param stop
 *   Atomic: ends the server when it becomes nonzero.
 * @return
 *   0 or -errno with `error`.
 */
int server_run(struct nic *nic, const char *where, uint32_t threads, bool once,
	       const volatile sig_atomic_t *stop, char *error, size_t error_size);

#endif
