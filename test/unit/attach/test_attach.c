/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/attach/attach.c: a process attaches to an owner, which the test plays. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/attach.h"
#include "open_fds.h"
#include "net/link.h"
#include "printed.h"
#include "share/layout.h"
#include "share/message.h"
#include "test.h"

#define BUFFERS	     4
#define BUFFER_BYTES 2048
#define SLOT	     9
#define GENERATION   77
#define DEADLINE     10000 /* ms */

static char dir[] = "/tmp/uroce-attach-XXXXXX";
static char path[64];
static int listen_fd, owner_fd; /* owner_fd: the owner's end of the process's socket */
static int welcome_result;
static uint32_t buffers = BUFFERS;
static uint32_t version = SHARE_VERSION; /* of the owner */
static uint32_t granted = 1;		 /* engines that may have slots */
static struct share_message hello;
/* Sent instead of a welcome: the first bytes of a message of another type, and the owner's end. */
static size_t other_bytes;
static bool is_gone;	/* the owner ends before it sends anything */
static bool is_bare;	/* the welcome comes without descriptors */
static bool is_crowded; /* the process has room for one more descriptor when the welcome comes */

static int memory(size_t bytes)
{
	const int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	return fd;
}

/* Let this process have one more descriptor. The limit counts when the welcome is received. */
static void limit_fds(void)
{
	struct rlimit limit;
	const int fd = dup(listen_fd);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = (rlim_t)fd + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Let one process in; NULL where that failed. */
static void *run_owner(void *arg)
{
	struct share_message message;
	int *fds = arg;
	int rc;

	owner_fd = accept(listen_fd, NULL, NULL);
	while (message_receive(owner_fd, &hello, NULL) == -EAGAIN)
		;
	message = (struct share_message){
		.type = SHARE_WELCOME,
		.version = version,
		.result = welcome_result,
		.welcome = {.buffers = buffers,
			    .buffer_bytes = BUFFER_BYTES,
			    .buffer_stride = BUFFER_BYTES,
			    .slot = SLOT,
			    .generation = GENERATION,
			    .engines = granted,
			    .mtu_bytes = 1500,
			    .ports = 1},
	};
	if (is_crowded)
		limit_fds();
	if (is_gone || other_bytes > 0) {
		message.type = SHARE_REPLY;
		rc = is_gone || send(owner_fd, &message, other_bytes, 0) == (ssize_t)other_bytes;
		close(owner_fd);
		owner_fd = -1;
		return rc ? arg : NULL;
	}
	rc = message_send(owner_fd, &message, fds, welcome_result || is_bare ? 0 : SHARE_FD_PSOCK);
	return rc == 0 ? arg : NULL;
}

static int setup(TEST_STATE)
{
	struct sockaddr_un address;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/owner", dir);
	assert_int_equal(share_socket_path(path, 0, &address), 0);
	listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return listen(listen_fd, 1);
}

static int teardown(TEST_STATE)
{
	close(listen_fd);
	unlink(path);
	rmdir(dir);
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	return 0;
}

TEST_FIXTURE(setup, teardown);

/* Attach; or, if `facts` is NULL, open the queue of engine 2 of 3 of a link, as `queue`. */
static int attach_as(struct link *link, struct share_facts *facts, struct port *queue)
{
	int fds[SHARE_FDS] = {
		[SHARE_FD_ARENA] = memory((size_t)BUFFERS * BUFFER_BYTES),
		[SHARE_FD_PAGE] = memory(share_ring_offset(SHARE_RINGS)),
		[SHARE_FD_OWNER] = eventfd(0, EFD_CLOEXEC),
		[SHARE_FD_PROCESS] = epoll_create1(EPOLL_CLOEXEC),
	};
	/* The packet socket is absent (test_client_psock.c). */
	const int count = SHARE_FD_PSOCK;
	const int report_fd = memory(1);
	pthread_t owner;
	void *served;
	int rc;

	if (facts)
		memset(facts, 0, sizeof(*facts));
	assert_int_equal(pthread_create(&owner, NULL, run_owner, fds), 0);
	link->port.engines = facts ? 3 : link->port.engines;
	rc = facts ? share_attach(link, path, 0, report_fd, facts)
		   : link->port.ops->open_queue(link->port.ops_arg, 2, 3, queue);
	pthread_join(owner, &served);
	assert_non_null(served);
	close(report_fd);
	if (owner_fd >= 0)
		close(owner_fd);
	for (int i = 0; i < count; i++)
		close(fds[i]);
	return rc;
}

static int attach(struct link *link, struct share_facts *facts)
{
	return attach_as(link, facts, NULL);
}

/* The owner has waited for the link of its NIC. */
TEST(share_attach__makes_a_port_that_is_no_device)
{
	struct share_facts facts;
	static struct link link; /* it keeps what a process has until its end */

	welcome_result = 0;
	assert_int_equal(attach(&link, &facts), 0);
	assert_int_equal(link.port.devargs.bus, DEVARGS_NONE);
	assert_true(link.port.started);
	assert_int_equal(link.port.mtu_bytes, 1500);
}

TEST(share_attach__opens_a_queue_by_a_slot_of_its_own)
{
	struct share_facts facts;
	static struct link link; /* it keeps what a process has until its end */
	static struct port queue;

	welcome_result = 0;
	granted = 3;
	assert_int_equal(attach(&link, &facts), 0);
	granted = 1;
	assert_int_equal(hello.engine.number, 0);
	assert_int_equal(hello.engine.count, 3);
	assert_int_equal(attach_as(&link, NULL, &queue), 0);
	assert_int_equal(hello.type, SHARE_HELLO);
	assert_int_equal(hello.engine.number, 2);
	assert_int_equal(hello.engine.count, 3);
	assert_int_equal(hello.engine.slot, SLOT);
	assert_int_equal(hello.engine.generation, GENERATION);
	/* The memory of the first slot is still in use. */
	assert_false(hello.holds_nothing);
	assert_ptr_not_equal(queue.ops_arg, link.port.ops_arg);
	assert_ptr_not_equal(queue.pool, link.port.pool);
	assert_non_null(queue.pool);
	assert_true(queue.wake_fd >= 0);
	assert_int_not_equal(queue.wake_fd, link.port.wake_fd);
}

TEST(share_attach__a_refused_queue_leaves_nothing)
{
	struct share_facts facts;
	static struct link link; /* it keeps what a process has until its end */
	static struct port queue;
	unsigned int before;

	welcome_result = 0;
	granted = 3;
	assert_int_equal(attach(&link, &facts), 0);
	granted = 1;
	before = fds_count();
	welcome_result = -ENOSPC;
	assert_int_equal(attach_as(&link, NULL, &queue), -ENOSPC);
	assert_null(queue.ops);
	assert_int_equal(fds_count(), before);
}

/* The owner has given the slot, but the process cannot use it. */
TEST(share_attach__an_unused_slot_leaves_nothing)
{
	struct share_facts facts;
	static struct link link; /* it keeps what a process has until its end */
	static struct port queue;
	struct rlimit limit;
	unsigned int before;

	welcome_result = 0;
	granted = 3;
	assert_int_equal(attach(&link, &facts), 0);
	granted = 1;
	before = fds_count();
	/* No memory can be mapped for the mbufs. */
	buffers = 0;
	assert_int_equal(attach_as(&link, NULL, &queue), -ENOMEM);
	buffers = BUFFERS;
	/* There is no room for the welcome's descriptors. */
	is_crowded = true;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(attach_as(&link, NULL, &queue), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	is_crowded = false;
	assert_int_equal(fds_count(), before);
	assert_null(queue.ops);
}

/* The owner has no slots for further engines, and is not asked. */
TEST(share_attach__opens_no_queue_that_is_not_granted)
{
	struct share_facts facts;
	static struct link link; /* it keeps what a process has until its end */
	static struct port queue;

	welcome_result = 0;
	assert_int_equal(attach(&link, &facts), 0);
	assert_int_equal(link.port.ops->open_queue(link.port.ops_arg, 1, 3, &queue), -EOPNOTSUPP);
	assert_int_equal(port_queues(&link.port), 1);
	assert_null(queue.ops);
}

/* The service manager has made the socket, and started the owner when we connected. */
TEST(share_attach__knows_an_owner_that_did_not_make_the_socket)
{
	struct share_facts facts;
	static struct link link; /* it keeps what a process has until its end */
	const pid_t manager = fork();
	int status;

	if (manager == 0)
		_exit(listen(listen_fd, 1) != 0);
	assert_int_equal(waitpid(manager, &status, 0), manager);
	assert_int_equal(status, 0);
	welcome_result = 0;
	assert_int_equal(attach(&link, &facts), 0);
	assert_int_equal(facts.owner_pid, getpid());
}

TEST(share_attach__tells_why_it_is_refused)
{
	struct share_facts facts;
	static struct link link; /* it keeps what a process has until its end */

	welcome_result = -ENOSPC;
	assert_int_equal(attach(&link, &facts), -ENOSPC);
}

/* An owner of another version has sent its descriptors already. */
TEST(share_attach__of_another_version_keeps_no_descriptor)
{
	const unsigned int before = fds_count();
	struct share_facts facts;
	struct link link;

	welcome_result = 0;
	version = SHARE_VERSION + 1;
	assert_int_equal(attach(&link, &facts), -EPROTO);
	version = SHARE_VERSION;
	assert_int_equal(fds_count(), before);
}

/* Attach, and compare what is logged. */
static void attach_expect(const char *part)
{
	struct share_facts facts;
	struct link link;
	const char *told;
	int rc;

	printed_begin();
	rc = attach(&link, &facts);
	told = printed_take();
	printed_end();
	assert_int_equal(rc, -EPROTO);
	assert_contains(told, part);
}

/* An upgrade leaves programs with the libraries of before, or an uroced of before. The messages may
 * have another length, too. */
TEST(share_attach__tells_what_must_be_started_again)
{
	welcome_result = 0;
	version = SHARE_VERSION + 1;
	attach_expect("start the program again");
	other_bytes = sizeof(struct share_message) - 8;
	attach_expect("start the program again");
	version = SHARE_VERSION - 1;
	attach_expect("restart uroced");
	other_bytes = 0;
	attach_expect("restart uroced");
	version = SHARE_VERSION;
}

/* No memory can be mapped for the mbufs. */
TEST(share_attach__without_memory_keeps_no_descriptor)
{
	const unsigned int before = fds_count();
	struct share_facts facts;
	struct link link;

	welcome_result = 0;
	buffers = 0;
	assert_int_equal(attach(&link, &facts), -ENOMEM);
	buffers = BUFFERS;
	assert_int_equal(fds_count(), before);
}

/* It is killed, or is no uroced at all. */
TEST(share_attach__without_a_welcome_keeps_no_descriptor)
{
	const unsigned int before = fds_count();
	struct share_facts facts;
	struct link link;

	welcome_result = 0;
	is_gone = true;
	assert_int_equal(attach(&link, &facts), -ECONNRESET);
	is_gone = false;
	other_bytes = 1;
	assert_int_equal(attach(&link, &facts), -EPROTO);
	other_bytes = sizeof(struct share_message) - 1;
	assert_int_equal(attach(&link, &facts), -EPROTO);
	other_bytes = sizeof(struct share_message);
	assert_int_equal(attach(&link, &facts), -EPROTO);
	other_bytes = 0;
	is_bare = true;
	assert_int_equal(attach(&link, &facts), -ENOMEM);
	is_bare = false;
	assert_int_equal(fds_count(), before);
}

TEST(share_attach__without_an_owner_keeps_no_descriptor)
{
	const unsigned int before = fds_count();
	struct share_facts facts;
	struct link link;

	memset(&link, 0, sizeof(link));
	assert_int_equal(share_attach(&link, dir, 0, -1, &facts), -ECONNREFUSED);
	assert_int_equal(share_attach(&link, "/nowhere/owner", 0, -1, &facts), -ENOENT);
	assert_int_equal(fds_count(), before);
}
