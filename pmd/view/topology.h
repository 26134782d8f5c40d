/* SPDX-License-Identifier: BSD-3-Clause */
/* Which CPUs are close to an interface's device, as its PCI attributes say. Private to this room.
 */
#ifndef VIEW_TOPOLOGY_H
#define VIEW_TOPOLOGY_H

#include <stddef.h>

/** Write the text of numa_node: the interface's own, or -1. MT-safe. */
void topology_numa_node(const char *netdev, char *text, size_t size);

/** Write the text of local_cpulist: the interface's own, or all CPUs. MT-safe. */
void topology_cpulist(const char *netdev, char *text, size_t size);

/** Write the text of local_cpus, a mask in words of 32 bits: the interface's own, or all CPUs.
 * MT-safe. */
void topology_cpus(const char *netdev, char *text, size_t size);

/** Convert a list of CPUs, such as "0-3,8", into a mask. Returns 0 or -EINVAL. MT-safe. */
int topology_mask(const char *list, char *text, size_t size);

#endif
