/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/tenants.c, in virtual time: slots whose packets wait, and a port with little
 * room. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "owner/tenants.h"
#include "test.h"

#define SLOTS	  40
#define LONG	  4170 /* a packet of 4 KiB */
#define SHORT	  66   /* an acknowledgement */
#define ROUND_NS  UINT64_C(20000)
#define MANY	  20000 /* rounds */
#define NS_PER_S  UINT64_C(1000000000)
#define UNLIMITED UINT32_MAX

static struct tenants tenants;

/* A process of a tenant. */
static struct sender {
	uint16_t tenant;
	uint32_t waiting; /* packets; UNLIMITED: there are always more */
	uint32_t len;	  /* of each */
	bool by_port;	  /* they need room of the port */
	uint64_t bytes;	  /* taken from it */
	uint64_t packets;
} senders[SLOTS];

static uint64_t now_ns;
static uint32_t room; /* of the port in this round, in packets */

static int setup(TEST_STATE)
{
	tenants_init(&tenants);
	memset(senders, 0, sizeof(senders));
	for (uint16_t i = 0; i < SLOTS; i++)
		senders[i].tenant = TENANTS_NONE;
	now_ns = NS_PER_S;
	return 0;
}

TEST_FIXTURE(setup, NULL);

static void join(uint16_t slot, user_t user, uint32_t weight, uint64_t rate, uint32_t len)
{
	const struct tenants_limits limits = {.weight = weight, .rate = rate};

	senders[slot] = (struct sender){.waiting = UNLIMITED, .len = len};
	senders[slot].tenant = tenants_join(&tenants, user, &limits, now_ns);
	assert_int_not_equal(senders[slot].tenant, TENANTS_NONE);
}

/* Take packets of a slot as the owner does. */
static void take_from(struct sender *sender, struct tenants_take *take)
{
	while (take->cost < take->credit && sender->waiting > 0 && (!sender->by_port || room > 0)) {
		room -= sender->by_port;
		sender->waiting -= sender->waiting != UNLIMITED;
		sender->bytes += sender->len;
		sender->packets++;
		tenants_take_packet(take, sender->len);
	}
}

/* Run a round. The port has room for so many packets. */
static void run_round(uint32_t port_room)
{
	struct tenants_take take;
	uint16_t slot;

	room = port_room;
	tenants_begin(&tenants);
	for (uint16_t i = 0; i < SLOTS; i++) {
		if (senders[i].tenant != TENANTS_NONE && senders[i].waiting > 0)
			tenants_want(&tenants, senders[i].tenant, i);
	}
	tenants_start(&tenants, now_ns);
	while ((slot = tenants_next(&tenants, now_ns, &take)) != TENANTS_NONE) {
		take_from(&senders[slot], &take);
		tenants_charge(&tenants, senders[slot].tenant, &take, now_ns);
	}
	now_ns += ROUND_NS;
}

static void run(unsigned int rounds, uint32_t port_room)
{
	while (rounds-- > 0)
		run_round(port_room);
}

/* Assert that a is `times` b, within 1 %. */
static void assert_ratio(uint64_t a, uint64_t b, uint64_t times)
{
	if (a * 100 < b * times * 99 || a * 100 > b * times * 101)
		fail_msg("%lu is not %lu times %lu", (unsigned long)a, (unsigned long)times,
			 (unsigned long)b);
}

TEST(tenants_join__needs_no_turns_for_one_tenant)
{
	join(0, 5, 1, 0, LONG);
	join(1, 5, 1, 0, LONG);
	assert_int_equal(senders[0].tenant, senders[1].tenant);
	assert_false(tenants.are_many);
	join(2, 6, 1, 0, LONG);
	assert_true(tenants.are_many);
	tenants_leave(&tenants, senders[2].tenant);
	assert_false(tenants.are_many);
	tenants_leave(&tenants, TENANTS_NONE);
	join(2, 7, 1, TENANTS_RATE_MIN, LONG);
	tenants_leave(&tenants, senders[0].tenant);
	tenants_leave(&tenants, senders[1].tenant);
	assert_true(tenants.are_many);
	tenants_leave(&tenants, senders[2].tenant);
	assert_false(tenants.are_many);
}

