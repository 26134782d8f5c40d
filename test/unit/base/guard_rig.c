/* SPDX-License-Identifier: BSD-3-Clause */
/* Guarded copies, faults, and child processes to make them in. */
#include "guard_rig.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guard.h"
#include "test.h"

uint8_t *memory;
char local[64];

/* A guarded copy may get NULL, which memcpy's declaration forbids. */
__attribute__((no_sanitize("undefined"))) void copy_job_run(void *arg)
{
	const struct copy_job *job = arg;

	memcpy(job->dst, job->src, job->len);
}

int guarded_copy(void *dst, const void *src, size_t len)
{
	struct copy_job job = {.dst = dst, .src = src, .len = len};

	return guard_run(copy_job_run, &job);
}

void expect_copy(void *dst, const void *src, size_t len, int rc)
{
	assert_int_equal(guard_install(), 0);
	assert_int_equal(guarded_copy(dst, src, len), rc);
}

int guard_rig_set_up(TEST_STATE)
{
	const struct rlimit no_core = {0, 0};

	setrlimit(RLIMIT_CORE, &no_core);
	memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return memory == MAP_FAILED ? -1 : 0;
}

int guard_rig_tear_down(TEST_STATE)
{
	return munmap(memory, 2 * PAGE);
}

bool signal_is_blocked(int sig)
{
	sigset_t now;

	sigprocmask(SIG_BLOCK, NULL, &now);
	return sigismember(&now, sig);
}

static volatile char *volatile nowhere = (char *)64;

void fault_at_64(void)
{
	*nowhere = 1;
}

/* Return how the child ended (wait(2)). */
static int run_in_child(void (*function)(void))
{
	const pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		function();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

void expect_exit(void (*function)(void), int code)
{
	const int status = run_in_child(function);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), code);
}

void expect_killed(void (*function)(void), int sig)
{
	const int status = run_in_child(function);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), sig);
}
