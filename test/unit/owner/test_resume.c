/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/resume.c: an owner without a port ends, and the next one gets its table. */
#include "resume.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/settings.h"
#include "control.h"
#include "event.h"
#include "owner/arbiter.h"
#include "report/set.h"
#include "server.h"
#include "server_poll.h"
#include "share/message.h"
#include "slot.h"
#include "test.h"

static struct server server;
static struct report_set reports;
static struct settings settings;
static int table; /* that somebody keeps */
static int ends[16], end_count;
static uint32_t engines = 1; /* of the programs that ask */

static void begin_owner(bool kept)
{
	struct serve_config config = {
		.settings = &settings, .tables = &table, .tables_are_kept = kept};

	memset(&server, 0, sizeof(server));
	LIST_INIT(&server.groups);
	LIST_INIT(&server.directs.list);
	report_set_init(&reports);
	server.status.reports = &reports;
	server.resume.fd = server.resume.next_fd = -1;
	server.arena.fd = server.wake_fd = server.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_true(server.epoll_fd >= 0);
	blocks_init(&server.slots.blocks);
	assert_int_equal(arbiter_create(&server.gsi.arbiter), 0);
	assert_int_equal(ownership_init(&server.arena.ownership, 1, 256, SERVE_SLOTS_MAX, 0), 0);
	server.slots.max = SERVE_SLOTS_MAX;
	strcpy(server.unique, "eth1");
	resume_open(&server, &config);
	assert_non_null(server.resume.table);
}

/* End the owner as a signal does; somebody keeps the table. */
static void end_owner(void)
{
	table = dup(server.resume.fd);
	(void)resume_hand_over(&server);
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++)
		slot_abandon(&server, i);
	resume_close(&server);
	ownership_fini(&server.arena.ownership);
	arbiter_destroy(server.gsi.arbiter);
	close(server.epoll_fd);
}

static int setup(TEST_STATE)
{
	settings_init(&settings);
	strcpy(settings.netdev, "eth1");
	table = -1;
	end_count = 0;
	begin_owner(true);
	return 0;
}

static int teardown(TEST_STATE)
{
	end_owner();
	close(table);
	while (end_count > 0)
		close(ends[--end_count]);
	return 0;
}

TEST_FIXTURE(setup, teardown);

/* Ask for a slot with a token, or NULL. */
static int ask(bool isolated, const uint8_t *token, struct share_message *welcome)
{
	struct share_message hello = {.engine.count = engines};
	int fds[SHARE_FDS], pair[2], rc;

	if (token)
		memcpy(hello.token, token, sizeof(hello.token));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(event_watch(&server, pair[0], EVENT_HELLO, 0), 0);
	rc = slot_begin(&server, pair[0], -1, isolated ? SLOT_ISOLATED : 0, &hello);
	assert_int_equal(message_receive(pair[1], welcome, fds), 0);
	for (int i = 0; i < SHARE_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	assert_int_equal(welcome->result, rc);
	ends[end_count++] = pair[1];
	if (rc != 0)
		close(pair[0]);
	else /* with its real pid, this process would be found to have a slot already */
		server.slots.all[welcome->welcome.slot].pid = end_count;
	return rc;
}

TEST(resume__a_program_gets_its_numbers_again)
{
	struct share_message before[2], again;

	assert_int_equal(ask(false, NULL, &before[0]), 0);
	assert_int_equal(ask(true, NULL, &before[1]), 0);
	assert_int_equal(before[0].away_ms, RESUME_AWAY_MS);
	assert_memory_not_equal(before[0].token, before[1].token, SHARE_TOKEN_BYTES);
	end_owner();
	begin_owner(true);
	assert_int_equal(table, -1);
	for (int i = 1; i >= 0; i--) {
		assert_true(resume_awaits(&server, before[i].welcome.qpn_first + 5));
		assert_true(server.resume.gathers);
		assert_int_equal(ask(i == 1, before[i].token, &again), 0);
		assert_int_equal(again.welcome.qpn_first, before[i].welcome.qpn_first);
		assert_int_equal(again.welcome.qpn_count, before[i].welcome.qpn_count);
		assert_int_equal(again.welcome.id_value, before[i].welcome.id_value);
		assert_memory_equal(again.token, before[i].token, SHARE_TOKEN_BYTES);
		assert_false(resume_awaits(&server, before[i].welcome.qpn_first + 5));
		resume_note_returned(&server, again.welcome.slot);
	}
	/* The isolated one has no connection for packets yet. */
	assert_true(server.resume.gathers);
	server.resume.begun_ns -= RESUME_GATHER_NS;
	resume_check(&server);
	assert_false(server.resume.gathers);
	assert_int_equal(server.totals.resumed, 1);
	assert_int_equal(server.totals.returned, 2);
}

/* No slot is free, or its welcome cannot be sent: the numbers wait for the next try. */
TEST(resume__a_program_that_fails_may_ask_again)
{
	struct share_message before, again;
	int arena_fd;

	assert_int_equal(ask(false, NULL, &before), 0);
	end_owner();
	begin_owner(true);
	server.slots.max = 0;
	assert_int_equal(ask(false, before.token, &again), -ENOSPC);
	assert_true(resume_awaits(&server, before.welcome.qpn_first));
	server.slots.max = SERVE_SLOTS_MAX;
	arena_fd = server.arena.fd;
	server.arena.fd = -1;
	assert_int_equal(ask(false, before.token, &again), -EBADF);
	assert_true(resume_awaits(&server, before.welcome.qpn_first));
	assert_true(server.resume.gathers);
	server.arena.fd = arena_fd;
	assert_int_equal(ask(false, before.token, &again), 0);
	assert_int_equal(again.welcome.qpn_first, before.welcome.qpn_first);
	assert_int_equal(again.welcome.id_value, before.welcome.id_value);
	assert_memory_equal(again.token, before.token, SHARE_TOKEN_BYTES);
	assert_false(resume_awaits(&server, before.welcome.qpn_first));
}

/* Numbers that are kept go to nobody else. */
TEST(resume__new_programs_get_other_numbers)
{
	struct share_message before, other;

	assert_int_equal(ask(false, NULL, &before), 0);
	end_owner();
	begin_owner(true);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(ask(false, NULL, &other), 0);
		assert_int_not_equal(other.welcome.qpn_first, before.welcome.qpn_first);
		assert_int_not_equal(other.welcome.id_value, before.welcome.id_value);
	}
}

