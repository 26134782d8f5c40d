/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a view that show a device's facts and counters. Private to this room. */
#ifndef VIEW_ATTRIBUTES_H
#define VIEW_ATTRIBUTES_H

#include <stddef.h>
#include <stdint.h>

#include "view/counter_files.h"
#include "view/table.h"

#define ATTRIBUTE_TEXT_MAX 512
/* Reading this file of the kernel fails with EINVAL: a loopback interface has no speed. */
#define ATTRIBUTE_UNREADABLE "/sys/devices/virtual/net/lo/speed"

enum attribute_kind {
	ATTRIBUTE_FILE,
	ATTRIBUTE_LINK, /* the text is the target of a symbolic link */
};

/* The number of files that one attribute has. */
enum attribute_table {
	ATTRIBUTE_ONE,
	ATTRIBUTE_PER_GID,	/* one for each entry of the GID table */
	ATTRIBUTE_PER_USED_GID, /* the same; reading that of an unused entry fails */
};

struct attribute {
	/* '@' stands for the device's name, '#' for N of uverbsN, '%' for the index of an entry,
	 * '!' for the interface's name. */
	const char *path;
	/* Write the file's text. If the text is empty, the file does not exist for this device, or,
	 * of ATTRIBUTE_PER_USED_GID, reading it fails. */
	void (*write)(const struct view_facts *facts, uint32_t index, char *text, size_t size);
	enum attribute_table table;
	enum attribute_kind kind;
};

extern const struct attribute view_attributes[];
extern const size_t view_attribute_count;

/* The files that exist even without a device. Their functions get NULL for facts. */
extern const struct attribute view_host_attributes[];
extern const size_t view_host_attribute_count;

/* Counters of IBTA's PortCounters, as sums of ours. hw_counters has all of ours by their names. */
struct port_counter {
	const char *name;
	uint64_t divisor;
	enum counter parts[4]; /* COUNTER_COUNT ends the list */
};

extern const struct port_counter view_port_counters[COUNTER_FILES_PORT];

/** Expand a path of struct attribute. Returns 0 or -ENAMETOOLONG. MT-safe. */
int attribute_path(const char *pattern, const struct view_facts *facts, uint32_t index, char *path,
		   size_t size);

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
