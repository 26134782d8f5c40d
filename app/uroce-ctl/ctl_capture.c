/* SPDX-License-Identifier: BSD-3-Clause */
/* Look which tools are installed, enter the network namespace of the port, and execute the tool. */
#include "ctl_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_installed(const char *tool)
{
	const char *path = getenv("PATH");
	char full[PATH_MAX];

	for (path = path ? path : "/usr/bin:/bin:/usr/sbin:/sbin"; *path;) {
		const int len = (int)strcspn(path, ":");

		if (len > 0 &&
		    snprintf(full, sizeof(full), "%.*s/%s", len, path, tool) < (int)sizeof(full) &&
		    access(full, X_OK) == 0)
			return true;
		path += len;
		path += *path == ':';
	}
	return false;
}

/* Enter the network namespace of a process, if it is not ours. Returns 0 or -errno. */
static int enter_netns(pid_t pid)
{
	struct stat ours, theirs;
	char path[64];
	int fd, rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &theirs) != 0 || stat("/proc/self/ns/net", &ours) != 0)
		rc = -errno;
	else if (ours.st_ino != theirs.st_ino && setns(fd, CLONE_NEWNET) != 0)
		rc = -errno;
	close(fd);
	return rc;
}

/* Remove an old file: dpdk-dumpcap does not truncate it. Leave devices and pipes alone. */
static bool remove_old(const char *path)
{
	struct stat file;

	return lstat(path, &file) != 0 || !S_ISREG(file.st_mode) || unlink(path) == 0;
}

/* Print the command, so that the user can change it. */
static void print_command(const struct capture_plan *plan)
{
	fputs("uroce-ctl:", stderr);
	for (size_t i = 0; plan->argv[i]; i++)
		fprintf(stderr, strpbrk(plan->argv[i], " &()[]") ? " '%s'" : " %s", plan->argv[i]);
	fputc('\n', stderr);
	if (plan->note)
		fprintf(stderr, "uroce-ctl: %s\n", plan->note);
}

void capture_run(const struct report_devices *devices, const struct capture_want *want, char *error,
		 size_t error_size)
{
	const struct capture_tools tools = {
		.dpdk_dumpcap = is_installed("dpdk-dumpcap"),
		.dumpcap = is_installed("dumpcap"),
		.tcpdump = is_installed("tcpdump"),
	};
	struct capture_target target;
	struct capture_plan plan;
	struct dpdk_ports ports;
	int rc;

	if (!capture_find(devices, want, &target, error, error_size))
		return;
	rc = dpdk_ports_ask(capture_owner(&target), &ports);
	if (rc != 0) {
		snprintf(error, error_size, "cannot ask process %d for its DPDK ports: %s",
			 capture_owner(&target), strerror(-rc));
		return;
	}
	if (!capture_choose(&target, want, &ports, &tools, &plan, error, error_size))
		return;
	if (!remove_old(want->file)) {
		snprintf(error, error_size, "%s: %s", want->file, strerror(errno));
		return;
	}
	print_command(&plan);
	rc = plan.netns_of != 0 ? enter_netns(plan.netns_of) : 0;
	if (rc != 0) {
		snprintf(error, error_size, "cannot enter the network of process %d: %s",
			 plan.netns_of, strerror(-rc));
		return;
	}
	execvp(plan.argv[0], (char *const *)(uintptr_t)plan.argv);
	snprintf(error, error_size, "%s: %s", plan.argv[0], strerror(errno));
}
