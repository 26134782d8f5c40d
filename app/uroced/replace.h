/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes the place of a running uroced (--replace): its sockets, its programs, then its ports. */
#ifndef UROCED_REPLACE_H
#define UROCED_REPLACE_H

#include <stdbool.h>
#include <stddef.h>

struct serve_passed;
struct settings;

/**
 * Ask the uroced at the socket of these settings for what its programs need to go on with this one.
 * It goes on until replace_take_over.
 *
 * @param passed
 *   Gets its listening sockets.
 * @param tables
 *   By port: set to the resume table.
 * @return
 *   0, also if no uroced is there; -errno (logged).
 */
int replace_ask(const struct settings *settings, size_t count, struct serve_passed *passed,
		int *tables);

/**
 * Leave the command to its own end if a service manager waits for it, beside the uroced that runs:
 * this becomes a process of its own. The command ends with replace_end_command, or fails with this
 * process. Call it before anything is opened. 0 or -errno (logged).
 */
int replace_leave_command(void);

/** All is ready. Does nothing if there is no such command. */
void replace_end_command(void);

/** Let the other uroced leave, and wait until it has. If this one is not ready, the other one goes
 * on, and the process ends. Does nothing if there is no other uroced. */
void replace_take_over(bool ready);

#endif