TEST(tenants_join__refuses_when_all_entries_have_slots)
{
	const struct tenants_limits limits = {.weight = 1};

	for (user_t user = 0; user < TENANTS_MAX; user++)
		assert_int_equal(tenants_join(&tenants, user, &limits, now_ns), user);
	assert_int_equal(tenants_join(&tenants, TENANTS_MAX, &limits, now_ns), TENANTS_NONE);
	tenants_leave(&tenants, 7);
	assert_int_equal(tenants_join(&tenants, TENANTS_MAX, &limits, now_ns), 7);
}

/* A tenant with many processes gets no more than one with one process, and its processes get equal
 * parts. */
TEST(tenants_next__divides_by_tenant_and_then_by_slot)
{
	for (uint16_t i = 0; i < 32; i++)
		join(i, 5, 1, 0, LONG);
	join(32, 6, 1, 0, LONG);
	run(MANY, 0);
	uint64_t bytes = 0;
	for (uint16_t i = 0; i < 32; i++) {
		assert_ratio(senders[i].bytes, senders[0].bytes, 1);
		bytes += senders[i].bytes;
	}
	assert_ratio(bytes, senders[32].bytes, 1);
}

/* The credit of a round is 5 packets for 2 slots, or the port has room for one. */
TEST(tenants_next__begins_with_another_slot_each_time)
{
	join(0, 5, 1, 0, 6600);
	join(1, 5, 1, 0, 6600);
	join(2, 6, 1, 0, 6600);
	run(MANY, 0);
	assert_ratio(senders[0].bytes, senders[1].bytes, 1);
	for (int i = 0; i < 3; i++) {
		senders[i].by_port = true;
		senders[i].bytes = 0;
	}
	run(MANY, 1);
	assert_ratio(senders[0].bytes, senders[1].bytes, 1);
	assert_ratio(senders[0].bytes + senders[1].bytes, senders[2].bytes, 1);
}

TEST(tenants_next__divides_bytes_and_not_packets)
{
	join(0, 5, 1, 0, LONG);
	join(1, 6, 1, 0, 1090);
	run(MANY, 0);
	assert_ratio(senders[0].bytes, senders[1].bytes, 1);
}

/* The time to move them counts. */
TEST(tenants_next__counts_short_packets_as_longer_ones)
{
	join(0, 5, 1, 0, LONG);
	join(1, 6, 1, 0, SHORT);
	run(MANY, 0);
	assert_ratio(senders[0].bytes, senders[1].packets * TENANTS_PACKET_BYTES, 1);
}

TEST(tenants_next__divides_by_weight)
{
	join(0, 5, 1, 0, LONG);
	join(1, 6, 7, 0, LONG);
	join(2, 7, TENANTS_WEIGHT_MAX, 0, 1090);
	run(20 * MANY, 0);
	assert_ratio(senders[1].bytes, senders[0].bytes, 7);
	assert_ratio(senders[2].bytes, senders[0].bytes, TENANTS_WEIGHT_MAX);
}

/* The port's room in a round is less than one tenant's quantum. Others send to each other
 * meanwhile, at the speed of the owner. */
TEST(tenants_next__divides_a_slow_port_by_weight)
{
	join(0, 5, 1, 0, LONG);
	join(1, 6, 3, 0, LONG);
	senders[0].by_port = senders[1].by_port = true;
	run(MANY, 2);
	assert_ratio(senders[1].bytes, senders[0].bytes, 3);
	join(2, 7, 1, 0, LONG);
	senders[0].bytes = senders[1].bytes = 0;
	run(MANY, 2);
	assert_ratio(senders[1].bytes, senders[0].bytes, 3);
	assert_true(senders[2].bytes > MANY * (uint64_t)TENANTS_QUANTUM_BYTES * 99 / 100);
}

