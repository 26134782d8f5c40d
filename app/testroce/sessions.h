/* SPDX-License-Identifier: BSD-3-Clause */
/* The server: passive sides for all who connect. */
#ifndef TESTROCE_SESSIONS_H
#define TESTROCE_SESSIONS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct nic;

/**
 * Serve whoever connects, many at a time. Not MT-safe.
 *
 * @param once
 *   End when nobody is connected any more who was.
 * @param stop
 *   Ends it.
 * @return
 *   0 or -errno with `error`.
 */
int sessions_serve(struct nic *nic, const char *where, bool once, const volatile sig_atomic_t *stop,
		   char *error, size_t error_size);

#endif
