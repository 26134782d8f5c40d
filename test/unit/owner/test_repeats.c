/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/repeats.c. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "owner/repeats.h"
#include "test.h"

#define FLOOD 100000
#define ALICE user_of_uid(1000)
#define BOB   user_of_uid(1001)

static struct repeats *repeats;

static int setup(TEST_STATE)
{
	repeats = calloc(1, sizeof(*repeats));
	return repeats ? repeats_init(repeats) : -1;
}

static int teardown(TEST_STATE)
{
	free(repeats);
	return 0;
}

TEST_FIXTURE(setup, teardown);

static struct repeats_peer peer(uint32_t host, uint32_t id)
{
	struct repeats_peer made = {.gid = {[10] = 0xff, 0xff}, .vlan_id = -1, .id = id};

	memcpy(made.gid + 12, &host, sizeof(host));
	return made;
}

static void note(const struct repeats_peer *from, uint64_t tid, uint16_t slot, uint32_t generation,
		 uint64_t now_ns)
{
	const struct repeat went = {
		.tid = tid, .generation = generation, .slot = slot, .user = USER_TRUSTED};

	repeats_note(repeats, from, &went, now_ns);
}

TEST(repeats_find__finds_what_was_noted)
{
	struct repeats_peer one = peer(1, 77), other;

	assert_null(repeats_find(repeats, &one, 5));
	note(&one, 9, 3, 11, 5);
	assert_non_null(repeats_find(repeats, &one, 5));
	assert_int_equal(repeats_find(repeats, &one, 5)->slot, 3);
	assert_int_equal(repeats_find(repeats, &one, 5)->generation, 11);
	assert_int_equal(repeats_find(repeats, &one, 5)->tid, 9);
	other = peer(2, 77);
	assert_null(repeats_find(repeats, &other, 5));
	other = peer(1, 78);
	assert_null(repeats_find(repeats, &other, 5));
	other = one;
	other.vlan_id = 5;
	assert_null(repeats_find(repeats, &other, 5));
	other = one;
	other.sidr = true;
	assert_null(repeats_find(repeats, &other, 5));
}

TEST(repeats_note__replaces_the_request_of_a_peer)
{
	const struct repeats_peer one = peer(1, 77);

	note(&one, 9, 3, 11, 5);
	note(&one, 10, 4, 12, 6);
	assert_int_equal(repeats_find(repeats, &one, 6)->slot, 4);
	assert_int_equal(repeats_find(repeats, &one, 6)->tid, 10);
}

TEST(repeats_find__forgets)
{
	const struct repeats_peer one = peer(1, 77);

	note(&one, 9, 3, 11, 5);
	assert_non_null(repeats_find(repeats, &one, 4 + REPEATS_NS));
	assert_null(repeats_find(repeats, &one, 5 + REPEATS_NS));
	/* An application may answer later than its peer asks. */
	assert_non_null(repeats_last(repeats, &one));
}

/* A flood does not make the table larger, and the newest requests are in it. */
TEST(repeats_note__keeps_the_newest_of_a_flood)
{
	uint32_t known = 0;

	for (uint32_t i = 0; i < FLOOD; i++) {
		const struct repeats_peer one = peer(i, i);

		note(&one, i, (uint16_t)(i % 32), 0, 5 + i);
	}
	for (uint32_t i = FLOOD - 1000; i < FLOOD; i++) {
		const struct repeats_peer one = peer(i, i);
		const struct repeat *found = repeats_find(repeats, &one, FLOOD + 5);

		known += found && found->slot == i % 32;
	}
	assert_int_equal(known, 1000);
}

/* A user that floods its own listener displaces no other user's requests. */
TEST(repeats_note__of_a_user_displaces_its_own)
{
	const struct repeat bobs = {.slot = 1, .user = BOB};
	uint32_t known = 0;

	for (uint32_t i = 0; i < 100; i++) {
		const struct repeats_peer one = peer(1, i);

		repeats_note(repeats, &one, &bobs, 5);
	}
	for (uint32_t i = 0; i < 4 * FLOOD; i++) {
		const struct repeat alices = {.slot = (uint16_t)(2 + i % 8), .user = ALICE};
		const struct repeats_peer one = peer(2, i);

		repeats_note(repeats, &one, &alices, 6);
	}
	for (uint32_t i = 0; i < 100; i++) {
		const struct repeats_peer one = peer(1, i);
		const struct repeat *found = repeats_find(repeats, &one, 7);

		known += found && found->slot == 1;
	}
	assert_int_equal(known, 100);
}
