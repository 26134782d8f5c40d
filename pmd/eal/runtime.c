/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts EAL: chooses its memory, and preserves the program's state. */
#include "eal/runtime.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include "base/log.h"
#include "eal/eal_log.h"
#include "eal/footprint.h"
#include "eal/privilege.h"
#include "eal_args.h"
#include "runtime_dir.h"

#define SETTLE_S       1
#define MEASURE_NS     5000000 /* an error of 100 ns in it is one of 20 ppm */
#define MEASURE_TRIES  8
#define MIB	       (UINT64_C(1) << 20)
#define HUGE_SPARE_MIB 16 /* for EAL's own tables, and for what its heap loses to fragmentation */
#define SHIFT_2_MIB    21

static bool runtime_started;
static bool runtime_joined;	/* the program started EAL */
static bool runtime_is_parents; /* this process was forked after EAL had started */
static enum eal_pages runtime_pages;
static uint64_t runtime_ns, runtime_tsc; /* runtime_begin_tsc: the clock and the counter */

static void runtime_after_fork(void)
{
	runtime_is_parents = rte_lcore_count() > 0;
}

static void __attribute__((constructor)) runtime_watch_forks(void)
{
	pthread_atfork(NULL, NULL, runtime_after_fork);
}

/* Return true if that many bytes are available in huge pages of this size now. The pages are
 * populated here, because a cgroup's limit shows only then. Otherwise the program would get SIGBUS
 * later. */
static bool huge_pages_free(size_t bytes, int shift)
{
	const size_t page = (size_t)1 << shift;
	const size_t len = (bytes + HUGE_SPARE_MIB * MIB + page - 1) & ~(page - 1);
	bool populated;
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | shift << MAP_HUGE_SHIFT, -1, 0);

	if (p == MAP_FAILED)
		return false;
	/* Linux before 5.14 does not know this request (EINVAL): assume that the pages are
	 * there. */
	populated = madvise(p, len, MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
	munmap(p, len);
	return populated;
}

static enum eal_pages find_pages(size_t bytes)
{
	/* 32 MiB, 512 MiB and 1 GiB. The first two exist only on ARM; elsewhere mmap(2) refuses
	 * them. */
	static const int larger[] = {25, 29, 30};

	if (huge_pages_free(bytes, SHIFT_2_MIB))
		return EAL_PAGES_2_MIB;
	for (size_t i = 0; i < RTE_DIM(larger); i++) {
		if (huge_pages_free(bytes, larger[i]))
			return EAL_PAGES_HUGE;
	}
	return EAL_PAGES_PLAIN;
}

/* Give the program syslog's defaults back, because EAL has opened the log with a name and an option
 * of its own. */
static void restore_syslog(void)
{
	openlog(NULL, 0, LOG_USER);
	closelog();
}

/* Log why EAL did not start. EAL cannot be started a second time, so we cannot fall back to
 * ordinary pages. */
static void log_failure(int rc, size_t memory_bytes)
{
	if (rte_eal_process_type() == RTE_PROC_SECONDARY)
		log_error("no DPDK primary with this file-prefix can be joined: %s",
			  eal_log_reason()[0] ? eal_log_reason() : rte_strerror(-rc));
	else if (runtime_pages != EAL_PAGES_PLAIN && !find_pages(memory_bytes))
		log_error("another program has just taken the huge pages that were free: start "
			  "again, or set up more of them");
	else
		log_error("DPDK does not start: %s",
			  eal_log_reason()[0] ? eal_log_reason() : rte_strerror(-rc));
}

static int runtime_init(struct eal_args *args, size_t memory_bytes)
{
	struct footprint footprint;
	int rc;

	rc = footprint_save(&footprint);
	if (rc != 0) {
		log_error("cannot read this process's state from /proc: %s", strerror(-rc));
		return rc;
	}
	eal_args_add_lcore(args);
	eal_log_capture();
	rc = rte_eal_init(args->argc, args->argv) < 0 ? -rte_errno : 0;
	eal_log_release();
	restore_syslog();
	footprint_restore(&footprint);
	if (rc == 0) {
		/* Undo that EAL made the caller an lcore: an engine's owner is one only during an
		 * engine poll, to use the caches of pools. */
		RTE_PER_LCORE(_lcore_id) = LCORE_ID_ANY;
		return 0;
	}
	log_failure(rc, memory_bytes);
	return rc;
}

/*
 * Use the EAL that the program has started: its memory, its log and its threads stay as they are.
 * The calling thread may be one of its lcores, and remains one.
 */