/* A heavy tenant that cannot send does not hold a light one back. */
TEST(tenants_next__gives_what_others_cannot_use)
{
	join(0, 5, 1, 0, LONG);
	join(1, 6, TENANTS_WEIGHT_MAX, 0, LONG);
	senders[1].by_port = true;
	run(MANY, 0);
	assert_int_equal(senders[1].packets, 0);
	assert_true(senders[0].bytes > MANY * (uint64_t)TENANTS_QUANTUM_BYTES * 99 / 100);
}

/* A tenant sends a short packet now and then. The owner takes it in the same round, before the
 * flood's packets. */
TEST(tenants_next__takes_a_short_packet_before_a_flood)
{
	join(0, 5, TENANTS_WEIGHT_MAX, 0, LONG);
	join(1, 6, 1, 0, SHORT);
	senders[0].by_port = senders[1].by_port = true;
	for (int i = 0; i < 1000; i++) {
		senders[1].waiting = 0;
		run(100, 2);
		senders[1].waiting = 1;
		run(1, 2);
		assert_int_equal(senders[1].packets, i + 1);
	}
}

/* A tenant that pauses after each quantum, so that its account is settled each time, gets no more
 * than one that waits for the port all the time. */
TEST(tenants_start__gives_no_claim_for_pauses)
{
	const uint32_t quantum = TENANTS_QUANTUM_BYTES / LONG;

	join(0, 5, 1, 0, LONG);
	join(1, 6, 1, 0, LONG);
	senders[0].by_port = senders[1].by_port = true;
	for (int i = 0; i < MANY; i++) {
		if (senders[1].waiting == 0 || i == 0)
			senders[1].waiting = i % 2 == 0 ? quantum : 0;
		run(1, 2);
	}
	assert_true(senders[1].bytes <= senders[0].bytes + (uint64_t)TENANTS_QUANTUM_BYTES);
}

/* A tenant does not get later what it did not ask for. */
TEST(tenants_start__gives_no_claim_for_a_long_pause)
{
	join(0, 5, 1, 0, LONG);
	join(1, 6, 1, 0, LONG);
	senders[0].by_port = senders[1].by_port = true;
	run(1, 2);
	senders[1].waiting = 0;
	run(1000, 2);
	senders[1].waiting = UNLIMITED;
	senders[0].bytes = senders[1].bytes = 0;
	run(100, 2);
	assert_true(senders[1].bytes <= senders[0].bytes + 2 * (uint64_t)TENANTS_QUANTUM_BYTES);
}

/* After a long time alone, a tenant does not wait for the others to have sent as much. */
TEST(tenants_start__brings_back_a_tenant_that_is_far_ahead)
{
	join(0, 5, 1, 0, LONG);
	join(1, 6, 1, 0, LONG);
	senders[1].by_port = true;
	run(MANY, 0);
	senders[0].by_port = true;
	senders[0].bytes = 0;
	run(1000, 1);
	assert_true(senders[0].packets * LONG > 0);
	assert_true(senders[0].bytes > 400 * (uint64_t)LONG);
}

/* The accounts wrap around. */
/* Else a tenant would owe all that it sent while it was alone. */
TEST(tenants_charge__nothing_while_no_turns_are_needed)
{
	const struct tenants_take take = {.cost = INT64_C(1) << 30};

	join(0, 5, 1, 0, LONG);
	tenants_charge(&tenants, senders[0].tenant, &take, now_ns);
	join(1, 6, 1, 0, LONG);
	run(MANY, UNLIMITED);
	assert_ratio(senders[0].bytes, senders[1].bytes, 1);
}

