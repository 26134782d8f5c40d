/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/spaces.c. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "owner/spaces.h"
#include "test.h"
#include "wire/gid.h"

#define PORT  7174
#define FINDS 10000u
#define ALICE user_of_uid(1000)
#define BOB   user_of_uid(1001)

static struct spaces *spaces;
static const uint8_t v4[GID_LEN] = {[10] = 0xff, 0xff, 10, 9, 0, 1};
static const uint8_t other_v4[GID_LEN] = {[10] = 0xff, 0xff, 10, 9, 0, 2};
static const uint8_t v6[GID_LEN] = {0xfd, [15] = 1};

static int setup(TEST_STATE)
{
	spaces = calloc(1, sizeof(*spaces));
	return spaces == NULL;
}

static int teardown(TEST_STATE)
{
	for (uint16_t i = 0; i < SPACES_SLOTS; i++)
		spaces_end(spaces, i);
	assert_int_equal(spaces->count, 0);
	assert_int_equal(spaces->isolated, 0);
	free(spaces);
	return 0;
}

TEST_FIXTURE(setup, teardown);

static struct cm_port_claim any(uint8_t ip_version, uint16_t port)
{
	return (struct cm_port_claim){.space = CM_PS_TCP,
				      .port = port,
				      .ip_version = ip_version,
				      .any_address = true,
				      .vlan_id = -1};
}

static struct cm_port_claim at(const uint8_t *gid, uint16_t port)
{
	struct cm_port_claim claim = any(gid_is_ipv4(gid) ? 4 : 6, port);

	claim.any_address = false;
	memcpy(claim.address, gid, GID_LEN);
	return claim;
}

static struct cm_port_claim reusing(struct cm_port_claim claim)
{
	claim.reuse = true;
	return claim;
}

static uint32_t last_id;

static int bound_as(uint16_t slot, user_t user, struct cm_port_claim claim)
{
	return spaces_claim(spaces, slot, user, &claim, &last_id);
}

static int bound(uint16_t slot, struct cm_port_claim claim)
{
	return bound_as(slot, USER_TRUSTED, claim);
}

/* Bind and listen. */
static int serve(uint16_t slot, struct cm_port_claim claim)
{
	const int rc = bound(slot, claim);

	return rc == 0 ? spaces_listen(spaces, slot, last_id) : rc;
}

static uint16_t listener(const uint8_t *gid, int32_t vlan_id)
{
	return spaces_find(spaces, cm_service_id(CM_PS_TCP, PORT), gid, vlan_id);
}

TEST(spaces_claim__of_one_address_is_alone)
{
	assert_int_equal(bound(0, at(v4, PORT)), 0);
	assert_int_equal(bound(1, at(v4, PORT)), -EADDRINUSE);
	assert_int_equal(bound(0, at(v4, PORT)), -EADDRINUSE);
	assert_int_equal(bound(1, at(other_v4, PORT)), 0);
	assert_int_equal(bound(1, at(v4, PORT + 1)), 0);
}

TEST(spaces_claim__of_any_address_is_alone_in_its_version)
{
	assert_int_equal(bound(0, any(4, PORT)), 0);
	assert_int_equal(bound(1, at(v4, PORT)), -EADDRINUSE);
	assert_int_equal(bound(1, any(4, PORT)), -EADDRINUSE);
	assert_int_equal(bound(1, any(0, PORT)), -EADDRINUSE);
	/* AFONLY. */
	assert_int_equal(bound(1, any(6, PORT)), 0);
	assert_int_equal(bound(2, at(v6, PORT)), -EADDRINUSE);
}

TEST(spaces_claim__of_any_version_is_alone)
{
	assert_int_equal(bound(0, any(0, PORT)), 0);
	assert_int_equal(bound(1, at(v4, PORT)), -EADDRINUSE);
	assert_int_equal(bound(1, at(v6, PORT)), -EADDRINUSE);
	assert_int_equal(bound(1, any(4, PORT)), -EADDRINUSE);
	assert_int_equal(bound(1, any(6, PORT)), -EADDRINUSE);
}

