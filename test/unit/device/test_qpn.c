/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/device/qpn.c. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "device/device.h"
#include "device/limits.h"
#include "test.h"

#define QPNS (1u << 24)

/* The table never looks into a queue pair: addresses of these bytes stand for some. */
static char objects[2];
#define QP(i) ((struct qp *)&objects[i])

static struct device *device;
static uint8_t *seen; /* a byte a number */

static int set_up(TEST_STATE)
{
	const struct device_config config = {.name = "uroce0", .port_mtu_bytes = 1500};

	seen = calloc(QPNS, 1);
	return seen ? device_create(&config, &device) : -1;
}

static int tear_down(TEST_STATE)
{
	device_destroy(device);
	free(seen);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* A number that must be good, and not one of those in use. */
static uint32_t alloc(void)
{
	const int qpn = device_alloc_qpn(device_first(device));

	assert_in_range(qpn, 2, 0xfffffe);
	assert_int_equal(seen[qpn], 0);
	seen[qpn] = 1;
	return (uint32_t)qpn;
}

TEST(device_alloc_qpn__gives_as_many_as_the_device_has)
{
	uint32_t qpn = 0;

	for (uint32_t i = 0; i < DEVICE_MAX_QP; i++)
		qpn = alloc();
	assert_int_equal(device->qps, DEVICE_MAX_QP);
	assert_int_equal(device_alloc_qpn(device_first(device)), -ENOSPC);
	device_free_qpn(device, qpn);
	assert_int_equal(device->qps, DEVICE_MAX_QP - 1);
	alloc();
	assert_int_equal(device_alloc_qpn(device_first(device)), -ENOSPC);
}

TEST(device_alloc_qpn__a_freed_number_rests)
{
	for (uint32_t i = 0; i < DEVICE_MAX_QP * 3; i++)
		device_free_qpn(device, alloc());
	assert_int_equal(device->qps, 0);
}

TEST(device_alloc_qpn__keeps_to_a_range)
{
	struct device_config config = {
		.name = "uroce0", .port_mtu_bytes = 1500, .qpn_first = 0x4000, .qpn_count = 64};
	uint32_t uses[64] = {0};
	struct device *ranged;

	assert_int_equal(device_create(&config, &ranged), 0);
	for (int i = 0; i < 6400; i++) {
		const int qpn = device_alloc_qpn(device_first(ranged));

		assert_in_range(qpn, 0x4000, 0x403f);
		uses[qpn - 0x4000]++;
		device_free_qpn(ranged, (uint32_t)qpn);
	}
	for (int i = 0; i < 64; i++)
		assert_int_equal(uses[i], 100);
	for (int i = 0; i < 32; i++)
		assert_true(device_alloc_qpn(device_first(ranged)) > 0);
	assert_int_equal(device_alloc_qpn(device_first(ranged)), -ENOSPC);
	device_destroy(ranged);
}

static void count_qp(struct qp *qp, void *arg)
{
	struct qp **found = arg;

	while (*found)
		found++;
	*found = qp;
}

TEST(device_each_qp__finds_those_that_are_there)
{
	struct qp *const first = (struct qp *)&seen[0], *const second = (struct qp *)&seen[1];
	struct qp *found[4] = {NULL};
	const uint32_t numbers[] = {alloc(), alloc(), alloc()};

	device_set_qp(device, numbers[0], first);
	device_set_qp(device, numbers[2], second);
	device_each_qp(device, count_qp, found);
	assert_ptr_equal(found[2], NULL);
	assert_true((found[0] == first && found[1] == second) ||
		    (found[0] == second && found[1] == first));
}

TEST(device_alloc_qpn__the_management_numbers_are_never_given)
{
	/* The window at the start of the number space, and the one at its end. */
	device->qpn_next = 0;
	assert_int_equal(alloc(), 2);
	device->qpn_next = 0xfffffd;
	assert_int_equal(alloc(), 0xfffffd);
	assert_int_equal(alloc(), 0xfffffe);
	assert_int_not_equal(alloc(), 0xffffff);
}

TEST(device_alloc_qpn__the_first_number_is_random)
{
	const struct device_config config = {.name = "uroce0", .port_mtu_bytes = 1500};
	uint32_t ones = 0, zeros = 0;

	for (int i = 0; i < 64; i++) {
		struct device *other;
		int qpn;

		assert_int_equal(device_create(&config, &other), 0);
		qpn = device_alloc_qpn(device_first(other));
		assert_true(qpn > 0);
		ones |= (uint32_t)qpn;
		zeros |= ~(uint32_t)qpn;
		device_destroy(other);
	}
	assert_int_equal(ones, 0xffffff);
	assert_int_equal(zeros & 0xffffff, 0xffffff);
}

TEST(device_find_qp__finds_what_was_set)
{
	const uint32_t a = alloc(), b = alloc();

	assert_null(device_find_qp(device, a)); /* given, and no queue pair yet */
	device_set_qp(device, a, QP(0));
	device_set_qp(device, b, QP(1));
	assert_ptr_equal(device_find_qp(device, a), QP(0));
	assert_ptr_equal(device_find_qp(device, b), QP(1));
	device_set_qp(device, a, NULL);
	assert_null(device_find_qp(device, a));
	/* The number stays taken until device_free_qpn. */
	assert_int_equal(device->qps, 2);
	device_free_qpn(device, a);
	device_free_qpn(device, a);
	assert_int_equal(device->qps, 1);
	assert_null(device_find_qp(device, a));
	assert_ptr_equal(device_find_qp(device, b), QP(1));
}

TEST(device_find_qp__numbers_that_nobody_has)
{
	const uint32_t qpn = alloc();

	device_set_qp(device, qpn, QP(0));
	assert_null(device_find_qp(device, 0));
	assert_null(device_find_qp(device, 1));
	assert_null(device_find_qp(device, 0xffffff));
	assert_null(device_find_qp(device, qpn ^ 0x800000)); /* a page that is not made */
	assert_null(device_find_qp(device, qpn + (1u << 24)));
	assert_null(device_find_qp(device, UINT32_MAX));
}

#define THREADS 3
#define ROUNDS	20000

static void *churn(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		const int qpn = device_alloc_qpn(device_first(device));

		/* A mark on our number shows that another thread has it too. */
		if (qpn < 2 || __atomic_fetch_add(&seen[qpn], 1, __ATOMIC_RELAXED) != 0)
			return "shared";
		device_set_qp(device, (uint32_t)qpn, QP(0));
		if (device_find_qp(device, (uint32_t)qpn) != QP(0))
			return "lost";
		__atomic_fetch_sub(&seen[qpn], 1, __ATOMIC_RELAXED);
		device_free_qpn(device, (uint32_t)qpn);
	}
	return NULL;
}

