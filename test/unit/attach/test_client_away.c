/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/attach/client_away.c: an attached process finds the next owner, which the test
 * plays. */
#include "client_away.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "base/own.h"
#include "client.h"
#include "client_rig.h"
#include "port/port.h"
#include "test.h"

#define ASKED_MAX 16

static char dir[] = "/tmp/uroce-away-XXXXXX";
static struct share_client client;
static struct port port;
static int listen_fd, owner_fd;
static pthread_t owner;
static struct share_message asked[ASKED_MAX]; /* by the process, after its hello */
static unsigned int asked_count;
static int refuses = -1; /* index of the request that is refused */

static int setup(TEST_STATE)
{
	char path[64];

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/owner", dir);
	client_rig_make(&client, &port);
	pthread_mutex_init(&client.xrc_lock, NULL);
	STAILQ_INIT(&client.xrc_in);
	STAILQ_INIT(&client.xrc_out);
	assert_int_equal(share_socket_path(path, 0, &client.address), 0);
	client.socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	own_mark(client.socket);
	client.engines = 1;
	client.id_value = 0x4200000;
	client.away.ms = 60000;
	client.away.pid = getpid();
	client.away.owner = geteuid();
	client.away.report_fd = -1;
	memset(client.away.token, 7, sizeof(client.away.token));
	port.own_qpn_first = 0x8000;
	port.own_qpn_count = 64;
	port.mtu_bytes = 1500;
	listen_fd = owner_fd = -1;
	asked_count = 0;
	refuses = -1;
	return 0;
}

static int teardown(TEST_STATE)
{
	client_rig_forget(&client);
	close(client.socket);
	if (listen_fd >= 0)
		close(listen_fd);
	if (owner_fd >= 0)
		close(owner_fd);
	munmap(client.page, client.page_bytes);
	unlink(client.address.sun_path);
	assert_int_equal(rmdir(dir), 0);
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	return 0;
}

TEST_FIXTURE(setup, teardown);

static void owner_listens(void)
{
	listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(
		bind(listen_fd, (struct sockaddr *)&client.address, sizeof(client.address)), 0);
	assert_int_equal(listen(listen_fd, 1), 0);
}

/* Take the process's hello. */
static void owner_hears(void)
{
	struct share_message hello;

	owner_fd = accept(listen_fd, NULL, NULL);
	assert_true(owner_fd >= 0);
	assert_int_equal(message_receive(owner_fd, &hello, NULL), 0);
	assert_int_equal(hello.type, SHARE_HELLO);
	assert_int_equal(hello.engine.count, 1);
	assert_memory_equal(hello.token, client.away.token, SHARE_TOKEN_BYTES);
}

static struct share_message welcome(void)
{
	return (struct share_message){
		.type = SHARE_WELCOME,
		.version = SHARE_VERSION,
		.away_ms = 5000,
		.link_up = true,
		.welcome = {.slot = 3,
			    .generation = 4,
			    .qpn_first = 0x8000,
			    .qpn_count = 64,
			    .id_value = 0x4200000,
			    .mtu_bytes = 1500,
			    .engines = 1},
	};
}

static void owner_answers(const struct share_message *message)
{
	assert_int_equal(message_send(owner_fd, message, NULL, 0), 0);
}

/* Answer each request until the process hangs up. */
static void *run_owner(void *arg)
{
	struct share_message *message;
	struct pollfd fd = {.fd = owner_fd, .events = POLLIN};

	(void)arg;
	while (asked_count < ASKED_MAX) {
		message = &asked[asked_count];
		poll(&fd, 1, -1);
		if (message_receive(owner_fd, message, NULL) != 0)
			return NULL;
		asked_count++;
		if (message->type == SHARE_RETURNED || message->type == SHARE_RELEASE)
			continue;
		struct share_message reply = *message;

		reply.type = SHARE_REPLY;
		reply.result = refuses == (int)asked_count - 1 ? -EADDRINUSE : 0;
		if (message->type == SHARE_CLAIM)
			reply.claim.id = 500 + asked_count;
		if (message_send(owner_fd, &reply, NULL, 0) != 0)
			return NULL;
	}
	return NULL;
}

static void go_away(void)
{
	pthread_mutex_lock(&client.lock);
	assert_true(client_go_away_locked(&client));
	pthread_mutex_unlock(&client.lock);
}

static void seek(void)
{
	pthread_mutex_lock(&client.lock);
	client.away.tried_ns = 0;
	client_seek_locked(&client);
	pthread_mutex_unlock(&client.lock);
}