TEST(spaces_claim__of_another_space_or_vlan_is_another)
{
	struct cm_port_claim claim = any(0, PORT);

	assert_int_equal(bound(0, claim), 0);
	claim.space = CM_PS_UDP;
	assert_int_equal(bound(1, claim), 0);
	assert_int_equal(bound(0, at(v4, PORT + 1)), 0);
	claim = at(v4, PORT + 1);
	claim.vlan_id = 5;
	assert_int_equal(bound(1, claim), 0);
}

TEST(spaces_claim__shares_with_reuseaddr_on_both_sides)
{
	assert_int_equal(bound(0, reusing(any(0, PORT))), 0);
	assert_int_equal(bound(1, any(0, PORT)), -EADDRINUSE);
	assert_int_equal(bound(1, reusing(any(0, PORT))), 0);
	assert_int_equal(bound(1, reusing(at(v4, PORT))), 0);
	assert_int_equal(bound(2, at(v4, PORT)), -EADDRINUSE);
}

TEST(spaces_change__reuseaddr_and_version)
{
	uint32_t id;

	assert_int_equal(bound(0, any(0, PORT)), 0);
	id = last_id;
	assert_int_equal(spaces_change(spaces, 1, id, 0, true), -EINVAL);
	assert_int_equal(spaces_change(spaces, 0, id, 5, true), -EINVAL);
	assert_int_equal(bound(1, any(4, PORT)), -EADDRINUSE);
	assert_int_equal(spaces_change(spaces, 0, id, 6, false), 0);
	assert_int_equal(bound(1, any(4, PORT)), 0);
	assert_int_equal(spaces_change(spaces, 0, id, 0, true), -EADDRINUSE);
	assert_int_equal(spaces_change(spaces, 0, id, 6, true), 0);
	assert_int_equal(bound(1, reusing(any(6, PORT))), 0);
	assert_int_equal(bound_as(2, BOB, reusing(any(6, PORT))), -EADDRINUSE);
	assert_int_equal(serve(1, at(v4, PORT + 1)), 0);
	assert_int_equal(spaces_change(spaces, 1, last_id, 4, true), -EINVAL);
	assert_int_equal(bound(1, at(v4, PORT + 2)), 0);
	assert_int_equal(spaces_change(spaces, 1, last_id, 6, true), -EINVAL);
}

TEST(spaces_claim__does_not_share_between_users)
{
	assert_int_equal(bound_as(0, ALICE, reusing(any(0, PORT))), 0);
	assert_int_equal(bound_as(1, BOB, reusing(any(0, PORT))), -EADDRINUSE);
	assert_int_equal(bound_as(1, BOB, reusing(at(v4, PORT))), -EADDRINUSE);
	assert_int_equal(bound_as(1, USER_TRUSTED, reusing(any(0, PORT))), -EADDRINUSE);
	assert_int_equal(bound_as(2, ALICE, reusing(any(0, PORT))), 0);
}

TEST(spaces_listen__is_for_one_of_all)
{
	uint32_t first, second;

	assert_int_equal(bound(0, reusing(any(0, PORT))), 0);
	first = last_id;
	assert_int_equal(bound(1, reusing(any(0, PORT))), 0);
	second = last_id;
	assert_int_equal(spaces_listen(spaces, 0, first), -EADDRINUSE);
	assert_int_equal(spaces_release(spaces, 1, second), 0);
	assert_int_equal(spaces_listen(spaces, 0, first), 0);
	/* The listener then has the port alone. */
	assert_int_equal(bound(1, reusing(any(0, PORT))), -EADDRINUSE);
	assert_int_equal(bound(1, reusing(at(v4, PORT))), -EADDRINUSE);
}