TEST(device_alloc_qpn__threads_do_not_share_a_number)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		void *wrong;

		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
	assert_int_equal(device->qps, 0);
}

#define ENGINES 4

/* Create a device of several engines, whose numbers are these (0, 0: all). */
static struct device *create_engines(uint32_t qpn_first, uint32_t qpn_count)
{
	const struct device_config config = {.name = "uroce0",
					     .port_mtu_bytes = 1500,
					     .engines = ENGINES,
					     .qpn_first = qpn_first,
					     .qpn_count = qpn_count};
	struct device *created;

	assert_int_equal(device_create(&config, &created), 0);
	assert_int_equal(created->engine_count, ENGINES);
	return created;
}

/* Allocate a number of an engine. It must name the engine, and nobody else may have it. */
static uint32_t alloc_of(struct device *of, uint32_t number)
{
	const int qpn = device_alloc_qpn(of->engines[number]);

	assert_in_range(qpn, 2, 0xfffffe);
	assert_int_equal(device_engine_of_qpn(of, (uint32_t)qpn), number);
	assert_int_equal(seen[qpn], 0);
	seen[qpn] = 1;
	return (uint32_t)qpn;
}

TEST(device_alloc_qpn__numbers_name_their_engine)
{
	struct device *several = create_engines(0, 0);

	for (uint32_t i = 0; i < 10000; i++)
		alloc_of(several, i * 7 / 5 % ENGINES);
	assert_int_equal(several->qps, 10000);
	device_destroy(several);
}

