/* SPDX-License-Identifier: BSD-3-Clause */
/* The server of a view: a process that writes the view's files from the table. */
#ifndef VIEW_VIEW_SERVE_H
#define VIEW_VIEW_SERVE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "view/table.h"

struct view_server {
	int root; /* the directory of the view */
	struct view_entry entry;
	struct view_table *table;
	pid_t watched; /* the process for which the view was made */
	/* Devices as the settings describe them, until a process opens them. */
	const struct view_facts *expected;
	size_t expected_count;
};

/** Write the files until the watched process and all processes with a device have ended.
 * `ready` is written to and closed when the files are there. Not MT-safe. */
void view_serve(const struct view_server *server, int ready);

/** The server without its loop, for view_serve and tests. view_state_poll() takes over what
 * processes have published, frees the slots of those that have ended, and returns the number of
 * slots in use. */
struct view_state;
struct view_state *view_state_create(const struct view_server *server);
unsigned int view_state_poll(struct view_state *state);
void view_state_destroy(struct view_state *state);

#endif