TEST(tenants_charge__counts_modulo_2_64)
{
	join(0, 5, 1, 0, LONG);
	join(1, 6, 3, 0, LONG);
	senders[0].by_port = senders[1].by_port = true;
	for (int i = 0; i < 2; i++)
		tenants.all[senders[i].tenant].sent = UINT64_MAX - 65536 * UINT64_C(1000000);
	tenants.sent = UINT64_MAX - 65536 * UINT64_C(1000000);
	run(MANY, 2);
	assert_true(tenants.sent < UINT64_MAX / 2);
	assert_ratio(senders[1].bytes, senders[0].bytes, 3);
}

/* While a tenant pauses, the other's account goes half around, and that of one that stays away
 * cannot be compared any more. */
TEST(tenants_start__does_not_compare_old_accounts)
{
	join(0, 5, 1, 0, LONG);
	join(1, 6, 1, 0, LONG);
	senders[0].by_port = senders[1].by_port = true;
	senders[1].waiting = 0;
	run(1, 2);
	tenants.rounds += UINT64_C(1) << 40;
	tenants.all[senders[0].tenant].round = tenants.rounds;
	tenants.all[senders[0].tenant].sent += (UINT64_C(1) << 63) + (UINT64_C(1) << 50);
	senders[1].waiting = UNLIMITED;
	senders[0].bytes = 0;
	run(1, 2);
	assert_int_equal(senders[1].packets, 2);
	run(1000, 2);
	assert_ratio(senders[1].bytes, senders[0].bytes, 1);
}

/* No credit gets lost or comes from nowhere: what a tenant may take and what it has taken differ by
 * less than a packet at all times. */
TEST(tenants_next__loses_no_credit)
{
	join(0, 5, 1, 0, LONG);
	join(1, 6, 3, 0, 9000);
	run(1, 0);
	for (uint64_t i = 1; i < 5000; i++) {
		run(1, 0);
		assert_true(senders[1].bytes + 9000 >= i * TENANTS_QUANTUM_BYTES);
		assert_true(senders[1].bytes <= (i + 1) * TENANTS_QUANTUM_BYTES + 9000);
		assert_true(senders[0].bytes + LONG >= i * (TENANTS_QUANTUM_BYTES / 3));
		assert_true(senders[0].bytes <=
			    (i + 2) * TENANTS_QUANTUM_BYTES / 3 + LONG + TENANTS_QUANTUM_BYTES);
	}
}

static uint64_t rate_of(uint64_t bytes, uint64_t from_ns)
{
	return (uint64_t)((double)bytes * (double)NS_PER_S / (double)(now_ns - from_ns));
}

/* All rates, with packets for which a byte takes less than a nanosecond. */
TEST(tenants_next__keeps_a_rate)
{
	static const uint64_t rates[] = {TENANTS_RATE_MIN, 3000001, 125000000};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		const uint64_t from_ns = now_ns;

		join(0, 5 + i, 1, rates[i], i == 2 ? SHORT : LONG);
		run(20 * MANY, 0);
		if (i == 2)
			assert_true(senders[0].packets > 1000);
		assert_ratio(rate_of(senders[0].bytes, from_ns), rates[i], 1);
		tenants_leave(&tenants, senders[0].tenant);
	}
}

/* Each packet takes less than a nanosecond. */
TEST(tenants_charge__loses_no_part_of_a_nanosecond)
{
	const struct tenants_take take = {.bytes = SHORT, .cost = SHORT};
	const uint64_t from_ns = now_ns;

	join(0, 5, 1, TENANTS_RATE_MAX, SHORT);
	for (int i = 0; i < 100000; i++)
		tenants_charge(&tenants, senders[0].tenant, &take, now_ns);
	assert_int_equal(tenants.all[senders[0].tenant].paid_ns - from_ns, 100000 * SHORT / 1000);
}

/* A tenant may send at once what it earns in TENANTS_BURST_NS, and not more after a long pause. */
TEST(tenants_next__limits_a_burst)
{
	const uint64_t rate = 100000000;

	join(0, 5, 1, rate, LONG);
	for (int i = 0; i < 3; i++) {
		now_ns += 100 * NS_PER_S;
		senders[0].bytes = 0;
		for (int round = 0; round < 100; round++) {
			run_round(0);
			now_ns -= ROUND_NS;
		}
		assert_true(senders[0].bytes >= rate / 1000 * 4);
		assert_true(senders[0].bytes <= rate / 1000 * 4 + LONG);
	}
}

