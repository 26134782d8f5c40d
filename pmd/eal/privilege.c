/* SPDX-License-Identifier: BSD-3-Clause */
/* Capabilities of our threads. */
#include "eal/privilege.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <linux/capability.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/log.h"

#define WORDS	       _LINUX_CAPABILITY_U32S_3
#define LIMIT_SIGNAL   SIGRTMAX
#define LIMIT_WAIT_NS  1000000
#define LIMIT_WAITS    2000 /* 2 s, for a thread that gets no CPU */
#define LIMIT_PASSES   16
#define CAPABILITY_END 64

static bool limit_reaches; /* privilege_reach was called */
static uint64_t limit_kept;

void privilege_drop(bool opens_files)
{
	const uint32_t kept = CAP_TO_MASK(CAP_SETUID) | CAP_TO_MASK(CAP_SETGID) |
			      CAP_TO_MASK(CAP_IPC_LOCK) |
			      (opens_files ? CAP_TO_MASK(CAP_DAC_OVERRIDE) : 0);
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[WORDS];

	static_assert(CAP_IPC_LOCK < 32, "the greatest of them is in the first word");
	memset(data, 0, sizeof(data));
	/* The C library has no call for this. setuid(2) changes all threads, this only one. */
	if (syscall(SYS_capget, &header, data) != 0)
		return;
	for (int i = 0; i < WORDS; i++) {
		const uint32_t mask = i == 0 ? kept : 0;

		data[i].effective &= mask;
		data[i].permitted &= mask;
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &header, data) != 0)
		log_info("a thread keeps its capabilities: %s", strerror(errno));
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

bool privilege_has(unsigned int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[WORDS];

	return syscall(SYS_capget, &header, data) == 0 &&
	       (data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
}

struct start {
	void *(*run)(void *arg);
	void *arg;
	bool opens_files;
	sem_t dropped;
};

static void *start_run(void *arg)
{
	struct start *start = arg;
	void *(*const run)(void *) = start->run;
	void *const run_arg = start->arg;

	privilege_drop(start->opens_files);
	/* After this the other thread continues, and `start` is invalid. */
	sem_post(&start->dropped);
	return run(run_arg);
}

int privilege_create_same(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	sigset_t mask, before;
	int rc;

	privilege_fill_mask(&mask);
	pthread_sigmask(SIG_SETMASK, &mask, &before);
	rc = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

int privilege_create(pthread_t *thread, void *(*run)(void *arg), void *arg, bool opens_files)
{
	struct start start = {.run = run, .arg = arg, .opens_files = opens_files};
	/* A thread that is cancelled in sem_wait would end with the stack that `start` is on. */
	const int cancel_state = cancel_disable();
	int rc;

	sem_init(&start.dropped, 0, 0);
	rc = privilege_create_same(thread, start_run, &start);
	while (rc == 0 && sem_wait(&start.dropped) != 0)
		;
	sem_destroy(&start.dropped);
	cancel_restore(cancel_state);
	return rc;
}

/* Limit the calling thread. Only system calls: it runs in a signal handler. The bounding set comes
 * first, because changing it needs a capability. */
static void limit_thread(uint64_t kept)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[WORDS];

	for (unsigned long i = 0; i < CAPABILITY_END; i++) {
		if ((kept >> i & 1) == 0)
			prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	}
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	memset(data, 0, sizeof(data));
	if (syscall(SYS_capget, &header, data) != 0)
		return;
	for (int i = 0; i < WORDS; i++) {
		const uint32_t mask = (uint32_t)(kept >> 32 * i);

		data[i].effective &= mask;
		data[i].permitted &= mask;
		data[i].inheritable = 0;
	}
	syscall(SYS_capset, &header, data);
}

static void on_limit(int number)
{
	const uint64_t kept = __atomic_load_n(&limit_kept, __ATOMIC_RELAXED);
	const int error = errno;

	(void)number;
	/* Before privilege_limit the signal is from another process, and has no effect. */
	if (kept != UINT64_MAX)
		limit_thread(kept);
	errno = error;
}

void privilege_reach(void)
{
	const struct sigaction action = {.sa_handler = on_limit, .sa_flags = SA_RESTART};

	__atomic_store_n(&limit_kept, UINT64_MAX, __ATOMIC_RELAXED);
	limit_reaches = sigaction(LIMIT_SIGNAL, &action, NULL) == 0;
}

void privilege_fill_mask(sigset_t *mask)
{
	sigfillset(mask);
	if (limit_reaches)
		sigdelset(mask, LIMIT_SIGNAL);
}

/* Return true if a thread has no other capabilities than these, or has ended. */
static bool is_limited(const char *thread, uint64_t kept)
{
	char path[64], line[128];
	uint64_t permitted = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/status", thread);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT || errno == ESRCH;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "CapPrm: %" SCNx64, &permitted) == 1)
			break;
	}
	fclose(file);
	return (permitted & ~kept) == 0;
}

/* Return false if the thread does not get the signal. */
static bool limit_other(const char *thread, uint64_t kept)
{
	const struct timespec pause = {.tv_nsec = LIMIT_WAIT_NS};

	if (!limit_reaches)
		return false;
	syscall(SYS_tgkill, getpid(), atoi(thread), LIMIT_SIGNAL);
	for (int i = 0; i < LIMIT_WAITS; i++) {
		if (is_limited(thread, kept))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* Limit the threads that have more than `kept`. Returns how many there were, -ETIMEDOUT if one
 * still has more, or another -errno. */
static int limit_pass(uint64_t kept)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	int found = 0, rc = 0;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.' || is_limited(entry->d_name, kept))
			continue;
		found++;
		if (!limit_other(entry->d_name, kept))
			rc = -ETIMEDOUT;
	}
	closedir(dir);
	return rc != 0 ? rc : found;
}

int privilege_limit(uint64_t kept)
{
	int rc;

	__atomic_store_n(&limit_kept, kept, __ATOMIC_RELAXED);
	limit_thread(kept);
	/* A thread that had more may have started another one before it was limited. Then the next
	 * pass finds that one. */
	for (int i = 0; i < LIMIT_PASSES; i++) {
		rc = limit_pass(kept);
		if (rc <= 0)
			return rc;
	}
	return -ETIMEDOUT;
}