TEST(device_alloc_qpn__one_engine_may_have_all_queue_pairs)
{
	struct device *several = create_engines(0, 0);

	for (uint32_t i = 0; i < DEVICE_MAX_QP; i++)
		alloc_of(several, ENGINES - 1);
	for (uint32_t i = 0; i < ENGINES; i++)
		assert_int_equal(device_alloc_qpn(several->engines[i]), -ENOSPC);
	device_destroy(several);
}

TEST(device_alloc_qpn__a_freed_number_of_an_engine_rests)
{
	struct device *several = create_engines(0, 0);

	for (uint32_t i = 0; i < DEVICE_MAX_QP * 3; i++)
		device_free_qpn(several, alloc_of(several, 2));
	assert_int_equal(several->qps, 0);
	device_destroy(several);
}

TEST(device_alloc_qpn__engines_divide_a_range)
{
	struct device *several = create_engines(0x4001, 64);
	uint32_t uses[64] = {0};

	for (uint32_t i = 0; i < 6400; i++) {
		const uint32_t number = i % ENGINES;
		const int qpn = device_alloc_qpn(several->engines[number]);

		assert_in_range(qpn, 0x4001, 0x4040);
		assert_int_equal(device_engine_of_qpn(several, (uint32_t)qpn), number);
		uses[qpn - 0x4001]++;
		device_free_qpn(several, (uint32_t)qpn);
	}
	/* Each engine has gone round all of its numbers equally often. */
	for (int i = 0; i < 64; i++)
		assert_int_equal(uses[i], 100);
	for (uint32_t i = 0; i < 64 / ENGINES; i++)
		alloc_of(several, 0);
	assert_int_equal(device_alloc_qpn(several->engines[0]), -ENOSPC);
	device_destroy(several);
}

TEST(device_alloc_qpn_near__is_of_the_engine_while_half_of_its_numbers_are_free)
{
	struct device *several = create_engines(0x4001, 64);
	uint32_t of[ENGINES] = {0};

	for (uint32_t i = 0; i < 64 / 2; i++) {
		const int qpn = device_alloc_qpn_near(several->engines[2]);

		assert_in_range(qpn, 0x4001, 0x4040);
		of[device_engine_of_qpn(several, (uint32_t)qpn)]++;
		if (i < 64 / ENGINES / 2)
			assert_int_equal(of[2], i + 1);
	}
	assert_int_equal(device_alloc_qpn_near(several->engines[2]), -ENOSPC);
	/* The others are the next numbers in turn, and so of each engine. */
	for (uint32_t i = 0; i < ENGINES; i++)
		assert_int_equal(of[i], 64 / 2 * 3 / 4 / ENGINES + (i == 2 ? 64 / ENGINES / 2 : 0));
	device_destroy(several);
}

TEST(device_alloc_qpn_near__without_a_range_is_always_of_the_engine)
{
	struct device *several = create_engines(0, 0);

	for (uint32_t i = 0; i < DEVICE_MAX_QP; i++) {
		const int qpn = device_alloc_qpn_near(several->engines[1]);

		assert_true(qpn > 0);
		assert_int_equal(device_engine_of_qpn(several, (uint32_t)qpn), 1);
	}
	assert_int_equal(device_alloc_qpn_near(several->engines[1]), -ENOSPC);
	device_destroy(several);
}

/* Create and destroy queue pairs, and then as many as there may be. All are of one engine. No
 * number is given twice in turn, and all are given. */