/* The process is away, and the next owner has answered its hello. */
static void meet_owner(void)
{
	const struct share_message message = welcome();

	go_away();
	owner_listens();
	seek();
	owner_hears();
	owner_answers(&message);
	assert_int_equal(pthread_create(&owner, NULL, run_owner, NULL), 0);
}

static void come_back(void)
{
	meet_owner();
	seek();
}

/* End the owner's thread. */
static void leave(void)
{
	shutdown(client.socket, SHUT_RDWR);
	pthread_join(owner, NULL);
}

static struct share_message claim_of(uint16_t number)
{
	return (struct share_message){.type = SHARE_CLAIM, .claim = {.port = number}};
}

/* The owner has granted a claim. */
static uint32_t promise_claim(uint16_t number, uint32_t owner_id)
{
	struct share_message message = claim_of(number);

	message.claim.id = owner_id;
	return client_promise_claim_locked(&client, &message.claim);
}

TEST(client_go_away__only_if_somebody_comes)
{
	client.away.ms = 0;
	assert_false(client_go_away_locked(&client));
	client.away.ms = 60000;
	client.away.pid = getpid() + 1; /* this is a child of fork(2) */
	assert_false(client_go_away_locked(&client));
	client.away.pid = getpid();
	assert_true(client_go_away_locked(&client));
	assert_true(client_is_away(&client));
}

TEST(client_seek__until_somebody_listens_and_answers)
{
	const int socket = client.socket;
	const struct share_message message = welcome();

	go_away();
	seek();
	assert_int_equal(client.away.presence, CLIENT_AWAY);
	owner_listens();
	seek();
	assert_int_equal(client.away.presence, CLIENT_GREETED);
	seek();
	assert_int_equal(client.away.presence, CLIENT_GREETED);
	owner_hears();
	owner_answers(&message);
	assert_false(client_returned(&client));
	seek();
	assert_true(client_returned(&client));
	assert_int_equal(client.socket, socket);
	assert_int_equal(client.away.ms, 5000);
	assert_int_equal(client.slot, 3);
	assert_int_equal(client.generation, 4);
	assert_true(client.link_up);
	client_settle_locked(&client);
	assert_int_equal(client.away.presence, CLIENT_HERE);
	assert_int_equal(client.away.times, 1);
}

/* Another user has put a socket in the place of the owner's. */
TEST(client_seek__greets_no_other_user)
{
	if (geteuid() != 0)
		skip();
	go_away();
	client.away.owner = 1;
	assert_int_equal(chmod(dir, 0777), 0);
	assert_int_equal(seteuid(65534), 0);
	owner_listens();
	assert_int_equal(seteuid(0), 0);
	seek();
	assert_int_equal(client.away.presence, CLIENT_AWAY);
	client.away.owner = 65534;
	client.away.tried_ns = 0;
	seek();
	assert_int_equal(client.away.presence, CLIENT_GREETED);
}

/* The owner that had the socket, and not answered, has ended too. */
TEST(client_seek__again_if_the_next_owner_ends)
{
	go_away();
	owner_listens();
	seek();
	owner_hears();
	close(owner_fd);
	seek();
	assert_int_equal(client.away.presence, CLIENT_AWAY);
	seek();
	assert_int_equal(client.away.presence, CLIENT_GREETED);
	owner_hears();
	assert_false(client.lost);
}

TEST(client_seek__not_for_ever)
{
	go_away();
	client.away.end_ns = 1;
	assert_true(client_away_ms(&client) > 0);
	seek();
	assert_true(client.lost);
	assert_int_equal(client_away_ms(&client), -1);
}

/* An owner that is away for long must not cost its programs much time. */
TEST(client_away_ms__looks_again_soon_but_not_for_ever)
{
	go_away();
	assert_true(client_away_ms(&client) <= 5);
	client.away.since_ns = monotonic_ns() - 160000000;
	assert_in_range(client_away_ms(&client), 10, 20);
	/* The next owner is there. */
	client.away.presence = CLIENT_BACK;
	assert_in_range(client_away_ms(&client), 2, 9);
	client.away.since_ns -= 2000000000;
	assert_in_range(client_away_ms(&client), 20, 20);
}