TEST(spaces_listen__knows_whose_a_port_is)
{
	assert_int_equal(bound(0, any(0, PORT)), 0);
	assert_int_equal(spaces_listen(spaces, 1, last_id), -EINVAL);
	assert_int_equal(spaces_release(spaces, 1, last_id), -EINVAL);
	assert_int_equal(spaces_listen(spaces, 0, last_id + 1), -EINVAL);
	assert_int_equal(spaces_listen(spaces, 0, last_id), 0);
	assert_int_equal(spaces_release(spaces, 0, last_id), 0);
	assert_int_equal(spaces_release(spaces, 0, last_id), -EINVAL);
}

TEST(spaces_find__knows_listeners_alone)
{
	assert_int_equal(listener(v4, -1), SPACES_NONE);
	assert_int_equal(bound(3, any(0, PORT)), 0);
	assert_int_equal(listener(v4, -1), SPACES_NONE);
	assert_int_equal(spaces_listen(spaces, 3, last_id), 0);
	assert_int_equal(listener(v4, -1), 3);
	assert_int_equal(listener(v6, 5), 3);
	assert_int_equal(spaces_find(spaces, cm_service_id(CM_PS_UDP, PORT), v4, -1), SPACES_NONE);
	assert_int_equal(spaces_find(spaces, cm_service_id(CM_PS_TCP, PORT + 1), v4, -1),
			 SPACES_NONE);
	/* The upper half is no port space's. */
	assert_int_equal(
		spaces_find(spaces, UINT64_C(1) << 32 | cm_service_id(CM_PS_TCP, PORT), v4, -1),
		SPACES_NONE);
}

TEST(spaces_find__goes_by_address_version_and_vlan)
{
	struct cm_port_claim tagged = at(v4, PORT);

	tagged.vlan_id = 5;
	assert_int_equal(serve(0, at(v4, PORT)), 0);
	assert_int_equal(serve(1, at(other_v4, PORT)), 0);
	assert_int_equal(serve(2, any(6, PORT)), 0);
	assert_int_equal(serve(3, tagged), 0);
	assert_int_equal(listener(v4, -1), 0);
	assert_int_equal(listener(other_v4, -1), 1);
	assert_int_equal(listener(v6, -1), 2);
	assert_int_equal(listener(v4, 5), 3);
	assert_int_equal(listener(other_v4, 5), SPACES_NONE);
}

TEST(spaces_end__frees_all_of_a_slot)
{
	assert_int_equal(serve(0, any(0, PORT)), 0);
	assert_int_equal(bound(0, any(0, PORT + 1)), 0);
	assert_int_equal(serve(1, any(0, PORT + 2)), 0);
	spaces_end(spaces, 0);
	assert_int_equal(spaces->count, 1);
	assert_int_equal(listener(v4, -1), SPACES_NONE);
	assert_int_equal(serve(2, any(0, PORT)), 0);
	assert_int_equal(listener(v4, -1), 2);
	assert_int_equal(bound(2, any(0, PORT + 2)), -EADDRINUSE);
}

TEST(spaces_claim__chooses_ephemeral_ports_at_random)
{
	struct cm_port_claim claim;
	uint32_t above = 0, rising = 0;
	uint16_t before = 0;
	uint32_t id;

	for (int i = 0; i < 200; i++) {
		claim = any(0, 0);
		assert_int_equal(spaces_claim(spaces, 0, USER_TRUSTED, &claim, &id), 0);
		assert_in_range(claim.port, SPACES_EPHEMERAL, SPACES_EPHEMERAL_END - 1);
		above += claim.port > (SPACES_EPHEMERAL + SPACES_EPHEMERAL_END) / 2;
		rising += claim.port == before + 1;
		before = claim.port;
	}
	/* Each of these fails once in more than 10^12 runs. */
	assert_in_range(above, 50, 150);
	assert_in_range(rising, 0, 20);
}

TEST(spaces_claim__gives_every_ephemeral_port_once)
{
	static bool seen[65536];
	struct cm_port_claim claim;
	uint32_t count = 0;
	uint32_t id;
	int rc;

	for (;;) {
		/* Whatever REUSEADDR says. */
		claim = reusing(any(0, 0));
		rc = spaces_claim(spaces, 0, USER_TRUSTED, &claim, &id);
		if (rc != 0)
			break;
		assert_false(seen[claim.port]);
		seen[claim.port] = true;
		count++;
	}
	assert_int_equal(rc, -EADDRINUSE);
	assert_int_equal(count, SPACES_EPHEMERAL_END - SPACES_EPHEMERAL);
}

