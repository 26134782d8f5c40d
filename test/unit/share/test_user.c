/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/share/user.c: processes with less than all capabilities, in containers and user
 * namespaces, and such as have ended. */
#include <errno.h>
#include <linux/capability.h>
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

/* Give up all capabilities but one. */
static void keep_one_capability(int kept)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	if (kept >= 0) {
		data[kept / 32].effective = 1u << kept % 32;
		data[kept / 32].permitted = 1u << kept % 32;
	}
	if (syscall(SYS_capset, &header, data) != 0)
		_exit(1);
}

/* Start a process with a user id and one capability (-1: none). Returns its socket. */
static int start_as(uid_t uid, int capability, pid_t *child)
{
	int pair[2], fd;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	*child = fork();
	if (*child == 0) {
		prctl(PR_SET_KEEPCAPS, 1);
		if (setresuid(uid, uid, uid) != 0)
			_exit(1);
		keep_one_capability(capability);
		pass_a_socket(pair[1], true);
	}
	fd = receive_fd(pair[0]);
	close(pair[0]);
	close(pair[1]);
	assert_true(fd >= 0);
	return fd;
}

static user_t user_started_as(uid_t uid, int capability)
{
	pid_t child;
	const int fd = start_as(uid, capability, &child);
	const user_t user = user_of(fd);

	close(fd);
	end(child);
	return user;
}

static bool may_have_capabilities(void)
{
	if (geteuid() == 0 && prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) == 1)
		return true;
	skipped_for("not root with all capabilities");
	return false;
}

/* A container has user id 0 too, and a few capabilities that concern its own files. */
TEST(user_of__a_capability_makes_the_superuser)
{
	if (!may_have_capabilities())
		skip();
	assert_int_equal(user_started_as(0, CAP_SYS_ADMIN), USER_ROOT);
	assert_int_equal(user_started_as(USER, CAP_SYS_ADMIN), USER_ROOT);
	assert_int_equal(user_started_as(0, CAP_SETUID), user_of_uid(0));
	assert_int_equal(user_started_as(0, -1), user_of_uid(0));
	assert_int_equal(user_started_as(USER, -1), user_of_uid(USER));
	assert_true(user_is_limited(user_of_uid(0)));
	assert_false(user_is_limited(USER_ROOT));
	assert_int_not_equal(user_of_uid((uid_t)-2), USER_UNKNOWN);
}

/* A user connects, and executes a program that gets the rights of root. Here the process kept them
 * for later. */
TEST(user_of__rights_that_came_after_the_connection_do_not_count)
{
	int pair[2], fd;
	pid_t child;

	if (!may_have_capabilities())
		skip();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		child = fork();
		if (child == 0) {
			int own[2];

			if (setresuid(USER, USER, 0) != 0 ||
			    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, own) != 0 ||
			    setresuid((uid_t)-1, 0, 0) != 0 || (i == 1 && setresuid(0, 0, 0) != 0))
				_exit(1);
			send_fd(pair[1], own[0]);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pause();
		}
		fd = receive_fd(pair[0]);
		assert_true(fd >= 0);
		assert_int_equal(user_of(fd), user_of_uid(USER));
		close(fd);
		end(child);
		close(pair[0]);
		close(pair[1]);
	}
}

/* The first process of a container: it starts one process for each user id, which pass their
 * sockets. */
