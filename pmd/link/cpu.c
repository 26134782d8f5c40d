/* SPDX-License-Identifier: BSD-3-Clause */
/* Slices, and how many threads want to run. */
#include "link/cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/log.h"

#define SLICE_NS UINT64_C(100000) /* the shortest that Linux gives */

void cpu_shorten_slices(void)
{
	/* The C library has no struct of it. */
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime_ns, deadline_ns, period_ns;
	} attr = {.size = sizeof(attr)};

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0 ||
	    attr.policy != SCHED_OTHER)
		return;
	attr.runtime_ns = SLICE_NS;
	if (syscall(SYS_sched_setattr, 0, &attr, 0) != 0)
		log_info("the kernel takes no slice length: %s", strerror(errno));
}

bool cpu_is_short(void)
{
	const int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	unsigned int running = 0;
	char text[128];
	ssize_t len;

	if (fd < 0)
		return true;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[RTE_MAX(len, (ssize_t)0)] = '\0';
	if (sscanf(text, "%*s %*s %*s %u", &running) != 1)
		return true;
	return running > (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
}
