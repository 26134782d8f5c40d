/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/cm/ports.c. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cm/ports.h"
#include "wire/gid.h"
#include "test.h"

#define PORT 7174

static struct cm_port_claim any(uint8_t version)
{
	return (struct cm_port_claim){
		.space = CM_PS_TCP, .port = PORT, .ip_version = version, .any_address = true};
}

static struct cm_port_claim at(const uint8_t ipv4[4])
{
	struct cm_port_claim claim = {
		.space = CM_PS_TCP, .port = PORT, .ip_version = 4, .vlan_id = -1};

	gid_from_ipv4(ipv4, claim.address);
	return claim;
}

static const uint8_t one[4] = {10, 0, 0, 1}, two[4] = {10, 0, 0, 2};

static int claim(struct cm_port_claim what, uint32_t *id)
{
	return cm_ports_local.claim(NULL, &what, id);
}

static void release(uint32_t id)
{
	cm_ports_local.release(NULL, id);
}

TEST(claim__same_address_and_port_is_in_use)
{
	uint32_t first, second;

	assert_int_equal(claim(at(one), &first), 0);
	assert_int_equal(claim(at(one), &second), -EADDRINUSE);
	release(first);
	release(first);
	assert_int_equal(claim(at(one), &second), 0);
	release(second);
}

TEST(claim__other_address_space_or_vlan_is_free)
{
	struct cm_port_claim udp = at(one), tagged = at(one);
	uint32_t ids[4];

	udp.space = CM_PS_UDP;
	tagged.vlan_id = 5;
	assert_int_equal(claim(at(one), &ids[0]), 0);
	assert_int_equal(claim(at(two), &ids[1]), 0);
	assert_int_equal(claim(udp, &ids[2]), 0);
	assert_int_equal(claim(tagged, &ids[3]), 0);
	for (int i = 0; i < 4; i++)
		release(ids[i]);
}

TEST(claim__any_address_overlaps_each_of_its_version)
{
	uint32_t first, second;

	assert_int_equal(claim(at(one), &first), 0);
	assert_int_equal(claim(any(0), &second), -EADDRINUSE);
	assert_int_equal(claim(any(4), &second), -EADDRINUSE);
	assert_int_equal(claim(any(6), &second), 0);
	release(first);
	release(second);
}

TEST(claim__chooses_free_ports)
{
	struct cm_port_claim first = any(0), second = any(0);
	uint32_t ids[2];

	first.port = second.port = 0;
	assert_int_equal(cm_ports_local.claim(NULL, &first, &ids[0]), 0);
	assert_int_equal(cm_ports_local.claim(NULL, &second, &ids[1]), 0);
	assert_true(first.port >= 32768 && second.port >= 32768);
	assert_int_not_equal(first.port, second.port);
	release(ids[0]);
	release(ids[1]);
}

TEST(listen__of_those_who_reuse_an_address_one_listens)
{
	struct cm_port_claim shared = any(0);
	uint32_t first, second;

	shared.reuse = true;
	assert_int_equal(claim(shared, &first), 0);
	assert_int_equal(claim(shared, &second), 0);
	assert_int_equal(cm_ports_local.listen(NULL, first), -EADDRINUSE);
	release(second);
	assert_int_equal(cm_ports_local.listen(NULL, first), 0);
	assert_int_equal(cm_ports_local.listen(NULL, second), -EINVAL);
	release(first);
}

/* A listener does not share its address any more. */
TEST(listen__ends_the_sharing)
{
	struct cm_port_claim shared = at(one);
	uint32_t first, second;

	shared.reuse = true;
	assert_int_equal(claim(shared, &first), 0);
	assert_int_equal(cm_ports_local.listen(NULL, first), 0);
	assert_int_equal(claim(shared, &second), -EADDRINUSE);
	release(first);
}

