/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the files that app/uroced/confine.c allows. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine.h"
#include "test.h"

#define VERSION 1 /* LANDLOCK_CREATE_RULESET_VERSION */

/* A folder with uroced's socket, and one of somebody else. */
struct rig {
	char own[32], other[32];
	struct settings settings;
	enum serve_dpdk dpdk;
};

static int setup(void **state)
{
	struct rig *rig = test_calloc(1, sizeof(*rig));

	strcpy(rig->own, "/tmp/uroce-files-XXXXXX");
	strcpy(rig->other, "/tmp/uroce-files-XXXXXX");
	assert_non_null(mkdtemp(rig->own));
	assert_non_null(mkdtemp(rig->other));
	settings_init(&rig->settings);
	snprintf(rig->settings.socket, sizeof(rig->settings.socket), "%s/x.sock", rig->own);
	*state = rig;
	return 0;
}

static void remove_all(const char *folder)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/file", folder);
	unlink(path);
	assert_int_equal(rmdir(folder), 0);
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	remove_all(rig->own);
	remove_all(rig->other);
	test_free(rig);
	return 0;
}

TEST_FIXTURE(setup, teardown);

/* Return 0 if a file can be made in a folder and written to, or an errno. */
static int write_in(const char *folder, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/file", folder);
	fd = open(path, O_WRONLY | flags, 0600);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int remove_in(const char *folder)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/file", folder);
	return unlink(path) == 0 ? 0 : errno;
}

/* Return 0 if a file of the parent process can be opened, or an errno. */
static int open_of_parent(const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", getppid(), name);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static void *judge(void *arg)
{
	const struct rig *rig = arg;

	return write_in(rig->other, 0) == EACCES && open_of_parent("mem") == EACCES ? NULL : arg;
}

enum { DONE, FAILED, OWN, OTHERS, PROCESSES, PROGRAMS, THREADS };

static int confined(struct rig *rig)
{
	static char *const argv[] = {"/bin/true", NULL};
	pthread_t thread;
	void *result;

	if (write_in(rig->other, O_CREAT) != 0 || open_of_parent("mem") != 0 ||
	    open_of_parent("ns/user") != 0 || confine_files(&rig->settings, 1, rig->dpdk) != 0)
		return FAILED;
	if (write_in(rig->own, O_CREAT) != 0 || remove_in(rig->own) != 0)
		return OWN;
	if (write_in(rig->other, 0) != EACCES || remove_in(rig->other) != EACCES)
		return OTHERS;
	if (open_of_parent("mem") != EACCES || open_of_parent("ns/user") != EACCES)
		return PROCESSES;
	if (execv(argv[0], argv) != -1 || errno != EACCES)
		return PROGRAMS;
	if (pthread_create(&thread, NULL, judge, rig) != 0 || pthread_join(thread, &result) != 0 ||
	    result)
		return THREADS;
	return DONE;
}

static int is_free(struct rig *rig)
{
	if (confine_files(&rig->settings, 1, rig->dpdk) != 0)
		return FAILED;
	return write_in(rig->other, O_CREAT) == 0 && open_of_parent("mem") == 0 &&
			       open_of_parent("ns/user") == 0
		       ? DONE
		       : OTHERS;
}

/* Run something in a child, for there is no way back. */
static void run(struct rig *rig, int (*what)(struct rig *))
{
	int status;
	const pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		_exit(what(rig));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, DONE << 8);
}

static void need_landlock(void)
{
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, VERSION) > 0)
		return;
	print_message("this kernel has no Landlock\n");
	skip();
}

TEST(confine_files__keeps_to_its_folders_and_from_processes)
{
	need_landlock();
	run(*state, confined);
}

/* The user of an isolated program is found by its namespaces. */
TEST(confine_files__leaves_who_must_look_at_processes)
{
	struct rig *rig = *state;

	/* Without privilege there is nothing to look at. */
	if (geteuid() != 0)
		skip();
	snprintf(rig->settings.isolated, sizeof(rig->settings.isolated), "%s/y.sock", rig->own);
	run(rig, is_free);
}

TEST(confine_files__leaves_drivers_of_dpdk)
{
	struct rig *rig = *state;

	rig->dpdk = SERVE_DPDK_FIRST;
	run(rig, is_free);
}