TEST(client_seek__refuses_what_the_engine_cannot_use)
{
	struct share_message wrong[8];
	size_t count = 0;

	for (size_t i = 0; i < 8; i++)
		wrong[i] = welcome();
	wrong[count++].welcome.qpn_first += 64;
	wrong[count++].welcome.qpn_count /= 2;
	wrong[count++].welcome.id_value++;
	wrong[count++].welcome.mac[5]++;
	wrong[count++].welcome.mtu_bytes++;
	wrong[count++].welcome.engines++;
	wrong[count++].result = -ESTALE;
	wrong[count++].version++;
	owner_listens();
	for (size_t i = 0; i < count; i++) {
		client.lost = false;
		client.away.presence = CLIENT_HERE;
		go_away();
		seek();
		owner_hears();
		owner_answers(&wrong[i]);
		seek();
		assert_true(client.lost);
		assert_false(client_returned(&client));
		close(owner_fd);
	}
	owner_fd = -1;
}

TEST(client_seek__tells_the_next_owner_what_it_has)
{
	struct share_message join = {.type = SHARE_JOIN, .gid = {0xff, 1}}, leaves = join,
			     open = {.type = SHARE_XRC,
				     .xrc = {.type = XRC_OPEN,
					     .ino = 5,
					     .flags = XRC_FLAG_EXCLUSIVE}},
			     listens = {.type = SHARE_LISTEN}, release = {.type = SHARE_RELEASE};
	const struct share_message granted = {.result = 0}, refused = {.result = -EINVAL};
	uint32_t first, second, third;

	first = promise_claim(1000, 11);
	second = promise_claim(2000, 12);
	third = promise_claim(3000, 13);
	listens.claim.id = second;
	client_promise_locked(&client, &listens, &granted);
	listens.claim.id = first;
	client_promise_locked(&client, &listens, &refused);
	client_promise_locked(&client, &join, &granted);
	client_promise_locked(&client, &join, &granted);
	client_promise_locked(&client, &open, &granted);
	join.gid[1] = 2;
	client_promise_locked(&client, &join, &granted);
	leaves.type = SHARE_LEAVE;
	leaves.gid[1] = 2;
	client_promise_locked(&client, &leaves, &granted);
	release.claim.id = third;
	client_forget_locked(&client, &release);
	come_back();
	assert_true(client_returned(&client));
	client_settle_locked(&client);
	leave();
	assert_int_equal(asked_count, 6);
	assert_int_equal(asked[0].type, SHARE_CLAIM);
	assert_int_equal(asked[0].claim.port, 1000);
	assert_int_equal(asked[1].claim.port, 2000);
	assert_int_equal(asked[2].type, SHARE_LISTEN);
	assert_int_equal(asked[2].claim.id, 502); /* as the next owner knows it */
	assert_int_equal(asked[3].type, SHARE_JOIN);
	assert_int_equal(asked[3].gid[1], 1);
	assert_int_equal(asked[4].type, SHARE_XRC);
	assert_int_equal(asked[4].xrc.ino, 5);
	assert_int_equal(asked[4].xrc.flags, XRC_FLAG_CREATE);
	assert_int_equal(asked[5].type, SHARE_RETURNED);
	/* The process goes on with the ids that it knows. */
	listens.claim.id = second;
	client_translate_locked(&client, &listens);
	assert_int_equal(listens.claim.id, 502);
}

/* A claim that another program has taken meanwhile is no reason to lose the rest. */
TEST(client_seek__goes_on_without_a_port_that_is_taken)
{
	promise_claim(1000, 11);
	promise_claim(2000, 12);
	refuses = 0;
	come_back();
	assert_true(client_returned(&client));
	assert_false(client.lost);
	leave();
	assert_int_equal(asked_count, 2);
}

/* The next owner may give an id that the process knows for another claim. */
TEST(client_promise__gives_each_claim_an_id_of_its_own)
{
	const uint32_t first = promise_claim(1000, 11), second = promise_claim(2000, 11);
	struct share_message change = {.type = SHARE_CHANGE};

	assert_int_equal(first, 11);
	assert_int_not_equal(second, 11);
	change.claim.id = second;
	client_translate_locked(&client, &change);
	assert_int_equal(change.claim.id, 11);
}

/* Between two owners a request waits, and nothing counts as lost. */
TEST(client_ask__waits_for_the_next_owner)
{
	struct share_message claim = claim_of(4000);

	meet_owner();
	assert_int_equal(client_ask(&client, &claim), 0);
	assert_int_equal(claim.result, 0);
	assert_int_equal(claim.claim.id, 501);
	leave();
}
