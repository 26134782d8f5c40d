/* SPDX-License-Identifier: BSD-3-Clause */
#include "memif/doorbell.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "memif/socket.h"
#include "test.h"

#define MANY 100000 /* more rings than any socket holds */

/* The two clocks run only when a test says so. */
static uint64_t now_ns, worked_ns;
static uint64_t took_ns, took_cpu_ns; /* by each ring */

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
ssize_t __real_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	const uint64_t ns = clock == CLOCK_MONOTONIC ? now_ns : worked_ns;

	if (!TEST_FILE_RUNS())
		return __real_clock_gettime(clock, time);
	time->tv_sec = (time_t)(ns / 1000000000);
	time->tv_nsec = (long)(ns % 1000000000);
	return 0;
}

ssize_t __wrap_send(int fd, const void *data, size_t len, int flags)
{
	now_ns += took_ns;
	worked_ns += took_cpu_ns;
	return __real_send(fd, data, len, flags);
}

static int wake_fd, doorbell_fd; /* the ends of a receiver and of a sender */
static struct memif_doorbell_cost cost;

static int setup(TEST_STATE)
{
	int ends[2];

	took_ns = took_cpu_ns = 1000;
	memset(&cost, 0, sizeof(cost));
	if (memif_doorbell_make(ends) != 0)
		return -1;
	wake_fd = ends[0];
	doorbell_fd = ends[1];
	return 0;
}

static int teardown(TEST_STATE)
{
	close(wake_fd);
	close(doorbell_fd);
	return 0;
}

TEST_FIXTURE(setup, teardown);

static bool is_rung(void)
{
	struct pollfd wake = {.fd = wake_fd, .events = POLLIN};

	return poll(&wake, 1, 0) == 1;
}

TEST(memif_doorbell_make__has_rung_once)
{
	assert_true(is_rung());
	assert_true(memif_doorbell_clear(wake_fd));
	assert_false(is_rung());
}

/* Rings of the two directions have nothing to do with each other. */
TEST(memif_doorbell_ring__rings_in_both_directions)
{
	struct memif_doorbell_cost other_cost = {0};

	assert_true(memif_doorbell_clear(wake_fd));
	/* The other end has been rung once, too. */
	assert_true(memif_doorbell_clear(doorbell_fd));
	assert_false(memif_doorbell_clear(doorbell_fd));
	memif_doorbell_ring(wake_fd, &other_cost);
	assert_false(is_rung());
	memif_doorbell_ring(doorbell_fd, &cost);
	assert_true(is_rung());
	assert_true(memif_doorbell_clear(wake_fd));
	assert_true(memif_doorbell_clear(doorbell_fd));
}

TEST(memif_doorbell_ring__wakes_until_it_is_taken)
{
	assert_true(memif_doorbell_clear(wake_fd));
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k <= i; k++)
			memif_doorbell_ring(doorbell_fd, &cost);
		assert_true(is_rung());
		assert_true(memif_doorbell_clear(wake_fd));
		assert_false(is_rung());
	}
}

/* Rings that found no room are as good as any: those before them have not been taken. One call
 * takes all that an ordinary socket holds, and the next ring has room again. */
TEST(memif_doorbell_ring__never_waits)
{
	const int flags = fcntl(doorbell_fd, F_GETFL);

	assert_int_equal(fcntl(doorbell_fd, F_SETFL, flags & ~O_NONBLOCK), 0);
	for (int i = 0; i < MANY; i++)
		memif_doorbell_ring(doorbell_fd, &cost);
	assert_true(is_rung());
	assert_true(memif_doorbell_clear(wake_fd));
	assert_false(is_rung());
	memif_doorbell_ring(doorbell_fd, &cost);
	assert_true(is_rung());
}

/* The sender can fill it with anything. It is all taken in the end. */
TEST(memif_doorbell_clear__takes_all_in_several_calls)
{
	char bytes[MEMIF_DOORBELL_BYTES] = {0};
	int calls = 0;

	while (send(doorbell_fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	for (; is_rung(); calls++)
		assert_true(memif_doorbell_clear(wake_fd));
	assert_true(calls > 1);
}

TEST(memif_doorbell_ring__does_not_mind_who_has_gone)
{
	close(wake_fd);
	wake_fd = -1;
	for (int i = 0; i < 3; i++)
		memif_doorbell_ring(doorbell_fd, &cost);
}

/* Each of these could stay readable for ever, or brings a descriptor that takes long to close. */
TEST(memif_doorbell_clear__refuses_anything_else)
{
	const int event = eventfd(0, EFD_CLOEXEC);
	int listener;

	assert_true(memif_doorbell_clear(wake_fd));
	assert_false(memif_doorbell_clear(wake_fd)); /* nothing, although it was readable */
	/* Kernels differ in what they do with this. */
	if (send(doorbell_fd, "", 1, MSG_OOB | MSG_DONTWAIT) > 0 && is_rung() &&
	    memif_doorbell_clear(wake_fd))
		assert_false(is_rung());
	assert_int_equal(memif_socket_send_with(doorbell_fd, "", 1, event), 0);
	assert_false(memif_doorbell_clear(wake_fd));
	shutdown(doorbell_fd, SHUT_RDWR);
	assert_false(memif_doorbell_clear(wake_fd));
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(listen(listener, 1), -1); /* it has no name */
	assert_false(memif_doorbell_clear(listener));
	close(listener);
	close(event);
}

/* Ring, and return true if the receiver was rung. */
static bool rings(void)
{
	memif_doorbell_ring(doorbell_fd, &cost);
	return is_rung() && memif_doorbell_clear(wake_fd);
}

/* The receiver may take this CPU at once: that is no CPU time of the sender's. */
TEST(memif_doorbell_ring__rings_who_takes_the_cpu)
{
	assert_true(memif_doorbell_clear(wake_fd));
	took_ns = 5000000;
	for (int i = 0; i < 10; i++)
		assert_true(rings());
	assert_int_equal(cost.rest_until_ns, 0);
}

/* Whoever is expensive to wake is woken for a small part of the time only. */
TEST(memif_doorbell_ring__lets_rest_who_is_expensive)
{
	uint64_t begun_ns, spent_ns = 0;

	assert_true(memif_doorbell_clear(wake_fd));
	took_ns = took_cpu_ns = 1000000;
	assert_true(rings());
	begun_ns = now_ns;
	for (int i = 0; i < 1000; i++) {
		now_ns += 1000000;
		if (rings())
			spent_ns += took_ns;
	}
	assert_in_range(spent_ns, 3 * took_ns, (now_ns - begun_ns) / 200);
	/* From the second usual one on. */
	took_ns = took_cpu_ns = 1000;
	now_ns += UINT64_C(10000000000);
	for (int i = 0; i < 10; i++)
		assert_true(rings());
}
