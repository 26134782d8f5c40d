/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/device/registry.c. What is started stays so: each test has its own process. */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/registry.h"
#include "test.h"

#define THREADS 4

/* The registry never looks into a device: addresses of these bytes stand for some. */
static char objects[2];
static int starts;

static int start_two(struct device **devices, size_t max)
{
	starts++;
	if (max < 2)
		return -ENOSPC;
	devices[0] = (struct device *)&objects[0];
	devices[1] = (struct device *)&objects[1];
	return 2;
}

static int start_fails(struct device **devices, size_t max)
{
	(void)devices;
	(void)max;
	starts++;
	return -ENODEV;
}

static const struct device_provider two = {.start = start_two};
static const struct device_provider failing = {.start = start_fails};

/* Run in a child; its exit code is the number of the first check that failed, or 0. */
static void assert_passes_in_child(int (*checks)(void))
{
	const pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(checks());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int without_provider(void)
{
	struct device *const *devices;

	if (registry_devices(&devices) != 0)
		return 1;
	/* A provider that is set later is still started. */
	registry_set_provider(&two);
	return registry_devices(&devices) == 2 ? 0 : 2;
}

static int with_two(void)
{
	struct device *const *first, *const *second;

	registry_set_provider(&two);
	if (starts != 0)
		return 1;
	if (registry_devices(&first) != 2 || registry_devices(&second) != 2)
		return 2;
	if (starts != 1)
		return 3;
	return first == second && first[0] == (struct device *)&objects[0] &&
			       first[1] == (struct device *)&objects[1]
		       ? 0
		       : 4;
}

static int with_failure(void)
{
	struct device *const *devices;

	registry_set_provider(&failing);
	if (registry_devices(&devices) != -ENODEV || registry_devices(&devices) != -ENODEV)
		return 1;
	return starts == 1 ? 0 : 2;
}

static int nested = -1;

/* The provider starts something that asks for devices, as drivers of DPDK do. */
static int start_asks(struct device **devices, size_t max)
{
	struct device *const *list;

	nested = registry_devices(&list);
	return start_two(devices, max);
}

static const struct device_provider asking = {.start = start_asks};

static int from_its_own_start(void)
{
	struct device *const *devices;

	registry_set_provider(&asking);
	alarm(60);
	if (registry_devices(&devices) != 2)
		return 1;
	return nested == 0 && starts == 1 ? 0 : 2;
}

/* A program that attaches its ports one by one, and corrects its settings. */
static int after_add(void)
{
	struct device *const *devices;

	registry_set_provider(&failing);
	if (registry_add() != -ENODEV)
		return 1;
	registry_set_provider(&two);
	if (registry_add() != 2 || registry_add() != 2 || starts != 3)
		return 2;
	if (registry_devices(&devices) != 4 || starts != 3)
		return 3;
	return devices[3] == (struct device *)&objects[1] && registry_add() == -EBUSY ? 0 : 4;
}

static int add_until_full(void)
{
	struct device *const *devices;
	int count = 0, rc;

	registry_set_provider(&two);
	while ((rc = registry_add()) > 0)
		count += rc;
	return rc == -ENOSPC && registry_devices(&devices) == count ? 0 : 1;
}

static void *ask(void *arg)
{
	struct device *const *devices;

	*(int *)arg = registry_devices(&devices);
	return NULL;
}

static int from_threads(void)
{
	pthread_t threads[THREADS];
	int counts[THREADS];

	registry_set_provider(&two);
	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, ask, &counts[i]) != 0)
			return 1;
	}
	for (int i = 0; i < THREADS; i++) {
		if (pthread_join(threads[i], NULL) != 0 || counts[i] != 2)
			return 2;
	}
	return starts == 1 ? 0 : 3;
}

TEST(registry_devices__is_empty_without_a_provider)
{
	assert_passes_in_child(without_provider);
}

TEST(registry_devices__starts_on_first_need_and_once)
{
	assert_passes_in_child(with_two);
}

TEST(registry_devices__a_failure_is_not_tried_again)
{
	assert_passes_in_child(with_failure);
}

TEST(registry_devices__threads_start_it_once)
{
	assert_passes_in_child(from_threads);
}

TEST(registry_devices__has_none_in_its_own_start)
{
	assert_passes_in_child(from_its_own_start);
}

TEST(registry_add__starts_further_devices_before_the_first_need)
{
	assert_passes_in_child(after_add);
}

TEST(registry_add__starts_no_more_than_have_room)
{
	assert_passes_in_child(add_until_full);
}
