/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/link/memif.c: arguments, and what lies where the socket shall be. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "memif.h"
#include "test.h"

static char dir[] = "/tmp/uroce-memif-XXXXXX";
static char path[64];
static struct devargs d;

static int group_set_up(TEST_STATE)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/wire", dir);
	return 0;
}

static int group_tear_down(TEST_STATE)
{
	return rmdir(dir);
}

TEST_GROUP(group_set_up, group_tear_down);

static int tear_down(TEST_STATE)
{
	unlink(path);
	return 0;
}

TEST_FIXTURE(NULL, tear_down);

static int prepare(const char *role, const char *more)
{
	char text[256];

	snprintf(text, sizeof(text), "net_memif0,role=%s,socket=%s%s", role, path, more);
	assert_int_equal(devargs_parse(text, &d), 0);
	return memif_prepare(&d);
}

/* A socket like the driver's; greets who comes, if it shall. */
static int listen_as(const char *name, int type)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, name);
	assert_int_equal(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	if (type != SOCK_DGRAM)
		assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static int listen_at(const char *name)
{
	return listen_as(name, SOCK_SEQPACKET);
}

TEST(memif_prepare__fills_in_what_the_user_left_out)
{
	unsigned long number = 0;
	char value[32];

	assert_int_equal(prepare("server", ",socket-abstract=no,rsize=11"), 0);
	assert_int_equal(devargs_get_number(&d, "bsize", &number), 0);
	assert_true(number >= 4096 + 128);
	assert_int_equal(devargs_get_number(&d, "rsize", &number), 0);
	assert_int_equal(number, 11);
	assert_true(devargs_get(&d, "mac", value, sizeof(value)));
}

TEST(memif_prepare__a_path_is_a_file_unless_told_otherwise)
{
	char value[8];

	assert_int_equal(prepare("client", ""), 0);
	assert_true(devargs_get(&d, "socket-abstract", value, sizeof(value)));
	assert_string_equal(value, "no");
	assert_int_equal(prepare("client", ",socket-abstract=yes"), 0);
	assert_true(devargs_get(&d, "socket-abstract", value, sizeof(value)));
	assert_string_equal(value, "yes");
	devargs_parse("net_memif0,socket=name", &d);
	assert_int_equal(memif_prepare(&d), 0);
	assert_false(devargs_get(&d, "socket-abstract", value, sizeof(value)));
}

TEST(memif_prepare__both_ends_have_macs_that_stay)
{
	char server[32], client[32], again[32], other[32];
	unsigned int first;

	prepare("server", "");
	devargs_get(&d, "mac", server, sizeof(server));
	prepare("client", "");
	devargs_get(&d, "mac", client, sizeof(client));
	prepare("server", "");
	devargs_get(&d, "mac", again, sizeof(again));
	prepare("server", ",id=1");
	devargs_get(&d, "mac", other, sizeof(other));
	assert_string_equal(server, again);
	assert_string_not_equal(server, client);
	assert_string_not_equal(server, other);
	assert_int_equal(sscanf(server, "%2x:", &first), 1);
	assert_int_equal(first & 3, 2); /* locally administered, no group */
}

TEST(memif_prepare__removes_what_a_killed_server_left)
{
	close(listen_at(path));
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(prepare("client", ",socket-abstract=no"), 0);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(prepare("server", ",socket-abstract=no"), 0);
	assert_int_equal(access(path, F_OK), -1);
}

TEST(memif_prepare__leaves_a_live_server_alone)
{
	const int fd = listen_at(path);

	assert_int_equal(prepare("server", ",socket-abstract=no"), -EADDRINUSE);
	assert_int_equal(access(path, F_OK), 0);
	close(fd);
}

TEST(memif_prepare__leaves_other_programs_sockets_alone)
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM};

	for (int i = 0; i < 2; i++) {
		const int fd = listen_as(path, types[i]);

		assert_int_equal(prepare("server", ""), -EADDRINUSE);
		assert_int_equal(access(path, F_OK), 0);
		close(fd);
		/* Nobody's any more. */
		assert_int_equal(prepare("server", ""), 0);
		unlink(path);
	}
}

