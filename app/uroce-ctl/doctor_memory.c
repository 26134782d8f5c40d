/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of memory: huge pages, the limit of locked memory, /dev/shm, memory files. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define KIB	   UINT64_C(1024)
#define MIB	   (1024 * KIB)
#define PAGES_DIR  "/sys/kernel/mm/hugepages/hugepages-2048kB"
#define PAGES_WANT 256 /* of 2 MiB, as config/setup.sh reserves */
#define PAGES_MIN  13  /* that one program takes */
/* A port behind an IOMMU maps its buffers: those of uroced, with the default limits. */
#define LOCK_WANT (256 * MIB)
#define SHM_WANT  (1 * MIB) /* for the files of a view; everything else is in memory files */

/* Find where pages of 2 MiB are mounted. The default size is 2 MiB on x86 and most others. */
static bool find_mount(const struct doctor *doctor, char *where, size_t size)
{
	char line[1024], path[256], type[32], options[256];
	FILE *file = doctor_open(doctor, "/proc/mounts");
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*s %255s %31s %255s", path, type, options) != 3 ||
		    strcmp(type, "hugetlbfs") != 0 ||
		    (strstr(options, "pagesize=") && !strstr(options, "pagesize=2M")))
			continue;
		snprintf(where, size, "%s", path);
		found = true;
	}
	if (file)
		fclose(file);
	return found;
}

static void check_huge_pages(const struct doctor *doctor)
{
	const uint64_t all = doctor_number(doctor, UINT64_MAX, PAGES_DIR "/nr_hugepages");
	const uint64_t free_pages = doctor_number(doctor, 0, PAGES_DIR "/free_hugepages");
	char where[256];
	const bool mounted = find_mount(doctor, where, sizeof(where));
	char change[256];

	if (all == UINT64_MAX) {
		doctor_tell(doctor, "huge-pages", "",
			    "use a kernel with CONFIG_HUGETLBFS; ordinary pages work, slower",
			    "this kernel has none of 2 MiB");
		return;
	}
	if (free_pages < PAGES_MIN) {
		snprintf(change, sizeof(change),
			 "as root: echo %" PRIu64 " >" PAGES_DIR
			 "/nr_hugepages (ordinary pages work, slower)",
			 all + PAGES_WANT);
		doctor_tell(doctor, "huge-pages", "", change,
			    "%" PRIu64 " of 2 MiB reserved, %" PRIu64 " free; a program takes %d",
			    all, free_pages, PAGES_MIN);
	} else if (!mounted) {
		doctor_tell(doctor, "huge-pages", "",
			    "as root: mkdir -p /dev/hugepages && mount -t hugetlbfs -o pagesize=2M "
			    "none /dev/hugepages",
			    "%" PRIu64 " of 2 MiB reserved, %" PRIu64 " free, not mounted", all,
			    free_pages);
	} else {
		doctor_tell(doctor, "huge-pages", "", NULL,
			    "%" PRIu64 " of 2 MiB reserved, %" PRIu64 " free, mounted at %s", all,
			    free_pages, where);
	}
}

static void check_memlock(const struct doctor *doctor)
{
	const struct doctor_host *host = doctor->host;

	if (host->locks_freely)
		doctor_tell(doctor, "memlock", "", NULL, "no limit for this user (CAP_IPC_LOCK)");
	else if (host->memlock_bytes == UINT64_MAX)
		doctor_tell(doctor, "memlock", "", NULL, "unlimited");
	else if (host->memlock_bytes >= LOCK_WANT)
		doctor_tell(doctor, "memlock", "", NULL, "%" PRIu64 " MiB",
			    host->memlock_bytes / MIB);
	else
		doctor_tell(doctor, "memlock", "",
			    "ulimit -l unlimited, or memlock in /etc/security/limits.conf, or "
			    "LimitMEMLOCK=infinity in a systemd unit",
			    "%" PRIu64 " KiB: a NIC behind vfio-pci needs %" PRIu64
			    " MiB; other ports "
			    "need none",
			    host->memlock_bytes / KIB, LOCK_WANT / MIB);
}

static void check_shm(const struct doctor *doctor)
{
	const struct doctor_host *host = doctor->host;

	if (host->shm_error != 0)
		doctor_tell(doctor, "shm", "/dev/shm",
			    "as root: mount -t tmpfs -o mode=1777 tmpfs /dev/shm (uroce-run uses "
			    "/tmp meanwhile)",
			    "no file can be made there: %s", strerror(host->shm_error));
	else if (host->shm_free_bytes < SHM_WANT)
		doctor_tell(doctor, "shm", "/dev/shm",
			    "remove files there, or as root: mount -o remount,size=256M /dev/shm "
			    "(podman: --shm-size)",
			    "%" PRIu64 " MiB, %" PRIu64 " KiB free", host->shm_bytes / MIB,
			    host->shm_free_bytes / KIB);
	else
		doctor_tell(doctor, "shm", "/dev/shm", NULL,
			    "%" PRIu64 " MiB, %" PRIu64 " MiB free", host->shm_bytes / MIB,
			    host->shm_free_bytes / MIB);
}

static void check_memfd(const struct doctor *doctor)
{
	const int error = doctor->host->memfd_error;
	const uint64_t noexec = doctor_number(doctor, 0, "/proc/sys/vm/memfd_noexec");

	if (error == 0)
		doctor_tell(doctor, "memfd", "", NULL, "memory files can be made and sealed");
	else
		doctor_tell(doctor, "memfd", "",
			    noexec >= 2 ? "as root: sysctl vm.memfd_noexec=1"
					: "allow memfd_create and F_ADD_SEALS in the seccomp "
					  "profile, or use Linux 3.17 or later",
			    "memory files cannot be made and sealed (%s), so uroced shares no port",
			    strerror(error));
}

void doctor_memory(const struct doctor *doctor)
{
	check_huge_pages(doctor);
	check_memlock(doctor);
	check_shm(doctor);
	check_memfd(doctor);
}
