/* SPDX-License-Identifier: BSD-3-Clause */
/* Both sides of a test by one command. */
#include "main.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_common.h>

#include "testroce_options.h"

/* Addresses for documentation (RFC 5737): no other host is on this link. */
#define ADDRESS "192.0.2.%d/24"

/* Find a free TCP port. The passive process listens on it immediately afterwards. */
static int free_port(char where[32])
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc = 0;

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 ||
	    getsockname(fd, (struct sockaddr *)&addr, &len) != 0)
		rc = -errno;
	if (fd >= 0)
		close(fd);
	snprintf(where, 32, "127.0.0.1:%u", ntohs(addr.sin_port));
	return rc;
}

/* Pin the passive side to the first allowed CPUs, the active side to the last ones. Each side gets
 * one for each thread, if half of the CPUs are so many. */
static void keep_to_cpus(bool first, uint64_t threads)
{
	cpu_set_t allowed, own;
	uint64_t left;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2)
		return;
	left = RTE_MIN(threads, (uint64_t)CPU_COUNT(&allowed) / 2);
	CPU_ZERO(&own);
	for (int cpu = first ? 0 : CPU_SETSIZE - 1; left > 0; cpu += first ? 1 : -1) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		CPU_SET(cpu, &own);
		left--;
	}
	sched_setaffinity(0, sizeof(own), &own);
}

static int set_port(const struct pair *pair, struct options *options, const char *role, int number,
		    char *error, size_t error_size)
{
	char port[128], address[32];
	int rc;

	snprintf(port, sizeof(port), "net_memif0,socket=%s/wire.sock,role=%s,id=0", pair->folder,
		 role);
	snprintf(address, sizeof(address), ADDRESS, number);
	rc = settings_set(&options->settings, "port", port, error, error_size);
	if (rc == 0)
		rc = settings_set(&options->settings, "ip", address, error, error_size);
	if (rc == 0)
		rc = settings_check(&options->settings, error, error_size);
	return rc;
}

/* Turn the child into the passive side. Its stdout goes to /dev/null: it would only print its
 * listening address. */
static int become_passive(const struct pair *pair, struct options *options, char *error,
			  size_t error_size)
{
	const int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (null_fd < 0 || dup2(null_fd, STDOUT_FILENO) < 0) {
		snprintf(error, error_size, "/dev/null: %s", strerror(errno));
		return -errno;
	}
	close(null_fd);
	options->listen = pair->where;
	options->once = true;
	options->interactive = false;
	return set_port(pair, options, "server", 1, error, error_size);
}

int pair_fork(struct pair *pair, struct options *options, char *error, size_t error_size)
{
	int rc;

	snprintf(pair->folder, sizeof(pair->folder), "/tmp/testroce-XXXXXX");
	rc = free_port(pair->where);
	if (rc == 0 && !mkdtemp(pair->folder))
		rc = -errno;
	if (rc != 0) {
		snprintf(error, error_size, "the memif port: %s", strerror(-rc));
		return rc;
	}
	pair->child = fork();
	if (pair->child < 0) {
		rc = -errno;
		snprintf(error, error_size, "the other side: %s", strerror(errno));
		rmdir(pair->folder);
		return rc;
	}
	keep_to_cpus(pair->child == 0, options->plan.threads);
	if (pair->child == 0)
		return become_passive(pair, options, error, error_size);
	options->connect = pair->where;
	return set_port(pair, options, "client", 2, error, error_size);
}

void pair_join(struct pair *pair, bool was_served)
{
	char path[sizeof(pair->folder) + 16];

	/* A child that nobody connects to would wait forever. SIGTERM has no effect while DPDK
	 * starts, so send SIGKILL. */
	if (!was_served)
		kill(pair->child, SIGKILL);
	waitpid(pair->child, NULL, 0);
	snprintf(path, sizeof(path), "%s/wire.sock", pair->folder);
	unlink(path);
	rmdir(pair->folder);
}