/* Slots and full shares that programs need when they are back go to nobody else, for a while. */
TEST(resume__new_programs_do_not_take_what_is_needed)
{
	struct share_message before[3], again, other;

	assert_int_equal(ask(false, NULL, &before[0]), 0);
	assert_int_equal(ask(false, NULL, &before[1]), 0);
	assert_int_equal(ask(true, NULL, &before[2]), 0);
	end_owner();
	begin_owner(true);
	server.slots.max = 4;
	server.slots.full_shares = SERVER_FULL_SHARES - 2;
	assert_int_equal(ask(false, NULL, &other), 0);
	assert_false(server.slots.all[other.welcome.slot].has_full_share);
	assert_int_equal(ask(false, NULL, &again), -ENOSPC);
	assert_int_equal(ask(false, before[0].token, &again), 0);
	assert_true(server.slots.all[again.welcome.slot].has_full_share);
	assert_int_equal(ask(false, NULL, &again), -ENOSPC);
	server.resume.begun_ns -= RESUME_AWAY_MS * UINT64_C(1000000);
	resume_check(&server);
	assert_true(server.slots.all[other.welcome.slot].has_full_share);
	assert_int_equal(ask(false, NULL, &again), 0);
	assert_int_equal(ask(false, NULL, &again), 0);
	assert_int_equal(ask(false, NULL, &again), -ENOSPC);
}

/* Nor do the further engines of new programs. */
TEST(resume__engines_of_new_programs_do_not_take_what_is_needed)
{
	struct share_message before[6], other;

	for (int i = 0; i < 6; i++)
		assert_int_equal(ask(false, NULL, &before[i]), 0);
	end_owner();
	begin_owner(true);
	server.slots.max = 8;
	engines = 3;
	assert_int_equal(ask(false, NULL, &other), 0);
	engines = 1;
	assert_int_equal(other.welcome.engines, 1);
	for (int i = 0; i < 6; i++)
		assert_int_equal(ask(false, before[i].token, &other), 0);
}

/* What nobody needs any more is given at once, not when the time of the others is over. */
TEST(resume__full_shares_do_not_stay_unused)
{
	struct share_message before[2], other;

	assert_int_equal(ask(false, NULL, &before[0]), 0);
	assert_int_equal(ask(false, NULL, &before[1]), 0);
	end_owner();
	begin_owner(true);
	server.slots.full_shares = SERVER_FULL_SHARES - 2;
	assert_int_equal(ask(false, NULL, &other), 0);
	assert_false(server.slots.all[other.welcome.slot].has_full_share);
	assert_int_equal(ask(false, before[0].token, &before[0]), 0);
	/* Another program ends, while one share is reserved. */
	server.slots.full_shares--;
	assert_int_equal(ask(false, before[1].token, &before[1]), 0);
	assert_true(server.slots.all[before[1].welcome.slot].has_full_share);
	assert_true(server.slots.all[other.welcome.slot].has_full_share);
}