static void use_up(struct device *of, struct device_engine *engine, uint32_t limit)
{
	uint32_t qpns[16], before = 0;

	assert_int_equal(of->qp_max, limit);
	for (uint32_t i = 0; i < 4 * limit; i++) {
		const int qpn = device_alloc_qpn_near(engine);

		assert_in_range(qpn, of->config.qpn_first, of->config.qpn_first + 2 * limit - 1);
		assert_int_not_equal(qpn, before);
		before = (uint32_t)qpn;
		device_free_qpn(of, before);
	}
	for (uint32_t i = 0; i < limit; i++) {
		const int qpn = device_alloc_qpn_near(engine);

		assert_true(qpn > 0);
		qpns[i] = (uint32_t)qpn;
	}
	assert_int_equal(device_alloc_qpn_near(engine), -ENOSPC);
	/* One that is destroyed makes room for one more, and does not give its number to it. */
	for (uint32_t i = 0; i < limit; i++) {
		int qpn;

		device_free_qpn(of, qpns[i]);
		qpn = device_alloc_qpn_near(engine);
		assert_true(qpn > 0);
		assert_int_not_equal(qpn, qpns[i]);
		qpns[i] = (uint32_t)qpn;
	}
	for (uint32_t i = 0; i < limit; i++)
		device_free_qpn(of, qpns[i]);
	assert_int_equal(of->qps, 0);
	for (uint32_t i = 0; i < of->engine_count; i++)
		assert_int_equal(of->engines[i]->qps, 0);
}

/* As an uroced limits a program: it gives twice as many numbers as queue pairs. */
TEST(device_alloc_qpn_near__each_engine_has_the_whole_limit)
{
	for (uint32_t engines = 1; engines <= DEVICE_ENGINES_MAX; engines++) {
		for (uint32_t limit = 1; limit < 16; limit++) {
			const struct device_config config = {.name = "uroce0",
							     .port_mtu_bytes = 1500,
							     .engines = engines,
							     .qpn_first = 0x4000,
							     .qpn_count = 2 * limit,
							     .qp_limit = limit};
			struct device *several;

			assert_int_equal(device_create(&config, &several), 0);
			for (uint32_t i = 0; i < engines; i++)
				use_up(several, several->engines[i], limit);
			device_destroy(several);
		}
	}
}

/* The window at the end of the number space, and the one at its start. */
TEST(device_alloc_qpn__engines_go_round_at_the_ends)
{
	struct device *several = create_engines(0, 0);

	several->qpn_next = 0xfffffc;
	assert_int_equal(alloc_of(several, 0), 0xfffffc);
	assert_int_equal(alloc_of(several, 2), 0xfffffe);
	/* The next number of the last engine would be the multicast one. */
	assert_true(alloc_of(several, 3) < 0xfffffc);
	several->qpn_next = 0;
	assert_int_equal(alloc_of(several, 2), 2);
	assert_int_equal(alloc_of(several, 3), 3);
	assert_int_equal(alloc_of(several, 0), 4);
	assert_int_equal(alloc_of(several, 1), 5);
	device_destroy(several);
}

TEST(device_engine_of_qpn__the_first_engine_has_the_management_queue_pairs)
{
	struct device *several = create_engines(0, 0);

	assert_int_equal(device_engine_of_qpn(several, 0), 0);
	assert_int_equal(device_engine_of_qpn(several, 1), 0);
	for (uint32_t qpn = 2; qpn < QPNS; qpn += 997)
		assert_true(device_engine_of_qpn(several, qpn) < ENGINES);
	device_destroy(several);
	/* One engine has all. */
	for (uint32_t qpn = 0; qpn < QPNS; qpn += 997)
		assert_int_equal(device_engine_of_qpn(device, qpn), 0);
}

static void *churn_engine(void *arg)
{
	struct device_engine *engine = arg;

	for (int i = 0; i < ROUNDS; i++) {
		const int qpn = device_alloc_qpn(engine);

		if (qpn < 2 || __atomic_fetch_add(&seen[qpn], 1, __ATOMIC_RELAXED) != 0)
			return "shared";
		if (device_engine_of_qpn(engine->device, (uint32_t)qpn) != engine->number)
			return "another engine's";
		__atomic_fetch_sub(&seen[qpn], 1, __ATOMIC_RELAXED);
		device_free_qpn(engine->device, (uint32_t)qpn);
	}
	return NULL;
}

/* In a small range, where the engines meet at each page. */
TEST(device_alloc_qpn__threads_of_several_engines)
{
	struct device *several = create_engines(0x4ff0, 64);
	pthread_t threads[ENGINES];

	for (int i = 0; i < ENGINES; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, churn_engine, several->engines[i]), 0);
	for (int i = 0; i < ENGINES; i++) {
		void *wrong;

		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
	assert_int_equal(several->qps, 0);
	device_destroy(several);
}