TEST(memif_prepare__removes_no_ordinary_file)
{
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(prepare("server", ",socket-abstract=no"), -EEXIST);
	assert_int_equal(access(path, F_OK), 0);
}

TEST(memif_prepare__refuses_paths_that_cannot_work)
{
	char text[256];

	devargs_parse("net_memif0,role=server,socket-abstract=no,socket=relative", &d);
	assert_int_equal(memif_prepare(&d), -EINVAL);
	devargs_parse("net_memif0,role=server,socket-abstract=no,socket=/nosuchdir/x", &d);
	assert_int_equal(memif_prepare(&d), -EACCES);
	snprintf(text, sizeof(text), "net_memif0,socket=/%0120d", 7);
	devargs_parse(text, &d);
	assert_int_equal(memif_prepare(&d), -EINVAL);
}

TEST(memif_find_listener__finds_this_process_own)
{
	int fd;

	assert_int_equal(prepare("server", ",socket-abstract=no"), 0);
	assert_int_equal(memif_find_listener(&d), -1);
	fd = listen_at(path);
	assert_int_equal(memif_find_listener(&d), fd);
	close(fd);
}

TEST(memif_has_connection__sees_one_that_is_not_answered_yet)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const int fd = listen_at(path);
	int client;

	assert_int_equal(prepare("client", ",socket-abstract=no"), 0);
	assert_false(memif_has_connection(&d));
	client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	strcpy(addr.sun_path, path);
	assert_int_equal(connect(client, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_true(memif_has_connection(&d));
	close(client);
	assert_false(memif_has_connection(&d));
	close(fd);
}

TEST(memif_probe__hears_the_greeting)
{
	const int fd = listen_at(path);
	int server, probe;

	assert_int_equal(prepare("client", ",socket-abstract=no"), 0);
	probe = memif_probe(&d);
	assert_true(probe >= 0);
	assert_int_equal(memif_probe_answer(probe), 0);
	server = accept(fd, NULL, NULL);
	assert_int_equal(send(server, "hello", 5, 0), 5);
	assert_int_equal(memif_probe_answer(probe), 1);
	close(server);
	assert_int_equal(memif_probe_answer(probe), -ECONNRESET);
	close(probe);
	close(fd);
	assert_int_equal(memif_probe(&d), -ECONNREFUSED);
}

/* A stopped server's queue is full after a few: the driver would wait there. */
TEST(memif_probe__does_not_wait_for_a_full_server)
{
	const int fd = listen_at(path);
	int probes[8];
	int count = 0;

	assert_int_equal(prepare("client", ",socket-abstract=no"), 0);
	while (count < 8 && (probes[count] = memif_probe(&d)) >= 0)
		count++;
	assert_in_range(count, 1, 7);
	assert_int_equal(probes[count], -EAGAIN);
	while (count > 0)
		close(probes[--count]);
	close(fd);
}

TEST(memif_owns__what_is_of_the_wire_and_nothing_else)
{
	const int listener = listen_at(path);
	const int memory = memfd_create("memif_region_0", MFD_CLOEXEC);
	const int doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	const int others[] = {
		memfd_create("something", MFD_CLOEXEC),
		eventfd(0, EFD_CLOEXEC),
		epoll_create1(EPOLL_CLOEXEC),
		socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0),
		socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
		open("/dev/null", O_RDONLY | O_CLOEXEC),
	};
	int client, server;

	assert_int_equal(prepare("client", ",socket-abstract=no"), 0);
	client = memif_probe(&d);
	server = accept(listener, NULL, NULL);
	assert_true(memif_owns(&d, listener));
	assert_true(memif_owns(&d, client));
	assert_true(memif_owns(&d, server));
	assert_true(memif_owns(&d, memory));
	assert_true(memif_owns(&d, doorbell));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_true(others[i] >= 0);
		assert_false(memif_owns(&d, others[i]));
		close(others[i]);
	}
	close(client);
	close(server);
	close(memory);
	close(doorbell);
	close(listener);
}
