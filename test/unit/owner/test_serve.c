/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/serve.c: an owner of a port without a network, and the end of an owner, whose
 * process may go on. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "open_fds.h"
#include "config/settings.h"
#include "event.h"
#include "owner/arbiter.h"
#include "owner/serve.h"
#include "port/drivers.h"
#include "report/set.h"
#include "server.h"
#include "share/message.h"
#include "slot.h"
#include "listen.h"
#include "test.h"

static struct report_set reports;

/* An owner without a port, and so without buffers to give. */
static struct server *create(void)
{
	struct server *server = calloc(1, sizeof(*server));

	assert_non_null(server);
	LIST_INIT(&server->groups);
	LIST_INIT(&server->directs.list);
	pending_client_init(server);
	report_set_init(&reports);
	server->status.reports = &reports;
	server->arena.fd = memfd_create("test", MFD_CLOEXEC);
	server->wake_fd = server->pending_clients.spare_fd = server->uplink.port_fd = -1;
	server->gsi.manager_fd = -1;
	server->pending_clients.trusted.fd = server->pending_clients.isolated.fd =
		server->status.report_fd = -1;
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_true(server->epoll_fd >= 0);
	blocks_init(&server->slots.blocks);
	assert_int_equal(arbiter_create(&server->gsi.arbiter), 0);
	assert_int_equal(ownership_init(&server->arena.ownership, 1, 256, SERVE_SLOTS_MAX, 0), 0);
	server->slots.max = SERVE_SLOTS_MAX;
	return server;
}

/* Returns the process's end. */
static int attach(struct server *server, bool isolated)
{
	const struct share_message hello = {.engine.count = 1};
	struct share_message message;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(event_watch(server, pair[0], EVENT_HELLO, 0), 0);
	assert_int_equal(slot_begin(server, pair[0], -1, isolated ? SLOT_ISOLATED : 0, &hello), 0);
	assert_int_equal(message_receive(pair[1], &message, NULL), 0);
	/* With its real pid, this process would be found to have a slot already. */
	server->slots.all[message.welcome.slot].pid = 1;
	return pair[1];
}

TEST(serve_destroy__leaves_nothing_open)
{
	const unsigned int before = fds_count();
	struct server *server = create();
	const int gone = attach(server, false), there = attach(server, false);

	/* The process of the first slot breaks a rule, and goes on running. */
	slot_close(server, 0);
	serve_destroy(server);
	close(gone);
	close(there);
	fds_wait(before);
}

/* An owner of a port without a network, as of `uroced --local`. */
static struct {
	char folder[32];
	char path[64];
	struct settings settings;
	struct serve_tenants tenants;
	struct serve_config config;
} local;

static int set_up_local(TEST_STATE)
{
	snprintf(local.folder, sizeof(local.folder), "/tmp/test-serve-XXXXXX");
	if (!mkdtemp(local.folder))
		return -1;
	snprintf(local.path, sizeof(local.path), "%s/socket", local.folder);
	settings_init(&local.settings);
	snprintf(local.settings.port, sizeof(local.settings.port), "%s", LOCAL_DRIVER);
	report_set_init(&reports);
	memset(&local.tenants, 0, sizeof(local.tenants));
	local.config = (struct serve_config){.settings = &local.settings,
					     .ports = 1,
					     .socket_path = local.path,
					     .socket_mode = 0600,
					     .socket_owner = (uid_t)-1,
					     .socket_group = (gid_t)-1,
					     .tenants = &local.tenants,
					     .reports = &reports};
	return 0;
}

static int tear_down_local(TEST_STATE)
{
	report_set_fini(&reports);
	unlink(local.path);
	return rmdir(local.folder);
}