static void run_container(int to, const uid_t *uids, int count, bool nested)
{
	for (int i = 0; i < count; i++) {
		if (nested && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
			_exit(1);
		if (fork() == 0) {
			if (!nested && setresuid(uids[i], uids[i], uids[i]) != 0)
				_exit(1);
			keep_one_capability(-1);
			pass_a_socket(to, true);
		}
		if (nested)
			break;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pause();
	_exit(0);
}

/* Make a container as engines of the superuser do by default: with a PID namespace, and no user
 * namespace. When its first process, `*init`, ends, so do the others. */
static void start_container(const uid_t *uids, int count, bool nested, int *fds, pid_t *init)
{
	struct clone_args args = {.flags = CLONE_NEWPID, .exit_signal = SIGCHLD};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	*init = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	assert_true(*init >= 0);
	if (*init == 0)
		run_container(pair[1], uids, count, nested);
	for (int i = 0; i < count; i++) {
		fds[i] = receive_fd(pair[0]);
		assert_true(fds[i] >= 0);
	}
	close(pair[0]);
	close(pair[1]);
}

/* Whatever user ids its processes have. */
TEST(user_of__a_container_of_the_superuser_is_one)
{
	const uid_t uids[] = {0, 1, USER};
	int fds[3], other;
	pid_t init, second;

	if (!may_make_namespaces())
		skip();
	start_container(uids, 3, false, fds, &init);
	start_container(uids, 1, false, &other, &second);
	assert_true(user_is_limited(user_of(fds[0])));
	assert_int_not_equal(user_of(fds[0]), user_of_uid(0));
	assert_int_equal(user_of(fds[1]), user_of(fds[0]));
	assert_int_equal(user_of(fds[2]), user_of(fds[0]));
	assert_int_not_equal(user_of(other), user_of(fds[0]));
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	close(other);
	end(init);
	end(second);
}

/* Namespaces that a container makes do not multiply it. */
TEST(user_of__namespaces_inside_a_container_are_the_containers)
{
	const uid_t uids[] = {0};
	pid_t init, second;
	int fds[2];

	if (!may_make_namespaces())
		skip();
	start_container(uids, 1, true, &fds[0], &init);
	assert_true((user_of(fds[0]) & UINT64_C(1) << 63) != 0);
	start_container(uids, 1, true, &fds[1], &second);
	assert_int_not_equal(user_of(fds[0]), user_of(fds[1]));
	close(fds[0]);
	close(fds[1]);
	end(init);
	end(second);
}

/* Outside of such a container, a process with user id 0 and no privilege makes user namespaces, in
 * which it can have no other id. */
TEST(user_of__namespaces_of_id_0_without_privilege_are_one_user)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);
	int pair[2], fd;
	pid_t child;
	user_t user;

	if (!may_make_namespaces())
		skip();
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	child = fork();
	if (child == 0) {
		keep_one_capability(-1);
		if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
			_exit(1);
		if (fork() == 0)
			pass_a_socket(pair[1], true);
		pause();
		_exit(0);
	}
	fd = receive_fd(pair[0]);
	assert_true(fd >= 0);
	user = user_of(fd);
	/* The first process of a PID namespace gets no signal when its parent ends. */
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len), 0);
	kill(peer.pid, SIGKILL);
	end(child);
	assert_int_equal(user, user_of_uid(0));
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

/* Ask as an owner without privilege, which may not look at others' namespaces. */
static user_t ask_without_privilege(int socket)
{
	int results[2];
	user_t user = USER_TRUSTED;
	pid_t child;

	assert_int_equal(pipe(results), 0);
	child = fork();
	if (child == 0) {
		if (setresuid(USER + 1, USER + 1, USER + 1) != 0)
			_exit(1);
		user = user_of(socket);
		_exit(write(results[1], &user, sizeof(user)) != (ssize_t)sizeof(user));
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(read(results[0], &user, sizeof(user)), sizeof(user));
	close(results[0]);
	close(results[1]);
	return user;
}

/* The subordinate user ids of all users are one, because nobody says whose they are. */
TEST(user_of__without_privilege_all_namespaces_are_one_user)
{
	const uid_t uids[] = {1};
	pid_t child, init;
	int fd;

	if (!may_make_namespaces() || !may_have_capabilities())
		skip();
	for (uid_t inner = 0; inner < 2; inner++) {
		fd = start_in_namespace(USER, inner, true, &child);
		assert_true(fd >= 0);
		assert_int_equal(ask_without_privilege(fd), USER_UNKNOWN);
		close(fd);
		end(child);
	}
	start_container(uids, 1, false, &fd, &init);
	assert_int_equal(ask_without_privilege(fd), USER_UNKNOWN);
	close(fd);
	end(init);
	/* Who is in no other namespace is known. */
	fd = start_as(USER, -1, &child);
	assert_int_equal(ask_without_privilege(fd), user_of_uid(USER));
	close(fd);
	end(child);
	fd = start_as(0, CAP_SYS_ADMIN, &child);
	assert_int_equal(ask_without_privilege(fd), USER_ROOT);
	close(fd);
	end(child);
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
