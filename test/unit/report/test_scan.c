/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/report/read.c: the reports in /proc. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/read.h"
#include "report/write.h"
#include "skipped.h"
#include "test.h"

static struct report_set set;
static uint32_t left_out; /* of the last look */

/* Return how many of the reports that are found are of a process and its children. */
static int found(pid_t pid)
{
	int count = 0;

	report_set_init(&set);
	assert_int_equal(report_scan(&set), 0);
	for (uint32_t i = 0; i < set.count; i++)
		count += set.sources[i]->pid == pid;
	left_out = set.left_out;
	report_set_fini(&set);
	return count;
}

TEST(report_scan__finds_a_process_once)
{
	struct report *report;
	pid_t child;
	int fd;

	assert_int_equal(found(getpid()), 0);
	assert_int_equal(report_create(&fd, &report), 0);
	assert_int_equal(found(getpid()), 1);
	child = fork();
	if (child == 0) {
		/* The child only has the parent's descriptor, and no report of its own. */
		pause();
		_exit(0);
	}
	assert_int_equal(found(getpid()), 1);
	assert_int_equal(found(child), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(fd);
	assert_int_equal(found(getpid()), 0);
	report_unmap(report);
}

/* A process that opens a leased file usually waits for 45 s. */
TEST(report_scan__does_not_wait_for_a_lease)
{
	struct report *report;
	char path[64];
	int fd, leased;

	assert_int_equal(report_create(&fd, &report), 0);
	/* Nobody else may have the file open, or mapped. */
	report_unmap(report);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	leased = open(path, O_RDWR | O_CLOEXEC);
	assert_true(leased >= 0);
	close(fd);
	signal(SIGIO, SIG_IGN);
	assert_int_equal(fcntl(leased, F_SETLEASE, F_WRLCK), 0);
	alarm(10);
	assert_int_equal(found(getpid()), 0);
	assert_int_equal(left_out, 1);
	alarm(0);
	close(leased);
}

/* A process with many reports does not hide those of others. */
TEST(report_scan__limits_a_process)
{
	const int more = 7;
	struct report *reports[SCAN_PROCESS_MAX + 7];
	int fds[SCAN_PROCESS_MAX + 7];

	for (int i = 0; i < SCAN_PROCESS_MAX + more; i++)
		assert_int_equal(report_create(&fds[i], &reports[i]), 0);
	assert_int_equal(found(getpid()), SCAN_PROCESS_MAX);
	assert_int_equal(left_out, more);
	for (int i = 0; i < SCAN_PROCESS_MAX + more; i++) {
		close(fds[i]);
		report_unmap(reports[i]);
	}
}

/* A process with very many descriptors does not keep the reader for long either. */
TEST(report_scan__looks_at_so_many_descriptors_of_a_process)
{
	const struct rlimit limit = {SCAN_FDS_MAX + 64, SCAN_FDS_MAX + 64};
	struct report *report;
	int fd, status;
	pid_t child;

	child = fork();
	if (child == 0) {
		if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
			_exit(2);
		while (dup(0) >= 0 && (fd = dup(0)) >= 0 && fd < SCAN_FDS_MAX)
			;
		if (report_create(&fd, &report) != 0 || fd < SCAN_FDS_MAX)
			_exit(3);
		_exit(found(getpid()) == 0 && left_out == 1 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (status == 2 << 8)
		skip();
	assert_int_equal(status, 0);
}

/* A process of a user shows as many as a process may, and waits. */
static pid_t start_process(uid_t uid)
{
	struct report *report;
	int fd, pipes[2];
	char ready;
	pid_t child;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (child == 0) {
		if (setresuid(uid, uid, uid) != 0)
			_exit(1);
		for (int i = 0; i < SCAN_PROCESS_MAX; i++) {
			if (report_create(&fd, &report) != 0)
				_exit(1);
		}
		if (write(pipes[1], "r", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(pipes[0], &ready, 1), 1);
	close(pipes[0]);
	close(pipes[1]);
	return child;
}

TEST(report_scan__limits_a_user)
{
	const uid_t uid = 54321;
	const int processes = SCAN_USER_MAX / SCAN_PROCESS_MAX + 2;
	pid_t children[SCAN_USER_MAX / SCAN_PROCESS_MAX + 2];
	int count = 0;

	if (geteuid() != 0) {
		skipped_for("not root, which may look at others' descriptors");
		skip();
	}
	for (int i = 0; i < processes; i++)
		children[i] = start_process(uid);
	report_set_init(&set);
	assert_int_equal(report_scan(&set), 0);
	for (uint32_t i = 0; i < set.count; i++) {
		for (int child = 0; child < processes; child++)
			count += set.sources[i]->pid == children[child];
	}
	assert_int_equal(count, SCAN_USER_MAX);
	assert_true(set.left_out >= 2 * SCAN_PROCESS_MAX);
	report_set_fini(&set);
	for (int i = 0; i < processes; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
}

/* Change the root directory and leave a file there that has a report's name and is none. Return how
 * often a scan opened it; -1: this process may not change the root. */
static int look_beside_another_file(const char *directory)
{
	char room[4096];
	int fd, watch, opened = 0;

	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", directory, "tmpfs", 0, NULL) != 0 || chdir(directory) != 0 ||
	    mkdir("proc", 0755) != 0 || mount("/proc", "proc", NULL, MS_BIND, NULL) != 0 ||
	    chroot(".") != 0)
		return -1;
	fd = open("/memfd:uroce-report", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (fd < 0 || inotify_add_watch(watch, "/memfd:uroce-report", IN_OPEN) < 0 ||
	    unlink("/memfd:uroce-report") != 0)
		return -1;
	report_set_init(&set);
	if (report_scan(&set) != 0)
		return -1;
	while (read(watch, room, sizeof(room)) > 0)
		opened++;
	return opened;
}

/* The file could be of a file system that never answers: it is not opened. */
TEST(report_scan__opens_no_other_file)
{
	char directory[] = "/tmp/test-scan-XXXXXX";
	int status;
	pid_t child;

	if (geteuid() != 0) {
		skipped_for("not root, which may change the root directory");
		skip();
	}
	assert_non_null(mkdtemp(directory));
	child = fork();
	if (child == 0)
		_exit(look_beside_another_file(directory) & 0xff);
	assert_int_equal(waitpid(child, &status, 0), child);
	rmdir(directory);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}
