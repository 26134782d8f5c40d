/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/attach/client_port.c: attached processes ask an owner, which runs in a thread, for
 * ports. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/attach.h"
#include "attach_rig.h"
#include "base/own.h"
#include "client.h"
#include "client_rig.h"
#include "cm/ports.h"
#include "control.h"
#include "event.h"
#include "memif/socket.h"
#include "owner/arbiter.h"
#include "report/set.h"
#include "pause.h"
#include "server.h"
#include "slot.h"
#include "listen.h"
#include "test.h"
#include "wire/gid.h"

#define CLIENTS 2
#define PORT	7174

static const uint8_t host[GID_LEN] = {[10] = 0xff, 0xff, 10, 9, 0, 1};
static const uint8_t other[GID_LEN] = {[10] = 0xff, 0xff, 10, 9, 0, 2};

static struct server server; /* without a port */
static struct report_set reports;
static pthread_t owner;
static int stop_fd;

static struct {
	struct share_client client;
	struct link link;
	const struct cm_ports_ops *ops;
	void *user;
	uint16_t slot;
} clients[CLIENTS];

/* Hear the processes until the test is over. */
static void *run_owner(void *arg)
{
	struct epoll_event event;

	(void)arg;
	for (;;) {
		if (epoll_wait(server.epoll_fd, &event, 1, -1) != 1)
			continue;
		if (event.data.u64 >> 32 == EVENT_WAKE)
			return NULL;
		control_event(&server, (enum server_event)(event.data.u64 >> 32),
			      (uint32_t)event.data.u64);
		pause_check(&server);
	}
}

/* Attach the n-th process: isolated, since one process has one slot of the others. */
static void attach(int n, uid_t uid)
{
	struct share_client *client = &clients[n].client;
	struct share_facts facts;
	struct share_message message;
	const int end = attach_rig(&server, uid, &message);

	clients[n].slot = message.welcome.slot;
	server.slots.all[clients[n].slot].pid = 1 + n;
	server.gsi.arbiter->slots[clients[n].slot].user = user_of_uid(uid);
	memset(&clients[n].link, 0, sizeof(clients[n].link));
	memset(client, 0, sizeof(*client));
	pthread_mutex_init(&client->lock, NULL);
	TAILQ_INIT(&client->away.promises);
	client->socket = end;
	own_mark(client->socket);
	attach_learn(client, &message, &facts);
	clients[n].link.remote = &client_link_remote;
	clients[n].link.remote_arg = client;
	clients[n].ops = share_ports(&clients[n].link, &clients[n].user);
	assert_non_null(clients[n].ops);
}

static void start_owner(void)
{
	stop_fd = server.wake_fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(event_watch(&server, stop_fd, EVENT_WAKE, 0), 0);
	assert_int_equal(pthread_create(&owner, NULL, run_owner, NULL), 0);
}

static int setup(TEST_STATE)
{
	struct address address = {.vlan = VLAN_NONE, .prefix_len = 24};

	memset(&server, 0, sizeof(server));
	LIST_INIT(&server.groups);
	LIST_INIT(&server.directs.list);
	pending_client_init(&server);
	server.pending_clients.trusted.fd = server.pending_clients.isolated.fd =
		server.pending_clients.spare_fd = -1;
	report_set_init(&reports);
	server.status.reports = &reports;
	server.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	server.arena.fd = server.epoll_fd;
	blocks_init(&server.slots.blocks);
	assert_int_equal(arbiter_create(&server.gsi.arbiter), 0);
	assert_int_equal(ownership_init(&server.arena.ownership, 1, 256, SERVE_SLOTS_MAX, 0), 0);
	server.slots.max = SERVE_SLOTS_MAX;
	memcpy(address.gid, host, GID_LEN);
	assert_int_equal(addresses_add(&server.uplink.link.addresses, &address), 0);
	for (int i = 0; i < CLIENTS; i++)
		attach(i, (uid_t)(1000 + i));
	start_owner();
	return 0;
}

static void stop_owner(void)
{
	const uint64_t one = 1;

	if (stop_fd < 0)
		return;
	assert_int_equal(write(stop_fd, &one, sizeof(one)), sizeof(one));
	pthread_join(owner, NULL);
	close(stop_fd);
	stop_fd = -1;
}

static int teardown(TEST_STATE)
{
	stop_owner();
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++)
		slot_end(&server, i);
	assert_int_equal(server.gsi.arbiter->spaces.count, 0);
	for (int i = 0; i < CLIENTS; i++) {
		client_rig_forget(&clients[i].client);
		close(clients[i].client.socket);
	}
	ownership_fini(&server.arena.ownership);
	arbiter_destroy(server.gsi.arbiter);
	close(server.epoll_fd);
	return 0;
}

TEST_FIXTURE(setup, teardown);

static struct cm_port_claim any(uint16_t port)
{
	return (struct cm_port_claim){
		.space = CM_PS_TCP, .port = port, .any_address = true, .vlan_id = -1};
}

static struct cm_port_claim at(const uint8_t *gid)
{
	struct cm_port_claim claim = any(PORT);

	claim.any_address = false;
	claim.ip_version = 4;
	memcpy(claim.address, gid, GID_LEN);
	return claim;
}

static uint32_t last_id;

static int claim(int n, struct cm_port_claim wanted)
{
	return clients[n].ops->claim(clients[n].user, &wanted, &last_id);
}

static int listen_on(int n, uint32_t id)
{
	return clients[n].ops->listen(clients[n].user, id);
}

