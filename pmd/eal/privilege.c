/* SPDX-License-Identifier: BSD-3-Clause */
/* Capabilities of our threads. */
#include "eal/privilege.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <linux/capability.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/log.h"

#define WORDS _LINUX_CAPABILITY_U32S_3

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

int privilege_create(pthread_t *thread, void *(*run)(void *arg), void *arg, bool opens_files)
{
	struct start start = {.run = run, .arg = arg, .opens_files = opens_files};
	/* A thread that is cancelled in sem_wait would end with the stack that `start` is on. */
	const int cancel_state = cancel_disable();
	int rc;

	sem_init(&start.dropped, 0, 0);
	rc = pthread_create(thread, NULL, start_run, &start);
	while (rc == 0 && sem_wait(&start.dropped) != 0)
		;
	sem_destroy(&start.dropped);
	cancel_restore(cancel_state);
	return -rc;
}
