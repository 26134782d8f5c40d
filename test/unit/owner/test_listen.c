/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/listen.c: the place of an owner's socket. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "listen.h"
#include "server.h"
#include "test.h"

#define WHILE_US 50000 /* the other server takes to get from bind() to listen() */

static char directory[] = "/tmp/uroce-listen-XXXXXX";
static char path[64];
static struct server server;
static struct listener listener;

static int setup(TEST_STATE)
{
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/owner", directory);
	memset(&server, 0, sizeof(server));
	memset(&listener, 0, sizeof(listener));
	listener.fd = -1;
	server.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return server.epoll_fd < 0;
}

static int teardown(TEST_STATE)
{
	listen_close(&listener);
	close(server.epoll_fd);
	unlink(path);
	rmdir(directory);
	strcpy(directory + strlen(directory) - 6, "XXXXXX");
	return 0;
}

TEST_FIXTURE(setup, teardown);

static int open_listener(void)
{
	const struct listen_config config = {
		.path = path, .mode = 0600, .owner = (uid_t)-1, .group = (gid_t)-1};

	return listen_open(&server, &config, EVENT_LISTEN, &listener);
}

/* A socket at the place that does not listen. */
static int bind_other(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

TEST(listen_open__takes_the_place_of_a_dead_owner)
{
	close(bind_other());
	assert_int_equal(open_listener(), 0);
}

static void *run_open(void *result)
{
	*(int *)result = open_listener();
	return NULL;
}

/* Another owner starts at the same moment, and does not listen yet. */
TEST(listen_open__waits_for_one_that_starts)
{
	const int lock = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pthread_t thread;
	int other, result;

	assert_int_equal(flock(lock, LOCK_EX), 0);
	other = bind_other();
	assert_int_equal(pthread_create(&thread, NULL, run_open, &result), 0);
	usleep(WHILE_US);
	assert_int_equal(listen(other, 1), 0);
	close(lock);
	pthread_join(thread, NULL);
	assert_int_equal(result, -EADDRINUSE);
	assert_int_equal(access(path, F_OK), 0);
	close(other);
}

/* A client cannot delay an owner's start by this. */
TEST(listen_open__does_not_wait_for_long)
{
	const int lock = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(flock(lock, LOCK_EX), 0);
	assert_int_equal(open_listener(), 0);
	close(lock);
}

/* A socket that somebody else has bound at the path, and listens on, as a service manager does. */
static int make_passed(void)
{
	const int fd = bind_other();

	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(chmod(path, 0640), 0);
	return fd;
}

static int connect_to_path(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static int open_passed(struct serve_passed *passed)
{
	const struct listen_config config = {.path = path,
					     .mode = 0600,
					     .owner = (uid_t)-1,
					     .group = (gid_t)-1,
					     .passed = passed};

	return listen_open(&server, &config, EVENT_LISTEN, &listener);
}

TEST(listen_open__uses_the_socket_that_it_is_passed)
{
	struct serve_passed passed = {.fds = {-1, make_passed()}, .count = 2};
	const int fd = passed.fds[1];
	struct stat file;
	int client, accepted;

	assert_int_equal(open_passed(&passed), 0);
	assert_int_equal(listener.fd, fd);
	assert_int_equal(passed.fds[1], -1);
	assert_int_equal(listen_accept(&server, &listener), -EAGAIN);
	client = connect_to_path();
	accepted = listen_accept(&server, &listener);
	assert_true(accepted >= 0);
	close(accepted);
	close(client);
	/* Its file, and the file's mode, belong to who has made it. */
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(file.st_mode & 07777, 0640);
	listen_close(&listener);
	assert_int_equal(access(path, F_OK), 0);
}

TEST(listen_open__leaves_a_passed_socket_of_another_path)
{
	struct serve_passed passed = {.fds = {make_passed()}, .count = 1};
	const int fd = passed.fds[0];
	char other[sizeof(path) + 2];

	snprintf(other, sizeof(other), "%s.1", path);
	assert_int_equal(rename(path, other), 0);
	snprintf(path, sizeof(path), "%s/mine", directory);
	assert_int_equal(open_passed(&passed), 0);
	assert_int_equal(passed.fds[0], fd);
	assert_int_not_equal(listener.fd, fd);
	close(fd);
	unlink(other);
}
