/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue of a port that another DPDK process has, as its secondary process. */
#ifndef ENGINE_SECONDARY_H
#define ENGINE_SECONDARY_H

struct link;
struct settings;

/**
 * Start EAL as a secondary of the primary with the settings' file-prefix, and open a link on the
 * settings' port there, with the queues that have our process's number. Once a process. Not
 * MT-safe. 0 or -errno (logged).
 */
int secondary_open_link(const struct settings *settings, struct link *link);

#endif
