/* SPDX-License-Identifier: BSD-3-Clause */
/* New settings of a running owner (serve_change). */
#ifndef OWNER_CHANGE_H
#define OWNER_CHANGE_H

struct change;
struct server;

/* Settings that were read again. */
struct changes {
	struct change *wanted; /* left by serve_change; NULL: none; atomic */
	struct change *made;   /* the newest that was taken: server.tenant_limits points into it */
};

/** Take the settings that serve_change has left, if there are any. */
void change_take(struct server *server);

/** Free all. */
void change_fini(struct server *server);

#endif
