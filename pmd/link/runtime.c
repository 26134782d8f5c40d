/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL's arguments, made by us and not by users, and the one call that takes them. */
#include "link/runtime.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <syslog.h>
#include <time.h>

#include <rte_alarm.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include "base/log.h"
#include "link/eal_log.h"
#include "link/footprint.h"

#define ARGS_MAX	32
#define SETTLE_S	1
#define MIB		(UINT64_C(1) << 20)
#define HUGE_SPARE_MIB	16 /* EAL's own tables and the fragments of its heap */
#define PLAIN_SPARE_MIB 64 /* the same without huge pages, all taken at the start */

struct args {
	char text[ARGS_MAX][DEVARGS_TEXT_MAX + DEVARGS_NAME_MAX];
	char *argv[ARGS_MAX];
	int argc;
};

static bool runtime_started;
static bool runtime_huge;

static void __attribute__((format(printf, 2, 3)))
args_add(struct args *args, const char *format, ...)
{
	va_list list;

	if (args->argc == ARGS_MAX)
		return;
	va_start(list, format);
	vsnprintf(args->text[args->argc], sizeof(args->text[0]), format, list);
	va_end(list);
	args->argv[args->argc] = args->text[args->argc];
	args->argc++;
}

/* The CPUs of a set that EAL has names for. Returns how many. */
static int list_cpus(const cpu_set_t *set, char *list, size_t size)
{
	size_t len = 0;
	int count = 0;

	list[0] = '\0';
	for (int cpu = 0; cpu < RTE_MAX_LCORE && len + 8 < size; cpu++) {
		if (!CPU_ISSET(cpu, set))
			continue;
		len += (size_t)snprintf(list + len, size - len, "%s%d", count ? "," : "", cpu);
		count++;
	}
	return count;
}

/*
 * One lcore that may run on every CPU that the caller may: so EAL has nobody to pin, and its own
 * threads stay as free as the program's.
 */
static void args_add_lcore(struct args *args)
{
	char list[DEVARGS_TEXT_MAX];
	cpu_set_t set;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	if (list_cpus(&set, list, sizeof(list)) == 0) {
		/* EAL can name none that the program may use: it gets others for its start, as far as the
		 * program's cpuset has any. The footprint puts the affinity back. */
		memset(&set, 0xff, sizeof(set));
		sched_setaffinity(0, sizeof(set), &set);
		CPU_ZERO(&set);
		sched_getaffinity(0, sizeof(set), &set);
		list_cpus(&set, list, sizeof(list));
	}
	args_add(args, "--lcores");
	args_add(args, "0@(%s)", list);
}

static void args_add_memory(struct args *args, size_t memory_bytes)
{
	if (runtime_huge) {
		args_add(args, "--in-memory");
		args_add(args, "--single-file-segments");
	} else {
		args_add(args, "--no-huge");
		args_add(args, "--no-shconf");
		args_add(args, "-m");
		args_add(args, "%zu", (size_t)(memory_bytes / MIB) + PLAIN_SPARE_MIB);
	}
}

static void args_add_devices(struct args *args, const struct runtime_config *config)
{
	bool pci = false;

	for (size_t i = 0; i < config->device_count; i++) {
		const struct devargs *device = &config->devices[i];

		pci |= device->bus == DEVARGS_PCI;
		args_add(args, "-a");
		args_add(args, "%s%s%s", device->name, device->args[0] ? "," : "", device->args);
	}
	if (!pci) {
		args_add(args, "--no-pci");
		/* Physical addresses are for hardware; with hardware EAL knows best. */
		args_add(args, "--iova-mode=va");
	}
}

/* Whether that much can be had in huge pages now, of the default size or of 1 GiB. Touched as well: a
 * cgroup's limit shows only then, as SIGBUS where nobody asks before. */
static bool huge_pages_free(size_t bytes)
{
	static const int sizes[] = {0, 30 << MAP_HUGE_SHIFT};
	const size_t huge = (bytes + HUGE_SPARE_MIB * MIB + 2 * MIB - 1) & ~(2 * MIB - 1);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const size_t len =
			sizes[i] ? (huge + (1 << 30) - 1) & ~(((size_t)1 << 30) - 1) : huge;
		void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | sizes[i], -1, 0);

		bool populated;

		if (p == MAP_FAILED)
			continue;
		/* Linux before 5.14 does not know how to ask. */
		populated = madvise(p, len, MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
		munmap(p, len);
		if (populated)
			return true;
	}
	return false;
}

/* EAL opens syslog under our name and option; give the program the defaults back. */
static void restore_syslog(void)
{
	openlog(NULL, 0, LOG_USER);
	closelog();
}

/* EAL cannot be started a second time, so there is no way back to ordinary pages. */
static void log_failure(int rc, size_t memory_bytes)
{
	if (rc == -EALREADY)
		log_error(
			"this program runs DPDK itself: uroce cannot start a second one beside it");
	else if (runtime_huge && !huge_pages_free(memory_bytes))
		log_error("another program has just taken the huge pages that were free: start again, or "
			  "set up more of them");
	else
		log_error("DPDK does not start: %s",
			  eal_log_reason()[0] ? eal_log_reason() : rte_strerror(-rc));
}

static int runtime_init(struct args *args, size_t memory_bytes)
{
	struct footprint footprint;
	int rc;

	rc = footprint_save(&footprint);
	if (rc != 0) {
		log_error("cannot read this process's state from /proc: %s", strerror(-rc));
		return rc;
	}
	args_add_lcore(args);
	eal_log_capture();
	rc = rte_eal_init(args->argc, args->argv) < 0 ? -rte_errno : 0;
	eal_log_release();
	restore_syslog();
	footprint_restore(&footprint);
	if (rc == 0) {
		/* The caller is no lcore: engines take one for the length of a turn (pool caches).
		 */
		RTE_PER_LCORE(_lcore_id) = LCORE_ID_ANY;
		return 0;
	}
	log_failure(rc, memory_bytes);
	return rc;
}

int runtime_start(const struct runtime_config *config)
{
	static struct args args;
	int rc;

	if (runtime_started)
		return 0;
	rc = eal_log_open();
	if (rc != 0)
		return rc;
	runtime_huge = huge_pages_free(config->memory_bytes);
	if (!runtime_huge)
		log_warn("no huge pages are free: running on ordinary pages, slower (try: echo 256 "
			 "> "
			 "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages)");
	args_add(&args, "%s", program_invocation_short_name);
	args_add_memory(&args, config->memory_bytes);
	args_add_devices(&args, config);
	args_add(&args, "--no-telemetry");
	rc = runtime_init(&args, config->memory_bytes);
	if (rc == 0)
		runtime_started = true;
	return rc;
}

static void runtime_settled(void *arg)
{
	sem_post(arg);
}

void runtime_settle(void)
{
	static sem_t settled;
	struct timespec until;

	sem_init(&settled, 0, 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SETTLE_S;
	/* Alarms are served by that thread, after it has made its list of descriptors anew. */
	if (rte_eal_alarm_set(1, runtime_settled, &settled) != 0)
		return;
	while (sem_timedwait(&settled, &until) != 0 && errno == EINTR)
		;
}

bool runtime_has_huge_pages(void)
{
	return runtime_huge;
}