/* Nor do untrusted ones. */
TEST(resume__new_isolated_programs_do_not_take_what_is_needed)
{
	struct share_message before, again;
	unsigned int taken = 0;
	int rc;

	assert_int_equal(ask(true, NULL, &before), 0);
	end_owner();
	begin_owner(true);
	server.slots.max = 4;
	while ((rc = ask(true, NULL, &again)) == 0)
		taken++;
	assert_int_equal(rc, -ENOSPC);
	/* Half of the slots may be isolated, and of one ordinary user a quarter. */
	assert_int_equal(taken, geteuid() == 0 ? 1 : 0);
	assert_int_equal(ask(true, before.token, &again), 0);
}

TEST(resume__a_token_is_good_once_and_for_its_kind)
{
	struct share_message before, again;
	uint8_t token[SHARE_TOKEN_BYTES];

	assert_int_equal(ask(false, NULL, &before), 0);
	memcpy(token, before.token, sizeof(token));
	/* The owner is there: it waits for nobody. */
	assert_int_equal(ask(false, token, &again), -ESTALE);
	end_owner();
	begin_owner(true);
	assert_int_equal(ask(true, token, &again), -ESTALE);
	token[SHARE_TOKEN_BYTES - 1] ^= 1;
	assert_int_equal(ask(false, token, &again), -ESTALE);
	token[SHARE_TOKEN_BYTES - 1] ^= 1;
	assert_int_equal(ask(false, token, &again), 0);
	assert_int_equal(ask(false, token, &again), -ESTALE);
}

/* A program that does not come delays the others for a while, and is then forgotten. */
TEST(resume__who_does_not_come_is_given_up)
{
	struct share_message before[2], again;

	assert_int_equal(ask(false, NULL, &before[0]), 0);
	assert_int_equal(ask(false, NULL, &before[1]), 0);
	end_owner();
	begin_owner(true);
	assert_int_equal(ask(false, before[0].token, &again), 0);
	resume_note_returned(&server, again.welcome.slot);
	server.resume.begun_ns = event_now_ns();
	resume_check(&server);
	assert_true(server.resume.gathers);
	server.resume.begun_ns -= RESUME_GATHER_NS;
	resume_check(&server);
	assert_false(server.resume.gathers);
	assert_int_equal(server.resume.awaited_count, 1);
	server.resume.begun_ns -= RESUME_AWAY_MS * UINT64_C(1000000);
	resume_check(&server);
	assert_int_equal(server.resume.awaited_count, 0);
	assert_int_equal(ask(false, before[1].token, &again), -ESTALE);
	/* The next owner does not wait for it either. */
	end_owner();
	begin_owner(true);
	assert_int_equal(server.resume.count, 1);
}

/* While the owner gathers, a second end loses nobody. */
TEST(resume__survives_a_second_end)
{
	struct share_message before[2], again;

	assert_int_equal(ask(false, NULL, &before[0]), 0);
	assert_int_equal(ask(false, NULL, &before[1]), 0);
	end_owner();
	begin_owner(true);
	assert_int_equal(ask(false, before[0].token, &again), 0);
	end_owner();
	begin_owner(true);
	assert_int_equal(server.totals.resumed, 2);
	assert_int_equal(ask(false, before[0].token, &again), 0);
	assert_int_equal(ask(false, before[1].token, &again), 0);
}

TEST(resume__a_program_that_has_ended_is_not_kept)
{
	struct share_message before;

	assert_int_equal(ask(false, NULL, &before), 0);
	slot_end(&server, before.welcome.slot);
	end_owner();
	begin_owner(true);
	assert_int_equal(server.resume.count, 0);
	assert_false(server.resume.gathers);
}

TEST(resume__a_wrong_table_is_thrown_away)
{
	struct share_message before, again;

	assert_int_equal(ask(false, NULL, &before), 0);
	server.resume.table->entries[0].qpn_first++;
	end_owner();
	begin_owner(true);
	/* It is left to whoever keeps it. */
	assert_true(table >= 0);
	close(table);
	assert_int_equal(server.resume.count, 0);
	assert_int_equal(ask(false, before.token, &again), -ESTALE);
	assert_int_equal(ask(false, NULL, &again), 0);
}

/* Without anybody who keeps the table, programs must not wait. */
TEST(resume__is_told_only_if_the_table_is_kept)
{
	struct share_message welcome;

	end_owner();
	close(table);
	table = -1;
	begin_owner(false);
	assert_int_equal(ask(false, NULL, &welcome), 0);
	assert_int_equal(welcome.away_ms, 0);
	assert_false(resume_hand_over(&server));
}

/* The connection of the next owner, which asks for a port's table and sockets, and then that this
 * one leaves. */
static int next[2];

static void begin_next(void)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, next), 0);
	assert_int_equal(event_watch(&server, next[0], EVENT_HELLO, (uint32_t)next[0]), 0);
}

