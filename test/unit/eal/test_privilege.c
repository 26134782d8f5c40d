/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/eal/privilege.c. */
#include <dirent.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "eal/privilege.h"
#include "skipped.h"
#include "test.h"

/* A line of the calling thread's status, in hexadecimal; UINT64_MAX where there is none. */
static uint64_t status_of(const char *name)
{
	FILE *file = fopen("/proc/thread-self/status", "re");
	uint64_t value = UINT64_MAX;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, name, strlen(name)) == 0)
			sscanf(line + strlen(name), ": %" SCNx64, &value);
	}
	if (file)
		fclose(file);
	return value;
}

struct found {
	bool opens_files;
	uint64_t effective, permitted, no_new;
};

static void *drop(void *arg)
{
	struct found *found = arg;

	privilege_drop(found->opens_files);
	found->effective = status_of("CapEff");
	found->permitted = status_of("CapPrm");
	found->no_new = status_of("NoNewPrivs");
	return NULL;
}

static struct found drop_in_thread(bool opens_files)
{
	struct found found = {.opens_files = opens_files};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, drop, &found), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return found;
}

TEST(privilege_drop__leaves_the_other_threads)
{
	const uint64_t before = status_of("CapEff"), no_new = status_of("NoNewPrivs");
	const struct found found = drop_in_thread(false), connects = drop_in_thread(true);
	const uint64_t kept = before & (CAP_TO_MASK(CAP_SETUID) | CAP_TO_MASK(CAP_SETGID) |
					CAP_TO_MASK(CAP_IPC_LOCK));

	assert_int_equal(found.effective, kept);
	assert_int_equal(found.permitted, kept);
	assert_int_equal(found.no_new, 1);
	assert_int_equal(connects.effective, kept | (before & CAP_TO_MASK(CAP_DAC_OVERRIDE)));
	assert_int_equal(status_of("CapEff"), before);
	assert_int_equal(status_of("NoNewPrivs"), no_new);
}

static void *drop_and_stay(void *arg)
{
	privilege_drop(false);
	sem_post(arg);
	pause();
	return NULL;
}

/* Expect a child of root to return 0. */
static void expect_of_child(int (*run)(void))
{
	const pid_t child = geteuid() == 0 ? fork() : -1;
	int status;

	if (child < 0) {
		skipped_for("not root, which has capabilities to give up");
		skip();
	}
	if (child == 0)
		_exit(run());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int change_user(void)
{
	pthread_t thread;
	sem_t ready;

	sem_init(&ready, 0, 0);
	if (pthread_create(&thread, NULL, drop_and_stay, &ready) != 0 || sem_wait(&ready) != 0)
		return 1;
	return setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0 ? 0 : 2;
}

/* The C library has each thread change its user, and ends a program in which one cannot. */
TEST(privilege_drop__lets_the_program_change_its_user)
{
	expect_of_child(change_user);
}

/* A thread as DPDK starts them, with the mask of footprint_save. */
static void *wait_with_mask(void *arg)
{
	sigset_t mask;

	privilege_fill_mask(&mask);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	sem_post(arg);
	pause();
	return NULL;
}

static uint64_t any_permitted(void)
{
	uint64_t all = 0;
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL) {
		char path[320], line[256];
		uint64_t permitted;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		file = fopen(path, "re");
		while (file && fgets(line, sizeof(line), file)) {
			if (sscanf(line, "CapPrm: %" SCNx64, &permitted) == 1 ||
			    sscanf(line, "CapBnd: %" SCNx64, &permitted) == 1)
				all |= permitted;
		}
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
	return all;
}

static int limit_with_threads(void)
{
	const uint64_t kept = CAP_TO_MASK(CAP_NET_RAW);
	pthread_t threads[3];
	sem_t ready;

	sem_init(&ready, 0, 0);
	privilege_reach();
	for (int i = 0; i < 3; i++) {
		if (pthread_create(&threads[i], NULL, wait_with_mask, &ready) != 0 ||
		    sem_wait(&ready) != 0)
			return 1;
	}
	/* Another process's signal changes nothing. */
	if (raise(SIGRTMAX) != 0 || (any_permitted() & ~kept) == 0)
		return 2;
	if (privilege_limit(kept) != 0)
		return 3;
	return (any_permitted() & ~kept) == 0 && status_of("NoNewPrivs") == 1 ? 0 : 4;
}

TEST(privilege_limit__reaches_all_threads)
{
	expect_of_child(limit_with_threads);
}
