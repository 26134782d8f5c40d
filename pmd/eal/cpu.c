/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets time slices, and counts the threads that want to run. */
#include "eal/cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/log.h"

#define SLICE_NS	 UINT64_C(100000) /* the shortest that Linux gives */
#define THREAD_CPU_CLOCK 6 /* of a thread, by the scheduler's count (clock_getcpuclockid) */

void cpu_shorten_slices(void)
{
	/* The C library does not define this struct. */
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
		log_info("the kernel cannot shorten the time slice: %s", strerror(errno));
}

/* Read the beginning of a file of /proc. It is empty if the file cannot be read. */
static void read_text(const char *path, char *text, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t len = fd >= 0 ? read(fd, text, size - 1) : 0;

	if (fd >= 0)
		close(fd);
	text[RTE_MAX(len, (ssize_t)0)] = '\0';
}

bool cpu_is_short(void)
{
	unsigned int running = 0;
	char text[128];

	read_text("/proc/loadavg", text, sizeof(text));
	if (sscanf(text, "%*s %*s %*s %u", &running) != 1)
		return true;
	return running > (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Return the time of a clock, or 0 if there is no such clock. */
static uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec time;

	if (clock_gettime(clock, &time) != 0)
		return 0;
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t cpu_own_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t cpu_thread_ns(uint32_t tid)
{
	/* The kernel's name of this clock; the C library asks for a pthread_t, which may have
	 * ended. */
	return clock_read_ns((clockid_t)(~tid << 3 | THREAD_CPU_CLOCK));
}

bool cpu_thread_wants_cpu(uint32_t tid)
{
	char path[64], text[128];
	const char *name_end;

	snprintf(path, sizeof(path), "/proc/self/task/%u/stat", tid);
	read_text(path, text, sizeof(text));
	name_end = strrchr(text, ')'); /* the thread's name may contain anything */
	return name_end && strncmp(name_end, ") R", 3) == 0;
}

struct ordinary_run {
	int (*run)(void *arg);
	void *arg;
	int rc;
};

static void *run_ordinary(void *arg)
{
	struct ordinary_run *ordinary = arg;

	ordinary->rc = ordinary->run(ordinary->arg);
	return NULL;
}

/* Block the program's signals, which are for its own threads; but not faults, because a fault that
 * is blocked kills the process. */
static void block_signals(sigset_t *before)
{
	static const int faults[] = {SIGBUS, SIGSEGV, SIGILL, SIGFPE};
	sigset_t all;

	sigfillset(&all);
	for (size_t i = 0; i < RTE_DIM(faults); i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_BLOCK, &all, before);
}

static int start_ordinary(struct ordinary_run *ordinary, pthread_t *thread)
{
	const struct sched_param param = {.sched_priority = 0};
	pthread_attr_t attr;
	sigset_t before;
	int rc;

	rc = pthread_attr_init(&attr);
	if (rc != 0)
		return -rc;
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &param);
	block_signals(&before);
	rc = pthread_create(thread, &attr, run_ordinary, ordinary);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -rc;
}

int cpu_run_ordinary(int (*run)(void *arg), void *arg)
{
	struct ordinary_run ordinary = {.run = run, .arg = arg};
	const int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
	pthread_t thread;
	int rc;

	if (policy != SCHED_FIFO && policy != SCHED_RR)
		return run(arg);
	rc = start_ordinary(&ordinary, &thread);
	if (rc != 0)
		return rc;
	pthread_join(thread, NULL);
	return ordinary.rc;
}
