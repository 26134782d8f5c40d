/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPUs that are close to a device. A port without a PCI device is close to all. */
#include "topology.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#define CPUS_ONLINE "/sys/devices/system/cpu/online"
#define CPUS_MAX    4096
#define WORD_BITS   32

static int read_file(const char *path, char *text, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read(fd, text, size - 1);
	close(fd);
	if (len <= 0)
		return -EIO;
	text[len] = '\0';
	return 0;
}

static int read_own(const char *netdev, const char *attribute, char *text, size_t size)
{
	char path[PATH_MAX];

	if (netdev[0] == '\0')
		return -ENOENT;
	snprintf(path, sizeof(path), "/sys/class/net/%s/device/%s", netdev, attribute);
	return read_file(path, text, size);
}

void topology_numa_node(const char *netdev, char *text, size_t size)
{
	if (read_own(netdev, "numa_node", text, size) != 0)
		snprintf(text, size, "-1\n");
}

void topology_cpulist(const char *netdev, char *text, size_t size)
{
	if (read_own(netdev, "local_cpulist", text, size) != 0 &&
	    read_file(CPUS_ONLINE, text, size) != 0)
		snprintf(text, size, "0\n");
}

int topology_mask(const char *list, char *text, size_t size)
{
	uint32_t words[CPUS_MAX / WORD_BITS] = {0};
	unsigned long first, last, highest = 0;
	size_t len = 0;
	char *end;

	for (;;) {
		first = last = strtoul(list, &end, 10);
		if (end == list)
			return -EINVAL;
		list = end;
		if (*list == '-') {
			last = strtoul(list + 1, &end, 10);
			if (end == list + 1)
				return -EINVAL;
			list = end;
		}
		if (first > last || last >= CPUS_MAX)
			return -EINVAL;
		for (unsigned long cpu = first; cpu <= last; cpu++)
			words[cpu / WORD_BITS] |= UINT32_C(1) << cpu % WORD_BITS;
		highest = RTE_MAX(highest, last);
		if (*list != ',')
			break;
		list++;
	}
	if (*list != '\0' && *list != '\n')
		return -EINVAL;
	for (size_t i = highest / WORD_BITS + 1; i-- > 0 && len < size;)
		len += (size_t)snprintf(text + len, size - len, "%08x%s", words[i],
					i == 0 ? "\n" : ",");
	return len < size ? 0 : -EINVAL;
}

void topology_cpus(const char *netdev, char *text, size_t size)
{
	char list[256];

	if (read_own(netdev, "local_cpus", text, size) == 0)
		return;
	topology_cpulist("", list, sizeof(list));
	if (topology_mask(list, text, size) != 0)
		snprintf(text, size, "00000001\n");
}
