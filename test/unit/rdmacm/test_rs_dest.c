/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/rs_dest.c, with a queue pair that exists in name only. */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rs_datagram.h"
#include "test.h"

static struct rs_datagrams datagrams;
static struct rsocket s;
static struct rs_pair pair;

static int set_up(TEST_STATE)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(pair.local);

	memset(&datagrams, 0, sizeof(datagrams));
	memset(&pair, 0, sizeof(pair));
	TAILQ_INIT(&datagrams.dests);
	LIST_INIT(&datagrams.pairs);
	s = (struct rsocket){.domain = AF_INET, .type = SOCK_DGRAM, .datagrams = &datagrams};
	datagrams.udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(datagrams.udp, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(datagrams.udp, (struct sockaddr *)&pair.local, &len), 0);
	LIST_INSERT_HEAD(&datagrams.pairs, &pair, next);
	return 0;
}

static int tear_down(TEST_STATE)
{
	rs_dest_end_all(&s);
	assert_int_equal(datagrams.dest_count, 0);
	close(datagrams.udp);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static struct sockaddr_storage number(uint32_t host)
{
	struct sockaddr_storage address = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&address;

	in->sin_family = AF_INET;
	in->sin_port = htons(9);
	in->sin_addr.s_addr = htonl(0x0a000000 + host);
	return address;
}

/* Programs need not clear the padding of an address. */
TEST(rs_dest_get__padding_is_no_part_of_an_address)
{
	struct sockaddr_storage address = number(1);
	struct rs_dest *first, *again;

	assert_int_equal(rs_dest_get(&s, &address, true, &first), 0);
	for (int i = 1; i < 100; i++) {
		((struct sockaddr_in *)&address)->sin_zero[i % 8] = (uint8_t)i;
		assert_int_equal(rs_dest_get(&s, &address, true, &again), 0);
		assert_ptr_equal(first, again);
	}
	assert_int_equal(datagrams.dest_count, 1);
}

TEST(rs_dest_get__labels_are_no_part_of_an_address)
{
	struct sockaddr_storage address = {.ss_family = AF_INET6};
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address;
	struct rs_dest *first, *again;

	in6->sin6_addr.s6_addr[15] = 1;
	assert_int_equal(rs_dest_get(&s, &address, true, &first), 0);
	in6->sin6_flowinfo = htonl(77);
	assert_int_equal(rs_dest_get(&s, &address, true, &again), 0);
	assert_ptr_equal(first, again);
}

/* The one that was used longest ago goes. */
TEST(rs_dest_get__keeps_a_limited_number)
{
	const struct sockaddr_storage kept = number(0), lost = number(1);
	struct rs_dest *dest, *first;

	assert_int_equal(rs_dest_get(&s, &kept, true, &first), 0);
	for (uint32_t host = 1; host < 4 * RS_DEST_MAX; host++) {
		const struct sockaddr_storage address = number(host);

		assert_int_equal(rs_dest_get(&s, &address, true, &dest), 0);
		assert_int_equal(rs_dest_get(&s, &kept, false, &dest), 0);
		assert_ptr_equal(dest, first);
	}
	assert_int_equal(datagrams.dest_count, RS_DEST_MAX);
	assert_int_equal(rs_dest_get(&s, &lost, false, &dest), -ENOENT);
}

/* The peer's link address is known, so that nothing is resolved. */
static struct rs_dest *resolved_dest(void)
{
	static struct ibv_ah ah;
	const struct sockaddr_storage address = number(1);
	struct rs_dest *dest;

	assert_int_equal(rs_dest_get(&s, &address, true, &dest), 0);
	dest->ah = &ah;
	return dest;
}

TEST(rs_dest_learn__special_queue_pairs_are_no_peers)
{
	struct rs_dest *dest = resolved_dest();

	rs_dest_learn(&s, dest, 0);
	rs_dest_learn(&s, dest, 1);
	assert_int_equal(dest->qpn, 0);
	rs_dest_learn(&s, dest, 2);
	assert_int_equal(dest->qpn, 2);
	dest->ah = NULL;
}

/* The result does not depend on how often the forger sends. */
TEST(rs_dest_learn__a_forged_number_replaces_none)
{
	struct rs_dest *dest = resolved_dest();

	rs_dest_learn(&s, dest, 7);
	for (int i = 0; i < 3; i++) {
		rs_dest_learn(&s, dest, 666);
		assert_int_equal(dest->qpn, 0);
	}
	rs_dest_asked(dest);
	rs_dest_learn(&s, dest, 7);
	assert_int_equal(dest->qpn, 7);
	dest->ah = NULL;
}

/* The forged answer may be first: the true one still comes. */
TEST(rs_dest_learn__a_forged_answer_lasts_until_the_true_one)
{
	struct rs_dest *dest = resolved_dest();

	rs_dest_learn(&s, dest, 7);
	rs_dest_learn(&s, dest, 666);
	rs_dest_asked(dest);
	rs_dest_learn(&s, dest, 666);
	assert_int_equal(dest->qpn, 666);
	rs_dest_learn(&s, dest, 7);
	assert_int_equal(dest->qpn, 0);
	rs_dest_asked(dest);
	rs_dest_learn(&s, dest, 7);
	assert_int_equal(dest->qpn, 7);
	dest->ah = NULL;
}

TEST(rs_dest_learn__a_peer_that_started_again_is_asked)
{
	struct rs_dest *dest = resolved_dest();

	rs_dest_learn(&s, dest, 7);
	rs_dest_learn(&s, dest, 8);
	rs_dest_asked(dest);
	rs_dest_learn(&s, dest, 8);
	assert_int_equal(dest->qpn, 8);
	dest->ah = NULL;
}
