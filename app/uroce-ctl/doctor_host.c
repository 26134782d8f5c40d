/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the kernel what this process may do: reads limits, and makes attempts that leave nothing
 * behind. */
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/cpus.h"
#include "config/drivers.h"

#define SHM	     "/dev/shm"
#define FEATURE	     "tx-udp-segmentation"
#define FEATURES_MAX 256 /* the kernel has some 64 */

/* Ask the kernel about an interface. `command` is in a larger buffer, because its struct ends with
 * an array. */
static bool ask_ethtool(int fd, struct ifreq *request, void *command)
{
	request->ifr_data = command;
	return ioctl(fd, SIOCETHTOOL, request) == 0;
}

/* Return the index of FEATURE among the interface's features; -1 if it is unknown. */
static int find_feature(int fd, struct ifreq *request)
{
	uint64_t space[3] = {0};
	struct ethtool_sset_info *set = (void *)space;
	struct ethtool_gstrings *strings;
	int found = -1;

	set->cmd = ETHTOOL_GSSET_INFO;
	set->sset_mask = 1ull << ETH_SS_FEATURES;
	if (!ask_ethtool(fd, request, set) || set->data[0] > FEATURES_MAX)
		return -1;
	strings = calloc(1, sizeof(*strings) + FEATURES_MAX * ETH_GSTRING_LEN);
	if (!strings)
		return -1;
	strings->cmd = ETHTOOL_GSTRINGS;
	strings->string_set = ETH_SS_FEATURES;
	strings->len = set->data[0];
	if (ask_ethtool(fd, request, strings)) {
		for (uint32_t i = 0; i < set->data[0] && found < 0; i++) {
			if (strncmp((const char *)strings->data + i * ETH_GSTRING_LEN, FEATURE,
				    ETH_GSTRING_LEN) == 0)
				found = (int)i;
		}
	}
	free(strings);
	return found;
}

static enum doctor_offload segments_udp(const char *iface)
{
	uint32_t space[2 + FEATURES_MAX / 32 * 4] = {ETHTOOL_GFEATURES, FEATURES_MAX / 32};
	struct ethtool_gfeatures *features = (void *)space;
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_name = ""};
	enum doctor_offload offload = OFFLOAD_UNKNOWN;
	int feature;

	if (fd < 0)
		return OFFLOAD_UNKNOWN;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", iface);
	feature = find_feature(fd, &request);
	if (feature >= 0 && ask_ethtool(fd, &request, features)) {
		const struct ethtool_get_features_block *block = &features->features[feature / 32];
		const uint32_t bit = UINT32_C(1) << feature % 32;

		if (block->active & bit)
			offload = OFFLOAD_ON;
		else
			offload = (block->available & ~block->never_changed & bit)
					  ? OFFLOAD_OFF
					  : OFFLOAD_MISSING;
	}
	close(fd);
	return offload;
}

static bool may_write(const char *path)
{
	return access(path, W_OK) == 0;
}

static int try_memfd(void)
{
	const int fd = memfd_create("uroce-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const int rc =
		fd < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0 ? errno : 0;

	if (fd >= 0)
		close(fd);
	return rc;
}

static int try_raw_socket(void)
{
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int try_shm(void)
{
	char path[] = SHM "/uroce-doctor-XXXXXX";
	const int fd = mkostemp(path, O_CLOEXEC);

	if (fd < 0)
		return errno;
	unlink(path);
	close(fd);
	return 0;
}

/* Let a child try, because a process cannot go back to its old namespaces. */
static int try_user_namespace(void)
{
	const pid_t child = fork();
	int status;

	if (child < 0)
		return errno;
	if (child == 0)
		_exit(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 ? 0 : errno & 0xff);
	if (waitpid(child, &status, 0) != child)
		return errno;
	/* A seccomp profile may kill the child. */
	return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

static bool has_capability(int capability)
{
	uint64_t effective = 0;
	char line[256];
	FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "CapEff:", 7) == 0)
			effective = strtoull(line + 7, NULL, 16);
	}
	if (file)
		fclose(file);
	return effective >> capability & 1;
}

void doctor_ask_host(struct doctor_host *host)
{
	struct rlimit limit = {.rlim_cur = 0};
	struct statvfs shm;

	*host = (struct doctor_host){
		.root = "",
		.drivers = drivers_dir(),
		.cpus = cpus_count(),
		.locks_freely = has_capability(CAP_IPC_LOCK),
		.shm_error = try_shm(),
		.memfd_error = try_memfd(),
		.raw_error = try_raw_socket(),
		.user_error = try_user_namespace(),
		.segments_udp = segments_udp,
		.may_write = may_write,
	};
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
		host->memlock_bytes = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
	if (statvfs(SHM, &shm) == 0) {
		host->shm_bytes = (uint64_t)shm.f_blocks * shm.f_frsize;
		host->shm_free_bytes = (uint64_t)shm.f_bavail * shm.f_frsize;
	}
}