TEST(tenants_is_held__until_due)
{
	join(0, 5, 1, TENANTS_RATE_MIN, LONG);
	join(1, 6, 1, 0, LONG);
	assert_int_equal(tenants.due_ns, UINT64_MAX);
	assert_false(tenants_is_held(&tenants, senders[0].tenant, now_ns));
	run(1, 0);
	assert_true(tenants_is_held(&tenants, senders[0].tenant, now_ns));
	assert_false(tenants_is_held(&tenants, senders[1].tenant, now_ns));
	run(1, 0);
	assert_in_range(tenants.due_ns, now_ns, now_ns + NS_PER_S);
	assert_true(tenants_is_held(&tenants, senders[0].tenant, tenants.due_ns - 2000));
	assert_false(tenants_is_held(&tenants, senders[0].tenant, tenants.due_ns));
	/* The other one gets all. */
	assert_true(senders[1].bytes >= 2 * (uint64_t)TENANTS_QUANTUM_BYTES);
	senders[0].waiting = 0;
	run(1, 0);
	assert_int_equal(tenants.due_ns, UINT64_MAX);
}

/* A user that ends all its programs and attaches again still owes what it owed. */
TEST(tenants_leave__keeps_what_a_tenant_owes)
{
	join(0, 5, 1, TENANTS_RATE_MIN, LONG);
	run(1, 0);
	tenants_leave(&tenants, senders[0].tenant);
	join(1, 6, 1, 0, LONG);
	tenants_leave(&tenants, senders[1].tenant);
	join(0, 5, 1, TENANTS_RATE_MIN, LONG);
	assert_true(tenants_is_held(&tenants, senders[0].tenant, now_ns));
}

/* Requests come 1,000 times as often as they may. */
TEST(tenants_change__weights_and_rates_of_those_that_are_here)
{
	join(0, 5, 1, 0, LONG);
	join(1, 6, 1, 0, LONG);
	run(MANY / 4, UNLIMITED);
	assert_ratio(senders[0].bytes, senders[1].bytes, 1);
	tenants_change(&tenants, senders[0].tenant, &(struct tenants_limits){.weight = 3});
	senders[0].bytes = senders[1].bytes = 0;
	run(MANY / 4, UNLIMITED);
	assert_ratio(senders[0].bytes, senders[1].bytes, 3);
	tenants_leave(&tenants, senders[1].tenant);
	assert_false(tenants.are_many);
	tenants_change(&tenants, senders[0].tenant,
		       &(struct tenants_limits){.weight = 1, .rate = TENANTS_RATE_MIN});
	assert_true(tenants.are_many);
	tenants_change(&tenants, senders[0].tenant, &(struct tenants_limits){.weight = 1});
	assert_false(tenants.are_many);
}

TEST(tenants_may_connect__limits_requests)
{
	const struct tenants_limits limits = {.weight = 1, .connection_rate = 100};
	const uint16_t tenant = tenants_join(&tenants, 5, &limits, now_ns);
	int allowed = 0;

	for (int i = 0; i < 100000; i++)
		allowed += tenants_may_connect(&tenants, tenant, now_ns + (uint64_t)i * 10000);
	/* The loop takes a second. The tenant may send the requests of a second at once, and then
	 * those that it earns in this second. */
	assert_in_range(allowed, 199, 200);
	allowed = 0;
	now_ns += 100 * NS_PER_S;
	for (int i = 0; i < 1000; i++)
		allowed += tenants_may_connect(&tenants, tenant, now_ns);
	assert_int_equal(allowed, 100);
	join(0, 6, 1, 0, LONG);
	for (int i = 0; i < 1000; i++)
		assert_true(tenants_may_connect(&tenants, senders[0].tenant, now_ns));
}
