/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/attach/client_link.c and client_xrc.c: what an attached process asks its owner, and
 * what the owner tells it meanwhile. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/attach.h"
#include "client.h"
#include "client_rig.h"
#include "device/xrc_share.h"
#include "net/link.h"
#include "test.h"

static struct share_client client;
static struct port port;
static struct link our_link;
static const struct xrc_share_ops *xrc;
static int owner; /* the owner's end of the socket */

static int set_up(TEST_STATE)
{
	const struct addresses none = {0};
	int ends[2];
	void *user;

	client_rig_make(&client, &port);
	pthread_mutex_init(&client.xrc_lock, NULL);
	STAILQ_INIT(&client.xrc_in);
	STAILQ_INIT(&client.xrc_out);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	client.socket = ends[0];
	own_mark(client.socket);
	owner = ends[1];
	link_init_remote(&our_link, &client_link_remote, &client, &none);
	xrc = share_xrc_ops(&our_link, &user);
	assert_ptr_equal(user, &client);
	return 0;
}

static int tear_down(TEST_STATE)
{
	client_rig_forget(&client);
	close(client.socket);
	close(owner);
	munmap(client.page, client.page_bytes);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static void owner_sends(struct share_message *message)
{
	message->version = SHARE_VERSION;
	assert_int_equal(message_send(owner, message, NULL, 0), 0);
}

/* The owner's reply to the process's next request comes before the request: nobody waits. */
static void owner_will_reply(struct share_message reply)
{
	reply.type = SHARE_REPLY;
	reply.number = client.requests + 1;
	owner_sends(&reply);
}

static struct share_message owner_got(enum share_message_type type)
{
	struct share_message message;

	assert_int_equal(message_receive(owner, &message, NULL), 0);
	assert_int_equal(message.type, type);
	assert_int_equal(message.version, SHARE_VERSION);
	return message;
}

static void owner_got_nothing(void)
{
	struct share_message message;

	assert_int_equal(message_receive(owner, &message, NULL), -EAGAIN);
}

static const uint8_t gid[GID_LEN] = {0xfd, [15] = 7};

TEST(join__is_answered_by_the_owner)
{
	owner_will_reply((struct share_message){.result = 0});
	assert_int_equal(client_link_remote.join(&our_link, gid), 0);
	assert_memory_equal(owner_got(SHARE_JOIN).gid, gid, GID_LEN);
	owner_will_reply((struct share_message){.result = -ENOSPC});
	assert_int_equal(client_link_remote.join(&our_link, gid), -ENOSPC);
	assert_int_equal(owner_got(SHARE_JOIN).number, client.requests);
}

TEST(leave__does_not_wait_for_an_answer)
{
	client_link_remote.leave(&our_link, gid);
	assert_memory_equal(owner_got(SHARE_LEAVE).gid, gid, GID_LEN);
	client.away.presence = CLIENT_AWAY;
	client_link_remote.leave(&our_link, gid);
	owner_got_nothing();
	client.away.presence = CLIENT_HERE;
}

TEST(route_and_resolve__are_answered_by_the_owner)
{
	const struct address from = {.gid = {[15] = 3}, .vlan = 5};
	const struct link_hop hop = {.gid = {[15] = 9}, .has_stale = true};
	uint8_t mac[6] = {0};
	struct share_message asked;
	struct link_hop got = {0};

	owner_will_reply((struct share_message){.hop = hop});
	assert_int_equal(client_link_remote.route(&our_link, &from, gid, &got), 0);
	assert_memory_equal(got.gid, hop.gid, GID_LEN);
	assert_true(got.has_stale);
	asked = owner_got(SHARE_ROUTE);
	assert_memory_equal(asked.gid, gid, GID_LEN);
	assert_int_equal(asked.from.vlan, 5);
	owner_will_reply((struct share_message){.result = -ENETUNREACH});
	assert_int_equal(client_link_remote.route(&our_link, &from, gid, &got), -ENETUNREACH);
	owner_got(SHARE_ROUTE);

	owner_will_reply((struct share_message){.result = 0, .mac = {2}});
	assert_false(client_link_remote.resolve(&our_link, &from, gid, mac));
	assert_int_equal(mac[0], 0);
	owner_will_reply((struct share_message){.result = 1, .mac = {2, [5] = 8}});
	assert_true(client_link_remote.resolve(&our_link, &from, gid, mac));
	assert_int_equal(mac[0], 2);
	assert_int_equal(mac[5], 8);
}

/* What the owner tells before it answers is not lost, nor taken for the answer. */
TEST(ask__hears_what_comes_before_the_answer)
{
	struct share_message message = {.type = SHARE_ADDRESSES, .link_up = true};
	struct xrc_note note = {.type = XRC_OPEN};

	message.addresses.count = 1;
	message.addresses.list[0].vlan = 5;
	owner_sends(&message);
	message = (struct share_message){.type = SHARE_XRC, .xrc = {.alias = 11}};
	owner_sends(&message);
	message = (struct share_message){.type = SHARE_REPLY, .number = 77};
	owner_sends(&message);
	owner_will_reply((struct share_message){.result = -EAGAIN});
	assert_int_equal(xrc->ask(&client, &note), 0);
	assert_int_equal(note.result, -EAGAIN);
	assert_int_equal(owner_got(SHARE_XRC).xrc.type, XRC_OPEN);
	assert_true(client.link_up);
	assert_true(link_refresh(&our_link));
	assert_int_equal(our_link.addresses.count, 1);
	assert_int_equal(our_link.addresses.list[0].vlan, 5);
	assert_false(link_refresh(&our_link));
	assert_true(xrc->has_next(&client));
	assert_true(xrc->next(&client, &note));
	assert_int_equal(note.alias, 11);
	assert_false(xrc->has_next(&client));
}

TEST(listen__refuses_too_many_addresses)
{
	struct share_message message = {.type = SHARE_ADDRESSES, .link_up = true};

	message.addresses.count = ADDRESSES_MAX + 1;
	owner_sends(&message);
	assert_false(link_refresh(&our_link));
	assert_int_equal(our_link.addresses.count, 0);
	assert_false(client.link_up);
}

TEST(ask__an_owner_that_has_gone)
{
	struct xrc_note note = {.type = XRC_OPEN};
	struct link_hop hop;

	close(owner);
	owner = -1;
	assert_int_not_equal(xrc->ask(&client, &note), 0);
	assert_int_equal(client_link_remote.route(&our_link, &(struct address){0}, gid, &hop),
			 -ENETUNREACH);
	client_listen(&client);
	assert_true(client.lost);
	assert_int_equal(client_link_remote.join(&our_link, gid), -ENETDOWN);
	xrc->tell(&client, &note);
}

/* The program has closed our socket, and got its number for a file of its own. */
TEST(ask__writes_to_no_descriptor_of_the_program)
{
	struct xrc_note note = {.type = XRC_CLOSE};
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(dup2(ends[0], client.socket), client.socket);
	close(ends[0]);
	close(owner);
	owner = ends[1];
	assert_int_equal(client_link_remote.join(&our_link, gid), -ENETDOWN);
	xrc->tell(&client, &note);
	client_tell(&client, &(struct share_message){.type = SHARE_RELEASE});
	client_listen(&client);
	owner_got_nothing();
}

/* The engine tells without waiting: what finds no room is sent later, all of it in order. */
TEST(xrc_tell__more_than_the_socket_has_room_for)
{
	const uint32_t many = 2000;
	struct xrc_note note = {.type = XRC_TARGET_END};
	uint32_t got = 0;

	for (note.target = 0; note.target < many; note.target++)
		xrc->tell(&client, &note);
	assert_false(STAILQ_EMPTY(&client.xrc_out));
	while (got < many) {
		assert_int_equal(owner_got(SHARE_XRC).xrc.target, got++);
		client_listen(&client);
	}
	owner_got_nothing();
	assert_true(STAILQ_EMPTY(&client.xrc_out));
}

/* Another thread waits for an answer. Its next message to the owner takes ours along, before it. */
TEST(xrc_tell__while_another_thread_asks)
{
	struct xrc_note note = {.type = XRC_LOST, .alias = 3}, got;

	pthread_mutex_lock(&client.lock);
	xrc->tell(&client, &note);
	client_xrc_hear_locked(&client, &(struct share_message){.xrc = {.alias = 4}});
	assert_false(xrc->has_next(&client));
	assert_false(xrc->next(&client, &got));
	assert_false(link_refresh(&our_link));
	pthread_mutex_unlock(&client.lock);
	owner_got_nothing();
	owner_will_reply((struct share_message){.result = 0});
	assert_int_equal(client_link_remote.join(&our_link, gid), 0);
	assert_int_equal(owner_got(SHARE_XRC).xrc.alias, 3);
	owner_got(SHARE_JOIN);
	assert_true(xrc->next(&client, &got));
	assert_int_equal(got.alias, 4);
}

TEST(share_xrc_ops__only_of_an_attached_process)
{
	void *user = NULL;

	our_link.remote = NULL;
	assert_null(share_xrc_ops(&our_link, &user));
	assert_null(user);
}