/* The test draws so many ports that it would almost surely draw one of the shared ones. */
TEST(claim__port_that_is_chosen_is_nobody_elses)
{
	uint32_t ids[300 + 1500];
	struct cm_port_claim shared = any(4);

	shared.reuse = true;
	for (uint16_t i = 0; i < 300; i++) {
		shared.port = 40000 + i;
		assert_int_equal(claim(shared, &ids[i]), 0);
	}
	for (size_t i = 300; i < sizeof(ids) / sizeof(ids[0]); i++) {
		shared.port = 0;
		assert_int_equal(cm_ports_local.claim(NULL, &shared, &ids[i]), 0);
		assert_true(shared.port < 40000 || shared.port >= 40300);
	}
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		release(ids[i]);
}

/* A child lets go of the parent's memory, which may be half changed. */
TEST(forget__leaves_all_ports_free)
{
	uint32_t first, second;
	int status;
	pid_t child;

	assert_int_equal(claim(at(one), &first), 0);
	child = fork();
	if (child == 0) {
		cm_ports_forget();
		_exit(cm_ports_local.listen(NULL, first) != -EINVAL ||
		      claim(at(one), &second) != 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	release(first);
}

TEST(change__reuseaddr_after_the_claim)
{
	struct cm_port_claim reusing = at(one);
	uint32_t first, second;

	reusing.reuse = true;
	assert_int_equal(claim(at(one), &first), 0);
	assert_int_equal(claim(reusing, &second), -EADDRINUSE);
	assert_int_equal(cm_ports_local.change(NULL, first, 4, true), 0);
	assert_int_equal(claim(reusing, &second), 0);
	/* The two share the port, so neither can have it alone. */
	assert_int_equal(cm_ports_local.change(NULL, first, 4, false), -EADDRINUSE);
	release(second);
	assert_int_equal(cm_ports_local.change(NULL, first, 4, false), 0);
	release(first);
}

TEST(change__version_of_any_address)
{
	uint32_t first, second;

	assert_int_equal(claim(any(0), &first), 0);
	assert_int_equal(claim(any(4), &second), -EADDRINUSE);
	assert_int_equal(cm_ports_local.change(NULL, first, 6, false), 0);
	assert_int_equal(claim(any(4), &second), 0);
	assert_int_equal(cm_ports_local.change(NULL, first, 0, false), -EADDRINUSE);
	assert_int_equal(claim(any(6), &second), -EADDRINUSE);
	release(first);
	release(second);
}

TEST(change__wrong_calls)
{
	uint32_t id;

	assert_int_equal(claim(at(one), &id), 0);
	assert_int_equal(cm_ports_local.change(NULL, id + 1, 4, true), -EINVAL);
	assert_int_equal(cm_ports_local.change(NULL, id, 6, true), -EINVAL);
	assert_int_equal(cm_ports_local.listen(NULL, id), 0);
	assert_int_equal(cm_ports_local.change(NULL, id, 4, true), -EINVAL);
	release(id);
	assert_int_equal(claim(any(0), &id), 0);
	assert_int_equal(cm_ports_local.change(NULL, id, 5, false), -EINVAL);
	release(id);
}

/* A process that has its devices alone may use all communication ids. */
TEST(ids__are_all_ours)
{
	uint32_t mask = 1, value = 2;

	assert_int_equal(cm_ports_local.ids(NULL, &mask, &value), 0);
	assert_int_equal(mask, 0);
	assert_int_equal(value, 0);
}

/* A port that is chosen for a program is nobody else's, and there are only so many. */
TEST(claim__of_any_port_when_none_is_left)
{
	static uint32_t ids[1 << 16];
	struct cm_port_claim what = any(0);
	uint32_t count = 0, more;
	int rc;

	do {
		what.port = 0;
		assert_in_range(count, 0, (1 << 16) - 1);
		rc = cm_ports_local.claim(NULL, &what, &ids[count]);
		count += rc == 0;
	} while (rc == 0);
	assert_int_equal(rc, -EADDRINUSE);
	what.port = 0;
	release(ids[--count]);
	assert_int_equal(cm_ports_local.claim(NULL, &what, &more), 0);
	release(more);
	while (count > 0)
		release(ids[--count]);
}
