/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/unix_socket.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/unix_socket.h"
#include "test.h"

#define CLIENTS_MAX 8

static char directory[] = "/tmp/uroce-unix-XXXXXX";
static char path[64];
static struct unix_socket_config config;

static int set_up(TEST_STATE)
{
	strcpy(directory + strlen(directory) - 6, "XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/server", directory);
	config = (struct unix_socket_config){.path = path,
					     .type = SOCK_SEQPACKET,
					     .backlog = 1,
					     .owner = (uid_t)-1,
					     .group = (gid_t)-1,
					     .mode = 0640};
	return 0;
}

static int tear_down(TEST_STATE)
{
	unlink(path);
	return rmdir(directory);
}

TEST_FIXTURE(set_up, tear_down);

static struct sockaddr_un address_of_path(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strcpy(address.sun_path, path);
	return address;
}

static int connect_client(void)
{
	const struct sockaddr_un address = address_of_path();
	const int fd = socket(AF_UNIX, config.type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

static mode_t mode_of_path(void)
{
	struct stat file;

	assert_int_equal(lstat(path, &file), 0);
	assert_true(S_ISSOCK(file.st_mode));
	return file.st_mode & 07777;
}

TEST(unix_socket_listen__has_the_mode_and_takes_clients)
{
	static const int types[] = {SOCK_SEQPACKET, SOCK_STREAM};

	for (size_t i = 0; i < 2; i++) {
		int fd, client, accepted;

		config.type = types[i];
		fd = unix_socket_listen(&config);
		assert_true(fd >= 0);
		assert_int_equal(mode_of_path(), 0640);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		assert_int_equal(accept(fd, NULL, NULL), -1);
		assert_int_equal(errno, EAGAIN);
		client = connect_client();
		assert_true(client >= 0);
		accepted = accept(fd, NULL, NULL);
		assert_true(accepted >= 0);
		close(accepted);
		close(client);
		close(fd);
		unlink(path);
	}
}

/* The umask of the process does not count, and stays. */
TEST(unix_socket_listen__does_not_need_the_umask)
{
	const mode_t before = umask(0);
	int fd;

	config.mode = 0666;
	fd = unix_socket_listen(&config);
	assert_true(fd >= 0);
	assert_int_equal(mode_of_path(), 0666);
	assert_int_equal(umask(before), 0);
	close(fd);
}

TEST(unix_socket_listen__replaces_the_socket_of_a_dead_server)
{
	int fd = unix_socket_listen(&config);

	assert_true(fd >= 0);
	close(fd);
	fd = unix_socket_listen(&config);
	assert_true(fd >= 0);
	close(fd);
}

TEST(unix_socket_listen__leaves_a_live_server_its_place)
{
	const int fd = unix_socket_listen(&config);
	int client;

	assert_int_equal(unix_socket_listen(&config), -EADDRINUSE);
	/* Accept the other server's attempt first: the queue has room for few. */
	close(accept(fd, NULL, NULL));
	client = connect_client();
	assert_true(client >= 0);
	close(client);
	close(fd);
}

/* A server that is stopped accepts nobody, and its queue gets full. connect(2) would wait for it.
 */
TEST(unix_socket_listen__does_not_wait_for_a_full_queue)
{
	const int fd = unix_socket_listen(&config);
	int clients[CLIENTS_MAX], count = 0;

	while (count < CLIENTS_MAX && (clients[count] = connect_client()) >= 0)
		count++;
	assert_in_range(count, 1, CLIENTS_MAX - 1);
	alarm(60);
	assert_int_equal(unix_socket_listen(&config), -EADDRINUSE);
	alarm(0);
	assert_int_equal(access(path, F_OK), 0);
	while (count > 0)
		close(clients[--count]);
	close(fd);
}

TEST(unix_socket_listen__keeps_a_file_that_is_not_a_socket)
{
	fclose(fopen(path, "w"));
	assert_int_equal(unix_socket_listen(&config), -EEXIST);
	assert_int_equal(access(path, F_OK), 0);
}

/* What another user, who has the directory, puts in the place of a socket that was just bound. */
static void (*put_in_place)(void);
static char secret[64];

int __real_bind(int fd, const struct sockaddr *address, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t len);

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t len)
{
	const int rc = __real_bind(fd, address, len);

	if (put_in_place) {
		assert_int_equal(rc, 0);
		assert_int_equal(unlink(path), 0);
		put_in_place();
	}
	return rc;
}

static void put_symbolic_link(void)
{
	assert_int_equal(symlink(secret, path), 0);
}

static void put_hard_link(void)
{
	assert_int_equal(link(secret, path), 0);
}

static void check_secret(mode_t type)
{
	static void (*const links[])(void) = {put_symbolic_link, put_hard_link};
	struct stat before, after;

	assert_int_equal(stat(secret, &before), 0);
	assert_true((before.st_mode & S_IFMT) == type);
	config.mode = 0666;
	config.owner = geteuid() == 0 ? 1 : (uid_t)-1;
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		put_in_place = links[i];
		assert_int_equal(unix_socket_listen(&config), -ESTALE);
		put_in_place = NULL;
		assert_int_equal(unlink(path), 0);
		assert_int_equal(stat(secret, &after), 0);
		assert_int_equal(after.st_mode, before.st_mode);
		assert_int_equal(after.st_uid, before.st_uid);
	}
	assert_int_equal(unlink(secret), 0);
}

TEST(unix_socket_listen__changes_no_other_file)
{
	const struct unix_socket_config other = {.path = secret,
						 .type = SOCK_STREAM,
						 .owner = (uid_t)-1,
						 .group = (gid_t)-1,
						 .mode = 0600};
	int fd;

	snprintf(secret, sizeof(secret), "%s/secret", directory);
	fd = open(secret, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	check_secret(S_IFREG);
	/* the socket of another server */
	fd = unix_socket_listen(&other);
	assert_true(fd >= 0);
	check_secret(S_IFSOCK);
	close(fd);
}

TEST(unix_socket_listen__leaves_nothing_after_an_error)
{
	char too_long[200];

	config.owner = 0;
	config.group = 0;
	if (geteuid() != 0) {
		assert_int_equal(unix_socket_listen(&config), -EPERM);
		assert_int_not_equal(access(path, F_OK), 0);
	}
	snprintf(path, sizeof(path), "%s/missing/server", directory);
	assert_int_equal(unix_socket_listen(&config), -ENOENT);
	memset(too_long, 'x', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	config.path = too_long;
	assert_int_equal(unix_socket_listen(&config), -ENAMETOOLONG);
}