static int runtime_join(const struct runtime_config *config)
{
	if (runtime_is_parents) {
		log_error("this process is a child of a DPDK program, and shares the memory and "
			  "the queues of DPDK with it: start the device in the parent, or execute "
			  "a program in the child");
		return -ECHILD;
	}
	if (config->secondary) {
		log_error("this program runs DPDK itself, so it cannot become a secondary process "
			  "of another one");
		return -EALREADY;
	}
	if (config->eal)
		log_warn("this program has started DPDK itself: --eal has no effect");
	runtime_joined = true;
	runtime_started = true;
	runtime_pages = rte_eal_has_hugepages() ? EAL_PAGES_HUGE : EAL_PAGES_PLAIN;
	return 0;
}

int runtime_start(const struct runtime_config *config)
{
	static struct eal_args args;
	char error[512];
	int rc;

	if (runtime_started && !runtime_is_parents)
		return 0;
	/* The count is zero until EAL starts. */
	if (rte_lcore_count() > 0)
		return runtime_join(config);
	/* Other runs of EAL leave no files there. */
	rc = config->shared || config->telemetry || config->secondary ? runtime_dir_check() : 0;
	if (rc == 0 && config->secondary) {
		rc = runtime_dir_check_primary(config->file_prefix ? config->file_prefix : "rte",
					       error, sizeof(error));
		if (rc != 0)
			log_error("%s", error);
	}
	if (rc == 0)
		rc = eal_log_open();
	if (rc != 0)
		return rc;
	runtime_pages = config->secondary ? EAL_PAGES_HUGE : find_pages(config->memory_bytes);
	if (runtime_pages == EAL_PAGES_PLAIN && config->memory_bytes > 0)
		log_warn("no huge pages are free: running on ordinary pages, slower (try: echo 256 "
			 "> "
			 "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages)");
	eal_args_make(&args, config, runtime_pages);
	rc = runtime_init(&args, config->memory_bytes);
	if (rc == 0)
		runtime_started = true;
	return rc;
}

void runtime_remove_files(const char *file_prefix)
{
	char line[PATH_MAX + 128], name[64];
	FILE *maps = fopen("/proc/self/maps", "re");

	snprintf(name, sizeof(name), "/%smap_", file_prefix);
	while (maps && fgets(line, sizeof(line), maps)) {
		char *path = strchr(line, '/');

		if (!path || !strstr(path, name))
			continue;
		path[strcspn(path, "\n")] = '\0';
		/* EAL maps one file in many pieces, so a later line may name a file that is already
		 * removed. */
		if (unlink(path) != 0 && errno != ENOENT)
			log_info("cannot remove %s: %s", path, strerror(errno));
	}
	if (maps)
		fclose(maps);
}

/* Drop the privileges of EAL's interrupt thread, on which this runs. */
static void runtime_settled(void *arg)
{
	privilege_drop(false);
	sem_post(arg);
}

void runtime_settle(void)
{
	static sem_t settled;
	struct timespec until;

	/* If the program has started EAL, the interrupt thread is the program's, and keeps its
	 * privileges. */
	if (!runtime_started || runtime_joined)
		return;
	sem_init(&settled, 0, 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SETTLE_S;
	/* The interrupt thread runs alarms only after it has rebuilt its list of descriptors, so an
	 * alarm shows that all registrations are handled. */
	if (rte_eal_alarm_set(1, runtime_settled, &settled) != 0)
		return;
	while (sem_timedwait(&settled, &until) != 0 && errno == EINTR)
		;
}

/* Read the clock, in ns, and the counter at the same moment: of several readings take that with the
 * shortest time between two reads of the counter, because an interrupted one takes longer. */
static uint64_t measure_now(uint64_t *tsc)
{
	uint64_t best = UINT64_MAX, ns = 0;

	*tsc = 0;
	for (int i = 0; i < MEASURE_TRIES; i++) {
		const uint64_t before = rte_rdtsc_precise();
		struct timespec now;
		uint64_t span;

		clock_gettime(CLOCK_MONOTONIC_RAW, &now);
		span = rte_rdtsc_precise() - before;
		if (span >= best)
			continue;
		best = span;
		*tsc = before + span / 2;
		ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	}
	return ns;
}

void runtime_begin_tsc(void)
{
	runtime_ns = measure_now(&runtime_tsc);
}

uint64_t runtime_tsc_hz(void)
{
	static const struct timespec pause = {.tv_nsec = MEASURE_NS};
	static uint64_t hz;
	uint64_t ns, tsc;

	if (rte_get_tsc_hz() != 0)
		return rte_get_tsc_hz();
	if (hz != 0)
		return hz;
	if (runtime_ns == 0)
		runtime_begin_tsc();
	ns = measure_now(&tsc);
	if (ns - runtime_ns < MEASURE_NS) {
		nanosleep(&pause, NULL);
		ns = measure_now(&tsc);
	}
	hz = (uint64_t)((unsigned __int128)(tsc - runtime_tsc) * NS_PER_S / (ns - runtime_ns));
	return hz;
}

bool runtime_has_huge_pages(void)
{
	return runtime_pages != EAL_PAGES_PLAIN;
}
