/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/serve.c: the end of an owner, whose process may go on. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "open_fds.h"
#include "event.h"
#include "owner/arbiter.h"
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
	LIST_INIT(&server->lanes.list);
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
	struct share_message message;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(event_watch(server, pair[0], EVENT_HELLO, 0), 0);
	assert_int_equal(slot_begin(server, pair[0], -1, isolated ? SLOT_ISOLATED : 0, 1), 0);
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
