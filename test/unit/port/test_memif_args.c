/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/memif_args.c: arguments, and what lies where the socket shall be. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "memif_port.h"
#include "printed.h"
#include "test.h"

#define WHILE_US 50000 /* another server takes to get from bind() to listen() */

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
	return memif_args_complete(&d);
}

static int make_room(void)
{
	return memif_make_room(path, false);
}

/* A socket like the driver's; says hello to who comes, if it shall. */
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

TEST(memif_args_complete__fills_in_what_the_user_left_out)
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

TEST(memif_args_complete__a_path_is_a_file_unless_told_otherwise)
{
	char value[8];

	assert_int_equal(prepare("client", ""), 0);
	assert_true(devargs_get(&d, "socket-abstract", value, sizeof(value)));
	assert_string_equal(value, "no");
	assert_int_equal(prepare("client", ",socket-abstract=yes"), 0);
	assert_true(devargs_get(&d, "socket-abstract", value, sizeof(value)));
	assert_string_equal(value, "yes");
	devargs_parse("net_memif0,socket=name", &d);
	assert_int_equal(memif_args_complete(&d), 0);
	assert_false(devargs_get(&d, "socket-abstract", value, sizeof(value)));
}

TEST(memif_args_complete__both_ends_have_macs_that_stay)
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

TEST(memif_make_room__removes_what_a_killed_server_left)
{
	close(listen_at(path));
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(make_room(), 0);
	assert_int_equal(access(path, F_OK), -1);
}

/* It may be an owner that another one replaces: that one may prepare its port. */
TEST(memif_make_room__leaves_a_live_server_alone)
{
	const int fd = listen_at(path);

	assert_int_equal(prepare("server", ",socket-abstract=no"), 0);
	assert_int_equal(make_room(), -EADDRINUSE);
	assert_int_equal(access(path, F_OK), 0);
	close(fd);
}

static void *run_prepare(void *result)
{
	*(int *)result = make_room();
	return NULL;
}

/* Another server starts at the same moment; its socket does not listen yet. */
TEST(memif_make_room__waits_for_a_server_that_starts)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const int lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	pthread_t thread;
	int result;

	assert_int_equal(flock(lock, LOCK_EX), 0);
	strcpy(addr.sun_path, path);
	assert_int_equal(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(pthread_create(&thread, NULL, run_prepare, &result), 0);
	usleep(WHILE_US);
	assert_int_equal(listen(fd, 1), 0);
	close(lock);
	pthread_join(thread, NULL);
	assert_int_equal(result, -EADDRINUSE);
	assert_int_equal(access(path, F_OK), 0);
	close(fd);
}

TEST(memif_make_room__leaves_other_programs_sockets_alone)
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM};

	for (int i = 0; i < 2; i++) {
		const int fd = listen_as(path, types[i]);

		assert_int_equal(make_room(), -EADDRINUSE);
		assert_int_equal(access(path, F_OK), 0);
		close(fd);
		/* The socket no longer belongs to anybody. */
		assert_int_equal(make_room(), 0);
		unlink(path);
	}
}

TEST(memif_make_room__removes_no_ordinary_file)
{
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(make_room(), -EEXIST);
	assert_int_equal(access(path, F_OK), 0);
}

TEST(memif_args_complete__refuses_paths_that_cannot_work)
{
	char text[256];

	devargs_parse("net_memif0,role=server,socket-abstract=no,socket=relative", &d);
	assert_int_equal(memif_args_complete(&d), -EINVAL);
	devargs_parse("net_memif0,role=server,socket-abstract=no,socket=/nosuchdir/x", &d);
	assert_int_equal(memif_args_complete(&d), -EACCES);
	snprintf(text, sizeof(text), "net_memif0,socket=/%0120d", 7);
	devargs_parse(text, &d);
	assert_int_equal(memif_args_complete(&d), -EINVAL);
}

/* DPDK's driver has more of them: an argument that is not named is never ignored. */
TEST(memif_args_complete__names_what_it_does_not_have)
{
	static const struct {
		const char *more, *named;
	} cases[] = {
		{",zero-copy=yes", "zero-copy=yes"},
		{",owner-uid=7", "'owner-uid'"},
		{",pkt-buffer=1", "'pkt-buffer'"},
		{",flag", "'flag'"},
		{",ids=1", "'ids'"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *told;
		int rc;

		printed_begin();
		rc = prepare("client", cases[i].more);
		told = printed_take();
		printed_end();
		assert_int_equal(rc, -EINVAL);
		assert_contains(told, cases[i].named);
	}
	assert_int_equal(prepare("client", ",zero-copy=no,secret=x,id=3,bsize=8,rsize=2"), 0);
}
