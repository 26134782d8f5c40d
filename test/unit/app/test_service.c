/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroced/service.c: each in a child, whose descriptors from 3 on are as the service
 * manager passes them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service.h"
#include "test.h"

#define MAX    2
#define TABLES 2

static char directory[] = "/tmp/uroced-passed-XXXXXX";
static int fds[MAX];
static int tables[TABLES] = {-1, -1};
static char error[256];

static int setup(TEST_STATE)
{
	return mkdtemp(directory) ? 0 : -1;
}

static int teardown(TEST_STATE)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", directory);
	strcpy(directory + strlen(directory) - 6, "XXXXXX");
	return system(command);
}

TEST_FIXTURE(setup, teardown);

/* Make a socket of this type the descriptor `fd`. */
static void place_socket(int fd, int type, bool listens)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int made = socket(AF_UNIX, type, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%d", directory, fd);
	unlink(address.sun_path);
	if (bind(made, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    (listens && listen(made, 1) != 0) || (made != fd && dup2(made, fd) != fd))
		abort();
}

/* Set the variables as for the process `pid`. */
static void tell(pid_t pid, const char *count)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	setenv("LISTEN_PID", text, 1);
	setenv("LISTEN_FDS", count, 1);
}

/* Run a function in a child, and return its exit status. */
static int in_child(int (*function)(void))
{
	int status;
	const pid_t child = fork();

	if (child == 0) {
		close_range(3, ~0U, 0);
		_exit(function());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int take_two(void)
{
	char path[128], expected[64];

	place_socket(3, SOCK_SEQPACKET, true);
	place_socket(4, SOCK_SEQPACKET, true);
	tell(getpid(), "2");
	if (service_take(fds, MAX, tables, TABLES, error, sizeof(error)) != 2 || fds[0] != 3 ||
	    fds[1] != 4)
		return 1;
	snprintf(expected, sizeof(expected), "%s/4", directory);
	service_path(fds[1], path, sizeof(path));
	if (strcmp(path, expected) != 0)
		return 2;
	if (fcntl(3, F_GETFD) != FD_CLOEXEC || fcntl(4, F_GETFD) != FD_CLOEXEC)
		return 3;
	/* The sockets cannot be taken a second time. */
	return service_take(fds, MAX, tables, TABLES, error, sizeof(error));
}

TEST(passed_take__takes_the_sockets_once)
{
	assert_int_equal(in_child(take_two), 0);
}

static int take_anothers(void)
{
	place_socket(3, SOCK_SEQPACKET, true);
	tell(getppid(), "1");
	return service_take(fds, MAX, tables, TABLES, error, sizeof(error)) != 0 ||
	       fcntl(3, F_GETFD) != 0;
}

static int take_tables(void)
{
	place_socket(3, SOCK_SEQPACKET, true);
	for (int fd = 4; fd < 8; fd++)
		if (dup2(1, fd) != fd)
			abort();
	tell(getpid(), "5");
	setenv("LISTEN_FDNAMES",
	       "uroced.socket:uroce-resume-1:uroce-resume-2:uroce-resume-1:uroce-resume-x", 1);
	/* The last one is no table, and thus a socket. */
	if (service_take(fds, MAX, tables, TABLES, error, sizeof(error)) != -ENOTSOCK)
		return 1;
	if (tables[0] != -1 || tables[1] != 4)
		return 2;
	return fcntl(5, F_GETFD) >= 0 || fcntl(6, F_GETFD) >= 0 || getenv("LISTEN_FDNAMES") ? 3 : 0;
}

/* Two sockets of 32, and all that can be kept for sixteen ports. */
static int take_the_most(void)
{
	char names[4096] = "uroced.socket:uroced.socket";
	const int end = 3 + 32 + 16 * 3;

	place_socket(3, SOCK_SEQPACKET, true);
	place_socket(4, SOCK_SEQPACKET, true);
	for (int fd = 5; fd < end; fd++) {
		if (dup2(1, fd) != fd)
			abort();
		strcat(names, ":" SERVICE_LATE);
	}
	tell(getpid(), "80");
	setenv("LISTEN_FDNAMES", names, 1);
	return service_take(fds, MAX, tables, TABLES, error, sizeof(error)) == 2 &&
			       fcntl(end - 1, F_GETFD) < 0
		       ? 0
		       : 1;
}

TEST(passed_take__takes_all_that_can_be_kept)
{
	assert_int_equal(in_child(take_the_most), 0);
}

TEST(passed_take__knows_tables_by_their_names)
{
	assert_int_equal(in_child(take_tables), 0);
}

static int take_late(void)
{
	place_socket(3, SOCK_SEQPACKET, true);
	if (dup2(1, 4) != 4)
		abort();
	tell(getpid(), "2");
	setenv("LISTEN_FDNAMES", "uroced.socket:uroce-late", 1);
	if (service_take(fds, MAX, tables, TABLES, error, sizeof(error)) != 1 || fds[0] != 3)
		return 1;
	return fcntl(4, F_GETFD) >= 0 ? 2 : 0;
}

TEST(passed_take__closes_what_the_last_process_left)
{
	assert_int_equal(in_child(take_late), 0);
}

/* Be the service manager. Return its socket. */
static int manage(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int manager = socket(AF_UNIX, SOCK_DGRAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", directory);
	unlink(address.sun_path);
	if (bind(manager, (struct sockaddr *)&address, sizeof(address)) != 0)
		abort();
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	return manager;
}

/* Return true if the service manager gets this message, with a descriptor or without. */
static bool hears(int manager, const char *expected, bool with_fd)
{
	char control[CMSG_SPACE(sizeof(int))], text[128];
	struct iovec iov = {.iov_base = text, .iov_len = sizeof(text) - 1};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	const ssize_t len = recvmsg(manager, &message, MSG_DONTWAIT);

	text[len > 0 ? len : 0] = '\0';
	return strcmp(text, expected) == 0 &&
	       message.msg_controllen == (with_fd ? sizeof(control) : 0);
}

static int keep_table(void)
{
	int manager;

	if (service_keeps())
		return 2;
	manager = manage();
	setenv("FDSTORE", "0", 1);
	if (service_keeps())
		return 3;
	setenv("FDSTORE", "8", 1);
	setenv("UROCED_PARENT", "1", 1);
	if (service_keeps())
		return 7;
	unsetenv("UROCED_PARENT");
	if (!service_keeps() || service_keep_table(1, 7) != 0)
		return 4;
	/* The earlier one goes first. */
	if (!hears(manager, "FDSTOREREMOVE=1\nFDNAME=uroce-resume-7", false))
		return 5;
	return hears(manager, "FDSTORE=1\nFDNAME=uroce-resume-7", true) ? 0 : 6;
}

static int close_two_late(void)
{
	const int manager = manage();

	if (service_close_late((int[]){0, 1}, 2) != 0)
		return 1;
	if (!hears(manager, "FDSTOREREMOVE=1\nFDNAME=uroce-late", false))
		return 2;
	for (int i = 0; i < 2; i++)
		if (!hears(manager, "FDSTORE=1\nFDPOLL=0\nFDNAME=uroce-late", true))
			return 3;
	return 0;
}

TEST(service_close_late__replaces_what_the_last_process_left)
{
	assert_int_equal(in_child(close_two_late), 0);
}

TEST(service_keep_table__sends_the_descriptor)
{
	assert_int_equal(in_child(keep_table), 0);
}

TEST(passed_take__leaves_those_of_another_process)
{
	assert_int_equal(in_child(take_anothers), 0);
}

static int take_stream(void)
{
	place_socket(3, SOCK_STREAM, true);
	tell(getpid(), "1");
	return service_take(fds, MAX, tables, TABLES, error, sizeof(error)) != -ENOTSOCK;
}

static int take_deaf(void)
{
	place_socket(3, SOCK_SEQPACKET, false);
	tell(getpid(), "1");
	return service_take(fds, MAX, tables, TABLES, error, sizeof(error)) != -ENOTSOCK;
}

static int take_file(void)
{
	if (open("/dev/null", O_RDONLY) != 3)
		return 2;
	tell(getpid(), "1");
	return service_take(fds, MAX, tables, TABLES, error, sizeof(error)) != -ENOTSOCK;
}

static int take_closed(void)
{
	tell(getpid(), "1");
	return service_take(fds, MAX, tables, TABLES, error, sizeof(error)) != -ENOTSOCK;
}

TEST(passed_take__refuses_what_is_no_socket_of_ours)
{
	assert_int_equal(in_child(take_stream), 0);
	assert_int_equal(in_child(take_deaf), 0);
	assert_int_equal(in_child(take_file), 0);
	assert_int_equal(in_child(take_closed), 0);
}

static int take_many(void)
{
	tell(getpid(), "3");
	return service_take(fds, MAX, tables, TABLES, error, sizeof(error)) != -E2BIG;
}

static int take_nonsense(void)
{
	tell(getpid(), "-1");
	if (service_take(fds, MAX, tables, TABLES, error, sizeof(error)) != 0)
		return 1;
	tell(getpid(), "1x");
	if (service_take(fds, MAX, tables, TABLES, error, sizeof(error)) != 0)
		return 2;
	tell(getpid(), "");
	return service_take(fds, MAX, tables, TABLES, error, sizeof(error));
}

TEST(passed_take__believes_no_other_number)
{
	assert_int_equal(in_child(take_many), 0);
	assert_int_equal(in_child(take_nonsense), 0);
}
