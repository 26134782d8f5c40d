/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/share/user.c: processes in user namespaces of their own, and such as have ended. */
#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "share/user.h"
#include "skipped.h"
#include "test.h"

#define USER	    54321
#define SUBORDINATE 300000 /* and the next ones are the user's too */

TEST(user_of__a_process_of_ours)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(user_of(pair[0]), user_of_uid(geteuid()));
	close(pair[0]);
	close(pair[1]);
}

static volatile sig_atomic_t alarms;

static void count_alarm(int number)
{
	(void)number;
	alarms = alarms + 1;
}

/* A handler that runs while the process is looked at does not make it look ended. */
TEST(user_has_ended__is_not_taken_in_by_signals)
{
	const struct itimerval often = {.it_interval.tv_usec = 10, .it_value.tv_usec = 10};
	const struct sigaction action = {.sa_handler = count_alarm};
	const int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct sigaction before;

	assert_true(pidfd >= 0);
	assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	while (alarms < 2000)
		assert_false(user_has_ended(pidfd));
	assert_int_equal(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	close(pidfd);
}

static void send_fd(int to, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	char byte = 'x';
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	if (sendmsg(to, &msg, 0) != 1)
		_exit(1);
}

static int receive_fd(int from)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	int fd;

	if (recvmsg(from, &msg, 0) != 1 || msg.msg_controllen == 0)
		return -1;
	memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	return fd;
}

/* Make a socket, whose peer is this process, and pass it; then wait, or end. */
static void pass_a_socket(int to, bool waits)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
		_exit(1);
	send_fd(to, pair[0]);
	/* A test that fails leaves nobody behind. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (waits)
		pause();
	_exit(0);
}

static void write_map(pid_t pid, const char *name, const char *map)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(map, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* A process of a user makes a namespace, and is some other user there. Returns its socket. */
static int start_in_namespace(uid_t maker, uid_t inner, bool waits, pid_t *child)
{
	int pair[2], fd;
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	*child = fork();
	if (*child == 0) {
		if (setresuid(maker, maker, maker) != 0 || unshare(CLONE_NEWUSER) != 0)
			_exit(1);
		/* The maps are written now. */
		if (write(pair[1], "r", 1) != 1 || read(pair[1], &byte, 1) != 1)
			_exit(1);
		if (setresuid(inner, inner, inner) != 0)
			_exit(1);
		pass_a_socket(pair[1], waits);
	}
	if (read(pair[0], &byte, 1) != 1)
		return -1;
	write_map(*child, "uid_map", "0 300000 100\n");
	assert_int_equal(write(pair[0], "g", 1), 1);
	fd = receive_fd(pair[0]);
	close(pair[0]);
	close(pair[1]);
	return fd;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static bool may_make_namespaces(void)
{
	pid_t child;
	int status;

	if (geteuid() != 0) {
		skipped_for("not root, which may give subordinate user ids");
		return false;
	}
	child = fork();
	if (child == 0)
		_exit(setresuid(USER, USER, USER) != 0 || unshare(CLONE_NEWUSER) != 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (status == 0)
		return true;
	skipped_for("users may make no user namespaces here");
	return false;
}

TEST(user_of__subordinate_ids_are_their_users)
{
	if (!may_make_namespaces())
		skip();
	for (uid_t inner = 0; inner < 3; inner++) {
		struct ucred peer;
		socklen_t len = sizeof(peer);
		pid_t child;
		const int fd = start_in_namespace(USER, inner, true, &child);

		assert_true(fd >= 0);
		assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len), 0);
		assert_int_equal(peer.uid, SUBORDINATE + inner);
		assert_int_equal(user_of(fd), user_of_uid(USER));
		close(fd);
		end(child);
	}
}

/* No process is left whose namespace could be read. */
TEST(user_of__processes_that_have_ended_are_one_user)
{
	if (!may_make_namespaces())
		skip();
	for (uid_t inner = 5; inner < 7; inner++) {
		pid_t child;
		const int fd = start_in_namespace(USER, inner, false, &child);

		assert_true(fd >= 0);
		assert_int_equal(waitpid(child, NULL, 0), child);
		assert_int_equal(user_of(fd), USER_UNKNOWN);
		close(fd);
	}
	assert_true(user_is_limited(USER_UNKNOWN));
}

/* Container engines of the superuser make namespaces for others: they are limited too, each as one.
 */
TEST(user_of__a_namespace_of_the_superuser_is_one)
{
	pid_t first, second;
	int fds[2];

	if (!may_make_namespaces())
		skip();
	fds[0] = start_in_namespace(0, 5, true, &first);
	fds[1] = start_in_namespace(0, 5, true, &second);
	assert_true(fds[0] >= 0 && fds[1] >= 0);
	assert_true(user_is_limited(user_of(fds[0])));
	assert_true(user_of(fds[0]) != user_of(fds[1]));
	close(fds[0]);
	close(fds[1]);
	end(first);
	end(second);
}

/* A process with a number of our choice. Returns 0 in it, -1 where that cannot be. */
static pid_t fork_as(pid_t number)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&number, .set_tid_size = 1};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

TEST(user_pidfd__is_of_no_later_process_with_the_number)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct pollfd ended;
	pid_t first, second;
	int pair[2], fd;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	first = fork();
	if (first == 0)
		pass_a_socket(pair[1], false);
	assert_int_equal(waitpid(first, NULL, 0), first);
	fd = receive_fd(pair[0]);
	assert_true(fd >= 0);
	second = fork_as(first);
	if (second == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	if (second < 0) {
		skipped_for("no process can be given a number here");
		skip();
	}
	assert_int_equal(second, first);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len), 0);
	assert_int_equal(peer.pid, second);
	ended.fd = user_pidfd(fd, &peer);
	ended.events = POLLIN;
	/* The caller learns that the process has ended: from the call itself, or by the pidfd. */
	if (ended.fd >= 0) {
		assert_int_equal(poll(&ended, 1, 0), 1);
		close(ended.fd);
	}
	end(second);
	close(fd);
	close(pair[0]);
	close(pair[1]);
}