TEST(claim__is_one_of_all_processes)
{
	uint32_t id;

	assert_int_equal(claim(0, any(PORT)), 0);
	id = last_id;
	assert_int_equal(claim(1, any(PORT)), -EADDRINUSE);
	assert_int_equal(claim(1, any(PORT + 1)), 0);
	assert_int_equal(listen_on(1, id), -EINVAL);
	assert_int_equal(listen_on(0, id), 0);
	/* A process cannot release the port of another one. */
	clients[1].ops->release(clients[1].user, id);
	assert_int_equal(claim(1, any(PORT)), -EADDRINUSE);
	clients[0].ops->release(clients[0].user, id);
	/* The owner serves both sockets. */
	assert_int_equal(claim(0, any(PORT + 2)), 0);
	assert_int_equal(claim(1, any(PORT)), 0);
}

TEST(change__is_made_by_the_owner)
{
	uint32_t id;

	assert_int_equal(claim(0, any(PORT)), 0);
	id = last_id;
	assert_int_equal(clients[1].ops->change(clients[1].user, id, 6, false), -EINVAL);
	assert_int_equal(clients[0].ops->change(clients[0].user, id, 6, true), 0);
	assert_int_equal(claim(1, at(host)), 0);
	assert_int_equal(clients[0].ops->change(clients[0].user, id, 0, true), -EADDRINUSE);
}

TEST(claim__tells_the_port_that_was_chosen)
{
	struct cm_port_claim wanted = any(0);
	uint32_t id;

	assert_int_equal(clients[0].ops->claim(clients[0].user, &wanted, &id), 0);
	assert_in_range(wanted.port, SPACES_EPHEMERAL, SPACES_EPHEMERAL_END - 1);
	assert_int_equal(claim(1, any(wanted.port)), -EADDRINUSE);
}

TEST(claim__is_of_an_address_of_the_port)
{
	static const uint8_t loopback[GID_LEN] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

	assert_int_equal(claim(0, at(host)), 0);
	assert_int_equal(claim(0, at(other)), -EADDRNOTAVAIL);
	assert_int_equal(claim(0, at(loopback)), 0);
	assert_int_equal(claim(1, at(loopback)), -EADDRINUSE);
}

TEST(claim__fails_without_an_owner)
{
	assert_int_equal(claim(0, any(PORT)), 0);
	stop_owner();
	slot_end(&server, clients[0].slot);
	assert_int_equal(claim(0, any(PORT + 1)), -ENODEV);
	assert_int_equal(listen_on(0, last_id), -ENODEV);
	clients[0].ops->release(clients[0].user, last_id);
}

/* Take no request of the first process, but end when there is one. */
static void *end_at_request(void *arg)
{
	struct pollfd asked = {.fd = server.slots.all[clients[0].slot].socket, .events = POLLIN};

	assert_int_equal(poll(&asked, 1, -1), 1);
	slot_end(&server, clients[0].slot);
	return arg;
}

TEST(claim__fails_if_the_owner_ends_before_it_answers)
{
	pthread_t ends;

	stop_owner();
	assert_int_equal(pthread_create(&ends, NULL, end_at_request, NULL), 0);
	assert_int_equal(claim(0, any(PORT)), -ENODEV);
	pthread_join(ends, NULL);
	assert_true(clients[0].client.lost);
	assert_int_equal(claim(0, any(PORT)), -ENODEV);
}

/* The owner goes on after that, and answers what it was asked. */
TEST(claim__that_was_answered_too_late_keeps_no_port)
{
	stop_owner();
	assert_int_equal(claim(0, any(PORT)), -ENODEV);
	start_owner();
	assert_int_equal(claim(0, any(PORT + 1)), 0);
	assert_int_equal(claim(0, any(PORT)), 0);
	stop_owner();
	assert_int_equal(server.gsi.arbiter->spaces.count, 2);
}

/* The socket does not take all releases at once, and nobody reads it in between. */
TEST(release__waits_for_room)
{
	uint32_t ids[500];

	for (int i = 0; i < 500; i++) {
		assert_int_equal(claim(0, any(0)), 0);
		ids[i] = last_id;
	}
	for (int i = 0; i < 500; i++)
		clients[0].ops->release(clients[0].user, ids[i]);
	assert_int_equal(claim(0, any(0)), 0);
	stop_owner();
	assert_int_equal(server.gsi.arbiter->spaces.count, 1);
}

TEST(ids__are_those_of_the_slot)
{
	for (int i = 0; i < CLIENTS; i++) {
		uint32_t mask, value;

		assert_int_equal(clients[i].ops->ids(clients[i].user, &mask, &value), 0);
		assert_int_equal(mask, IDS_MASK);
		assert_int_equal(ids_find(&server.gsi.arbiter->ids, value), clients[i].slot);
	}
}

TEST(share_ports__of_a_link_of_its_own_are_none)
{
	struct link link;
	void *user;

	memset(&link, 0, sizeof(link));
	assert_null(share_ports(&link, &user));
}

/* The caller has the engine: all other threads wait for it, and a spin of many of them may take the
 * owner's CPU. */
TEST(refresh__does_not_wait_for_the_answer_to_another_thread)
{
	struct share_client *client = &clients[0].client;
	struct link link = {.remote_arg = client};

	client->addresses_changed = true;
	assert_int_equal(pthread_mutex_lock(&client->lock), 0); /* as client_ask does */
	alarm(10);
	assert_false(client_link_remote.refresh(&link));
	alarm(0);
	assert_int_equal(pthread_mutex_unlock(&client->lock), 0);
	assert_true(client_link_remote.refresh(&link));
	assert_false(client_link_remote.refresh(&link));
}