TEST(spaces_claim__limits_a_user)
{
	uint32_t count = 0;

	while (bound_as((uint16_t)(count % 2), ALICE, any(0, (uint16_t)(1024 + count))) == 0)
		count++;
	assert_int_equal(count, SPACES_USER_MAX);
	assert_int_equal(bound_as(2, ALICE, any(0, 0)), -ENOSPC);
	assert_int_equal(bound_as(3, BOB, any(0, 0)), 0);
	/* When the user's processes have ended, the user may have ports again. */
	spaces_end(spaces, 0);
	assert_int_equal(bound_as(2, ALICE, any(0, 0)), 0);
}

TEST(spaces_claim__leaves_some_to_those_who_are_trusted)
{
	uint32_t count = 0;
	int rc = 0;

	for (uint16_t slot = 0; rc == 0; slot++) {
		const uint32_t before = count;

		while ((rc = bound_as(slot, user_of_uid(2000u + slot), any(0, 0))) == 0)
			count++;
		assert_int_equal(rc, -ENOSPC);
		rc = count - before == SPACES_USER_MAX ? 0 : rc;
	}
	assert_int_equal(count, SPACES_ISOLATED_MAX);
	assert_int_equal(bound_as(20, USER_ROOT, any(0, 0)), -ENOSPC);
	assert_int_equal(bound_as(21, USER_TRUSTED, any(0, 0)), 0);
}

TEST(spaces_claim__keeps_privileged_ports)
{
	assert_int_equal(bound_as(0, ALICE, any(0, SPACES_PRIVILEGED - 1)), -EACCES);
	assert_int_equal(bound_as(0, ALICE, any(0, SPACES_PRIVILEGED)), 0);
	assert_int_equal(bound_as(1, USER_ROOT, any(0, SPACES_PRIVILEGED - 1)), 0);
	assert_int_equal(bound_as(2, USER_TRUSTED, any(0, SPACES_PRIVILEGED - 2)), 0);
}

TEST(spaces_claim__refuses_what_cannot_be)
{
	struct cm_port_claim claim = any(5, PORT);

	assert_int_equal(bound(0, claim), -EINVAL);
	claim = any(4, PORT);
	claim.space = (enum cm_port_space)0x107;
	assert_int_equal(bound(0, claim), -EINVAL);
	claim = at(v4, PORT);
	claim.ip_version = 6;
	assert_int_equal(bound(0, claim), -EINVAL);
	claim.ip_version = 0;
	assert_int_equal(bound(0, claim), -EINVAL);
	claim = at(v6, PORT);
	memset(claim.address, 0, sizeof(claim.address));
	assert_int_equal(bound(0, claim), -EINVAL);
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t find_ns(uint32_t times)
{
	const uint64_t begun_ns = cpu_ns();

	for (uint32_t i = 0; i < times; i++)
		assert_int_equal(listener(v4, -1), SPACES_NONE);
	return cpu_ns() - begun_ns;
}

/* Each REQ looks for a listener, and an isolated process may send many. */
TEST(spaces_find__costs_no_more_where_many_share_a_port)
{
	uint64_t alone_ns, shared_ns;

	alone_ns = find_ns(FINDS);
	for (uint32_t i = 0; i < SPACES_USER_MAX; i++)
		assert_int_equal(bound_as(0, ALICE, reusing(any(0, PORT))), 0);
	shared_ns = find_ns(FINDS);
	print_message("%u lookups: %llu us, and %llu us beside %u claims of the port\n", FINDS,
		      (unsigned long long)alone_ns / 1000, (unsigned long long)shared_ns / 1000,
		      SPACES_USER_MAX);
	assert_true(shared_ns < 20 * alone_ns + 1000000);
}