/* Return the result, and the answer to SHARE_REPLACE_ASK. */
static int replace(enum share_replace number, struct share_message *answer)
{
	const struct share_message request = {.type = SHARE_REPLACE, .number = number};
	const int rc = resume_replace(&server, next[0], &request);
	int fds[SHARE_FDS];

	if (rc == 0 && number == SHARE_REPLACE_ASK) {
		assert_int_equal(message_receive(next[1], answer, fds), 0);
		for (int i = 0; i < SHARE_FDS; i++) {
			if (fds[i] >= 0)
				close(fds[i]);
		}
	}
	return rc;
}

static void end_next(void)
{
	close(next[1]);
	control_event(&server, EVENT_HELLO, (uint32_t)next[0]);
	/* The server has closed it. */
	assert_int_equal(fcntl(next[0], F_GETFD), -1);
}

/* Return the time that a program waits for the next owner, as it was told last. */
static uint32_t told_away_ms(void)
{
	struct share_message message = {0};
	int fds[SHARE_FDS];

	while (message_receive(ends[0], &message, fds) == 0)
		;
	return message.away_ms;
}

TEST(resume_replace__tells_how_many_ports_must_leave)
{
	struct share_message welcome, answer;

	server.ports = 2;
	server.pending_clients.trusted.fd = server.pending_clients.isolated.fd = -1;
	assert_int_equal(ask(false, NULL, &welcome), 0);
	server.pending_clients.trusted.fd = dup(server.epoll_fd);
	begin_next();
	assert_int_equal(replace(SHARE_REPLACE_ASK, &answer), 0);
	close(server.pending_clients.trusted.fd);
	assert_int_equal(answer.result, 0);
	assert_int_equal(answer.welcome.ports, 2);
	assert_false(server.resume.must_leave);
	assert_int_equal(replace(SHARE_REPLACE_LEAVE, NULL), 0);
	assert_true(server.resume.must_leave);
	assert_int_equal(told_away_ms(), RESUME_AWAY_MS);
	assert_true(resume_hand_over(&server));
	close(next[0]);
	close(next[1]);
}

/* The next owner does not have this port: its programs must not wait for it. */
TEST(resume_replace__of_a_port_that_nobody_goes_on_with)
{
	struct share_message welcome;

	assert_int_equal(ask(false, NULL, &welcome), 0);
	begin_next();
	assert_int_equal(replace(SHARE_REPLACE_END, NULL), 0);
	assert_true(server.resume.must_leave);
	assert_int_equal(told_away_ms(), 0);
	assert_false(resume_hand_over(&server));
	close(next[0]);
	close(next[1]);
}

/* The next owner ends after any of its requests: this one goes on, and promises what it did. */
TEST(resume_replace__by_one_that_ends)
{
	static const enum share_replace last[] = {SHARE_REPLACE_ASK, SHARE_REPLACE_LEAVE,
						  SHARE_REPLACE_END};
	struct share_message welcome, answer;

	for (size_t i = 0; i < 2 * sizeof(last) / sizeof(last[0]); i++) {
		const bool kept = i % 2 == 0;

		end_owner();
		close(table);
		table = -1;
		begin_owner(kept);
		server.pending_clients.trusted.fd = dup(server.epoll_fd);
		server.pending_clients.isolated.fd = -1;
		assert_int_equal(ask(false, NULL, &welcome), 0);
		begin_next();
		assert_int_equal(replace(SHARE_REPLACE_ASK, &answer), 0);
		if (last[i / 2] != SHARE_REPLACE_ASK)
			assert_int_equal(replace(last[i / 2], NULL), 0);
		end_next();
		assert_false(server.resume.must_leave);
		assert_int_equal(told_away_ms(), kept ? RESUME_AWAY_MS : 0);
		assert_int_equal(resume_hand_over(&server), kept);
		close(server.pending_clients.trusted.fd);
		server.pending_clients.trusted.fd = 0;
		while (end_count > 0)
			close(ends[--end_count]);
	}
}

/* Two processes that take over one owner's ports would each get some of them. */
TEST(resume_replace__by_one_at_a_time)
{
	struct share_message answer;
	int first;

	server.pending_clients.trusted.fd = dup(server.epoll_fd);
	server.pending_clients.isolated.fd = -1;
	begin_next();
	assert_int_equal(replace(SHARE_REPLACE_ASK, &answer), 0);
	first = next[0];
	close(next[1]);
	begin_next();
	assert_int_equal(replace(SHARE_REPLACE_ASK, &answer), -EBUSY);
	control_event(&server, EVENT_HELLO, (uint32_t)first);
	assert_int_equal(message_receive(next[1], &answer, NULL), 0);
	assert_int_equal(answer.result, -EBUSY);
	assert_int_equal(replace(SHARE_REPLACE_ASK, &answer), 0);
	close(server.pending_clients.trusted.fd);
	close(next[0]);
	close(next[1]);
}
