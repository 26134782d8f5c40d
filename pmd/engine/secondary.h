/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue of another DPDK process's port, used as its secondary process. */
#ifndef ENGINE_SECONDARY_H
#define ENGINE_SECONDARY_H

struct link;
struct settings;

/**
 * Start EAL as a secondary of the primary with the settings' file-prefix. Open a link there on the
 * settings' port, using the queues with our process's number. Once per process. Not MT-safe.
 * Returns 0 or -errno (logged).
 */
int secondary_open_link(const struct settings *settings, struct link *link);

#endif