/* Connect, and say what to the owner. Returns the process's end. */
static int say(const struct share_message *message)
{
	struct sockaddr_un address;
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_int_equal(share_socket_path(local.path, 0, &address), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(message_send(fd, message, NULL, 0), 0);
	return fd;
}

static void run(struct server *server)
{
	for (int i = 0; i < 8; i++) {
		serve_poll(server);
		serve_sleep(server, 0);
	}
}

static struct share_welcome welcome(struct server *server, int *fd)
{
	const struct share_message hello = {
		.type = SHARE_HELLO, .version = SHARE_VERSION, .engine = {.count = 1}};
	struct share_message message;
	int fds[SHARE_FDS];

	*fd = say(&hello);
	run(server);
	assert_int_equal(message_receive(*fd, &message, fds), 0);
	assert_int_equal(message.type, SHARE_WELCOME);
	assert_int_equal(message.result, 0);
	for (int i = 0; i < SHARE_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return message.welcome;
}

TEST(serve_create__of_a_local_port, .setup = set_up_local, .teardown = tear_down_local)
{
	const unsigned int before = fds_count();
	struct share_message message;
	struct server *server, *second;
	struct stat file;
	int fd;

	assert_int_equal(serve_create(&local.config, &server), 0);
	assert_int_equal(stat(local.path, &file), 0);
	assert_int_equal(file.st_mode & 0777, 0600);
	assert_int_equal(serve_create(&local.config, &second), -EADDRINUSE);
	welcome(server, &fd);
	assert_false(serve_is_lost(server));
	serve_destroy(server);
	assert_int_equal(stat(local.path, &file), -1);
	assert_int_equal(message_receive(fd, &message, NULL), -ECONNRESET);
	close(fd);
	fds_wait(before);
}

/* Programs that attach after a change have the new limits. */
TEST(serve_change__holds_from_the_next_program_on, .setup = set_up_local,
     .teardown = tear_down_local)
{
	const struct serve_tenant user = {.user = user_of_uid(getuid()),
					  .limits = {.weight = 7, .max_qp = 5}};
	struct settings changed;
	struct server *server;
	int fds[2];

	local.settings.max_qp = 100;
	assert_int_equal(serve_create(&local.config, &server), 0);
	assert_int_equal(welcome(server, &fds[0]).max_qp, 100);
	server->slots.all[0].pid = 1;
	changed = local.settings;
	changed.max_qp = 50;
	changed.max_memory = 1 << 20;
	local.tenants.users = &user;
	local.tenants.count = 1;
	/* The first one is replaced before the owner has taken it. */
	assert_int_equal(serve_change(server, &local.settings, &local.tenants), 0);
	assert_int_equal(serve_change(server, &changed, &local.tenants), 0);
	run(server);
	assert_int_equal(welcome(server, &fds[1]).max_qp, 50);
	assert_int_equal(server->slots.max_memory, 1 << 20);
	/* One that is never taken. */
	assert_int_equal(serve_change(server, &changed, &local.tenants), 0);
	serve_destroy(server);
	close(fds[0]);
	close(fds[1]);
}

TEST(serve_status__as_text, .setup = set_up_local, .teardown = tear_down_local)
{
	struct server *server;
	char text[SHARE_STATUS_MAX];
	int fd, len;

	assert_int_equal(serve_create(&local.config, &server), 0);
	len = serve_status(server, text, sizeof(text));
	assert_non_null(strstr(text, "\"slots\": []"));
	welcome(server, &fd);
	assert_in_range(serve_status(server, text, sizeof(text)), len + 1, sizeof(text));
	assert_null(strstr(text, "\"slots\": []"));
	assert_int_equal(serve_status(server, text, 100), -ENOSPC);
	serve_destroy(server);
	close(fd);
}

/* What is wrong is told, and nothing stays open. */
TEST(serve_create__where_it_cannot_listen, .setup = set_up_local, .teardown = tear_down_local)
{
	const unsigned int before = fds_count();
	char other[80];
	struct server *server = NULL;
	int fd;

	fd = open(local.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	assert_int_equal(serve_create(&local.config, &server), -EEXIST);
	snprintf(other, sizeof(other), "%s/socket", local.path);
	local.config.socket_path = other;
	assert_int_equal(serve_create(&local.config, &server), -ENOTDIR);
	snprintf(other, sizeof(other), "%s/second", local.folder);
	snprintf(local.settings.isolated, sizeof(local.settings.isolated), "%s", local.path);
	assert_int_equal(serve_create(&local.config, &server), -EEXIST);
	assert_int_equal(access(other, F_OK), -1);
	assert_null(server);
	fds_wait(before);
}

/* The sockets of an uroced that goes on stay, if the one that should replace it cannot have all. */
TEST(serve_prepare__leaves_the_sockets_of_another_owner, .setup = set_up_local,
     .teardown = tear_down_local)
{
	const unsigned int before = fds_count();
	struct serve_passed passed = {.removes = {true}, .count = 1};
	struct server *server, *next = NULL;

	assert_int_equal(serve_create(&local.config, &server), 0);
	passed.fds[0] = dup(server->pending_clients.trusted.fd);
	local.config.passed = &passed;
	snprintf(local.settings.isolated, sizeof(local.settings.isolated), "%s/no/socket",
		 local.path);
	assert_int_equal(serve_prepare(&local.config, &next), -ENOTDIR);
	assert_int_equal(access(local.path, F_OK), 0);
	passed.fds[0] = dup(server->pending_clients.trusted.fd);
	local.settings.isolated[0] = '\0';
	assert_int_equal(serve_prepare(&local.config, &next), 0);
	server->pending_clients.trusted.path[0] = '\0';
	serve_destroy(server);
	assert_int_equal(serve_take_sockets(next), 0);
	assert_int_equal(serve_open(next, &local.config), 0);
	serve_destroy(next);
	assert_int_equal(access(local.path, F_OK), -1);
	fds_wait(before);
}

/* EAL starts before the port opens only if the port needs it: programs would wait meanwhile. */
TEST(serve_dpdk__when_ports_need_it)
{
	static const struct {
		const char *netdev, *port, *eal, *kernel;
		enum settings_capture capture;
		enum serve_dpdk dpdk;
	} ports[] = {
		{"", "local0", "", "", SETTINGS_CAPTURE_NO, SERVE_DPDK_NEVER},
		{"eth1", "", "", "", SETTINGS_CAPTURE_NO, SERVE_DPDK_LATER},
		{"", "net_memif0,role=server", "", "", SETTINGS_CAPTURE_NO, SERVE_DPDK_LATER},
		{"", "0000:01:00.0", "", "", SETTINGS_CAPTURE_NO, SERVE_DPDK_FIRST},
		{"", "net_tap0", "", "", SETTINGS_CAPTURE_NO, SERVE_DPDK_FIRST},
		{"eth1", "", "-m 100", "", SETTINGS_CAPTURE_NO, SERVE_DPDK_FIRST},
		{"eth1", "", "", "", SETTINGS_CAPTURE_ALL, SERVE_DPDK_FIRST},
		{"", "net_memif0", "", "roce0", SETTINGS_CAPTURE_NO, SERVE_DPDK_FIRST},
	};
	struct settings settings[2];

	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		settings_init(&settings[0]);
		settings_init(&settings[1]);
		snprintf(settings[0].netdev, sizeof(settings[0].netdev), "%s", ports[i].netdev);
		snprintf(settings[0].port, sizeof(settings[0].port), "%s", ports[i].port);
		snprintf(settings[0].eal, sizeof(settings[0].eal), "%s", ports[i].eal);
		snprintf(settings[0].kernel, sizeof(settings[0].kernel), "%s", ports[i].kernel);
		settings[0].capture = ports[i].capture;
		assert_int_equal(serve_dpdk(settings, 1), ports[i].dpdk);
		/* One port is enough. */
		snprintf(settings[1].port, sizeof(settings[1].port), "local0");
		assert_int_equal(serve_dpdk(settings, 2), ports[i].dpdk);
	}
}

/* The next owner goes on as soon as the port is its own, not when this process has ended. */
TEST(serve_destroy__lets_the_next_owner_go_on)
{
	struct server *server = create();
	int pair[2];
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	server->resume.fd = -1;
	server->resume.must_leave = true;
	server->resume.next_fd = pair[0];
	serve_destroy(server);
	assert_int_equal(recv(pair[1], &byte, 1, MSG_DONTWAIT), 0);
	close(pair[1]);
}
