/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/queue/channel.c. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "queue/channel.h"
#include "test.h"

static struct channel channel;

static int set_up(TEST_STATE)
{
	return channel_init(&channel);
}

static int tear_down(TEST_STATE)
{
	channel_fini(&channel);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static bool readable(void)
{
	struct pollfd pollfd = {.fd = channel.fd, .events = POLLIN};

	return poll(&pollfd, 1, 0) == 1;
}

static void set_nonblocking(void)
{
	assert_int_equal(fcntl(channel.fd, F_SETFL, fcntl(channel.fd, F_GETFL) | O_NONBLOCK), 0);
}

/* The next event is of `source`. */
static void assert_next(const struct channel_source *source)
{
	void *object = NULL;
	int code = 0;

	assert_int_equal(channel_read(&channel, &object, &code), 0);
	assert_ptr_equal(object, source->object);
	assert_int_equal(code, source->code);
}

TEST(channel_init__the_descriptor_blocks_and_does_not_survive_exec)
{
	assert_int_equal(fcntl(channel.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(channel.fd, F_GETFL) & O_NONBLOCK, 0);
	assert_false(readable());
}

/* As Linux's descriptors of events are. A program that waits for both would spin. */
TEST(channel_init__the_descriptor_is_never_writable)
{
	struct pollfd pollfd = {.fd = channel.fd, .events = POLLIN | POLLOUT};
	struct channel_source source = {.object = &pollfd};

	assert_int_equal(poll(&pollfd, 1, 0), 0);
	channel_raise(&channel, &source);
	assert_int_equal(poll(&pollfd, 1, 0), 1);
	assert_int_equal(pollfd.revents, POLLIN);
	assert_next(&source);
}

static volatile sig_atomic_t signals;

static void count_signal(int signal)
{
	(void)signal;
	signals++;
}

static void handle(int signal, void (*handler)(int), struct sigaction *old)
{
	const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

	assert_int_equal(sigaction(signal, &action, old), 0);
}

/* Each event signals, also while others are pending. */
TEST(channel_raise__signals_a_program_that_asks_for_it)
{
	struct channel_source source = {.object = &source};
	struct sigaction old;

	signals = 0;
	handle(SIGIO, count_signal, &old);
	channel_raise(&channel, &source);
	assert_int_equal(signals, 0);
	assert_int_equal(fcntl(channel.fd, F_SETOWN, getpid()), 0);
	assert_int_equal(fcntl(channel.fd, F_SETFL, O_ASYNC | O_NONBLOCK), 0);
	for (int i = 1; i <= 3; i++) {
		channel_raise(&channel, &source);
		assert_int_equal(signals, i);
	}
	assert_int_equal(sigaction(SIGIO, &old, NULL), 0);
	assert_int_equal(channel_forget(&channel, &source), 4);
}

/* A program closes only this descriptor, which is not its own. */
TEST(channel_raise__after_the_descriptor_was_closed)
{
	struct channel_source source = {.object = &source};
	struct sigaction old;
	void *object;
	int code;

	signals = 0;
	handle(SIGPIPE, count_signal, &old);
	close(channel.fd);
	channel_raise(&channel, &source);
	channel_raise(&channel, &source);
	assert_int_equal(signals, 0);
	assert_next(&source);
	assert_int_equal(channel_forget(&channel, &source), 1);
	assert_int_equal(channel_read(&channel, &object, &code), -EBADF);
	assert_int_equal(sigaction(SIGPIPE, &old, NULL), 0);
}

/* More events than a pipe has room for. */
TEST(channel_read__of_very_many_events)
{
	const unsigned int count = 70000;
	struct channel_source source = {.object = &source};

	for (unsigned int i = 0; i < count; i++)
		channel_raise(&channel, &source);
	for (unsigned int i = 0; i < count; i++) {
		assert_true(readable());
		assert_next(&source);
	}
	assert_false(readable());
	assert_int_equal(channel.units, 0);
}

TEST(channel_raise__the_descriptor_is_readable_until_all_is_read)
{
	int a_object, b_object;
	struct channel_source a = {.object = &a_object, .code = 1};
	struct channel_source b = {.object = &b_object, .code = 2};

	channel_raise(&channel, &a);
	channel_raise(&channel, &b);
	assert_true(readable());
	assert_next(&a);
	assert_true(readable());
	assert_next(&b);
	assert_false(readable());
	assert_int_equal(a.taken, 1);
	assert_int_equal(b.taken, 1);
}

TEST(channel_read__sources_take_turns)
{
	int a_object, b_object, c_object;
	struct channel_source a = {.object = &a_object};
	struct channel_source b = {.object = &b_object};
	struct channel_source c = {.object = &c_object};

	channel_raise(&channel, &a);
	channel_raise(&channel, &b);
	channel_raise(&channel, &a);
	channel_raise(&channel, &c);
	channel_raise(&channel, &a);
	assert_int_equal(a.pending, 3);
	assert_next(&a);
	assert_next(&b);
	assert_next(&c);
	assert_next(&a);
	assert_next(&a);
	assert_int_equal(a.pending, 0);
	assert_false(readable());
}

/* The next event is of this kind. */
static void assert_next_kind(const struct channel_several *several, uint32_t kind)
{
	void *object = NULL;
	int code = 0;

	assert_int_equal(channel_read(&channel, &object, &code), 0);
	assert_ptr_equal(object, several->source.object);
	assert_int_equal(code, CHANNEL_SEVERAL + kind);
}

TEST(channel_raise_kind__kinds_and_sources_take_turns)
{
	int object, other_object;
	struct channel_several several = {.source = {.object = &object, .code = CHANNEL_SEVERAL}};
	struct channel_source other = {.object = &other_object, .code = 1};

	channel_raise_kind(&channel, &several, 5);
	channel_raise_kind(&channel, &several, 0);
	channel_raise(&channel, &other);
	channel_raise_kind(&channel, &several, 5);
	channel_raise_kind(&channel, &several, 3);
	assert_int_equal(several.source.pending, 4);
	assert_next_kind(&several, 5);
	assert_next(&other);
	assert_next_kind(&several, 0);
	assert_next_kind(&several, 3);
	assert_true(readable());
	assert_next_kind(&several, 5);
	assert_false(readable());
	assert_int_equal(several.source.taken, 4);
	assert_int_equal(several.source.pending, 0);
}

TEST(channel_raise_kind__keeps_the_order_of_all_kinds)
{
	int object;
	struct channel_several several = {.source = {.object = &object, .code = CHANNEL_SEVERAL}};

	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < CHANNEL_KINDS; i++)
			channel_raise_kind(&channel, &several, CHANNEL_KINDS - 1 - i);
	}
	for (uint32_t i = 0; i < 3 * CHANNEL_KINDS; i++)
		assert_next_kind(&several, CHANNEL_KINDS - 1 - i % CHANNEL_KINDS);
	assert_false(readable());
}

TEST(channel_raise_kind__one_kind_that_nobody_reads_hides_no_other)
{
	int object;
	struct channel_several several = {.source = {.object = &object, .code = CHANNEL_SEVERAL}};

	for (uint32_t i = 0; i <= UINT16_MAX; i++)
		channel_raise_kind(&channel, &several, 1);
	channel_raise_kind(&channel, &several, 4);
	assert_int_equal(several.source.pending, UINT16_MAX + 1);
	assert_next_kind(&several, 1);
	assert_next_kind(&several, 4);
	assert_int_equal(channel_forget(&channel, &several.source), UINT16_MAX - 1);
	assert_int_equal(channel.owed, 0);
	assert_false(readable());
	/* The source can be used again. */
	channel_raise_kind(&channel, &several, 2);
	assert_next_kind(&several, 2);
	assert_false(readable());
}

TEST(channel_read__an_empty_non_blocking_channel_is_eagain)
{
	void *object;
	int code;

	set_nonblocking();
	assert_int_equal(channel_read(&channel, &object, &code), -EAGAIN);
}

static void ignore(int signal)
{
	(void)signal;
}

struct blocked {
	int rc;
	bool done; /* atomic */
};

static void *read_one(void *arg)
{
	struct blocked *blocked = arg;
	void *object;
	int code;

	blocked->rc = channel_read(&channel, &object, &code);
	__atomic_store_n(&blocked->done, true, __ATOMIC_RELEASE);
	return NULL;
}

TEST(channel_read__a_signal_ends_the_wait)
{
	const struct sigaction action = {.sa_handler = ignore}; /* without SA_RESTART */
	struct blocked blocked = {0};
	struct sigaction old;
	pthread_t thread;

	assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
	assert_int_equal(pthread_create(&thread, NULL, read_one, &blocked), 0);
	/* A signal that comes before the thread sleeps does nothing: send more. */
	while (!__atomic_load_n(&blocked.done, __ATOMIC_ACQUIRE)) {
		pthread_kill(thread, SIGUSR1);
		usleep(1000);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(blocked.rc, -EINTR);
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
}

TEST(channel_forget__the_count_follows)
{
	int a_object, b_object;
	struct channel_source a = {.object = &a_object};
	struct channel_source b = {.object = &b_object};

	assert_int_equal(channel_forget(&channel, &a), 0);
	channel_raise(&channel, &a);
	channel_raise(&channel, &b);
	channel_raise(&channel, &a);
	assert_int_equal(channel_forget(&channel, &a), 2);
	assert_int_equal(channel_forget(&channel, &a), 0);
	assert_next(&b);
	assert_false(readable());
	/* A source can be used again. */
	channel_raise(&channel, &a);
	assert_next(&a);
	assert_false(readable());
}

TEST(channel_forget__leaves_the_descriptors_flags_alone)
{
	int object;
	struct channel_source source = {.object = &object};
	const int flags = fcntl(channel.fd, F_GETFL);

	channel_raise(&channel, &source);
	assert_int_equal(channel_forget(&channel, &source), 1);
	assert_int_equal(fcntl(channel.fd, F_GETFL), flags);
}

/* Stand between the two steps of a reader: it has a unit, and not yet the lock. */
TEST(channel_forget__a_unit_that_a_reader_holds_is_owed)
{
	int a_object, b_object;
	struct channel_source a = {.object = &a_object};
	struct channel_source b = {.object = &b_object};
	uint8_t unit;

	channel_raise(&channel, &a);
	assert_int_equal(read(channel.fd, &unit, sizeof(unit)), (ssize_t)sizeof(unit));
	assert_int_equal(channel_forget(&channel, &a), 1);
	assert_int_equal(channel.owed, 1);
	channel_raise(&channel, &b);
	/* The reader would come back for another unit now, and with it find b: played by putting
	 * its unit back. */
	assert_int_equal(write(channel.doorbell_fd, &unit, sizeof(unit)), (ssize_t)sizeof(unit));
	assert_next(&b);
	assert_int_equal(channel.owed, 0);
	assert_false(readable());
}

#define STRESS_SOURCES 4
#define STRESS_RAISES  20000
#define STRESS_READERS 2
#define STRESS_RAISERS 2

static struct {
	struct channel_source sources[STRESS_SOURCES];
	struct channel_source stop;
	uint32_t read; /* atomic */
	uint32_t forgotten;
	uint32_t failures; /* atomic */
	uint32_t raisers;  /* atomic; still at work */
} stress;

static void *raise_many(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < STRESS_RAISES; i++)
		channel_raise(&channel, &stress.sources[i % STRESS_SOURCES]);
	__atomic_fetch_sub(&stress.raisers, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *read_many(void *arg)
{
	void *object;
	int code;

	(void)arg;
	while (channel_read(&channel, &object, &code) == 0) {
		if (object == &stress)
			return NULL;
		__atomic_fetch_add(&stress.read, 1, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&stress.failures, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void *forget_many(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; __atomic_load_n(&stress.raisers, __ATOMIC_ACQUIRE) > 0; i++) {
		stress.forgotten += channel_forget(&channel, &stress.sources[i % STRESS_SOURCES]);
		sched_yield();
	}
	return NULL;
}

TEST(channel_forget__no_event_is_lost_or_made_up_under_stress)
{
	pthread_t raisers[STRESS_RAISERS], readers[STRESS_READERS], forgetter;
	void *object;
	int code;

	for (size_t i = 0; i < STRESS_SOURCES; i++)
		stress.sources[i].object = &stress.sources[i];
	stress.stop.object = &stress;
	stress.raisers = STRESS_RAISERS;
	for (size_t i = 0; i < STRESS_READERS; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_many, NULL), 0);
	for (size_t i = 0; i < STRESS_RAISERS; i++)
		assert_int_equal(pthread_create(&raisers[i], NULL, raise_many, NULL), 0);
	assert_int_equal(pthread_create(&forgetter, NULL, forget_many, NULL), 0);
	for (size_t i = 0; i < STRESS_RAISERS; i++)
		assert_int_equal(pthread_join(raisers[i], NULL), 0);
	assert_int_equal(pthread_join(forgetter, NULL), 0);
	for (size_t i = 0; i < STRESS_READERS; i++)
		channel_raise(&channel, &stress.stop);
	for (size_t i = 0; i < STRESS_READERS; i++)
		assert_int_equal(pthread_join(readers[i], NULL), 0);
	/* A reader may have stopped before the other sources were drained. */
	set_nonblocking();
	while (channel_read(&channel, &object, &code) == 0)
		stress.read++;
	assert_int_equal(stress.failures, 0);
	assert_int_equal(stress.read + stress.forgotten, STRESS_RAISERS * STRESS_RAISES);
	assert_int_equal(channel.owed, 0);
	assert_true(TAILQ_EMPTY(&channel.ready));
	assert_false(readable());
}

/* Reuse the number of a descriptor, as a program does that closes all and opens its own. Return the
 * other end. */
static int take_number(int fd)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(dup2(ends[0], fd), fd);
	close(ends[0]);
	return ends[1];
}

TEST(channel__a_descriptor_of_the_programs_is_left_alone)
{
	struct channel_source before = {.object = &before, .code = 1}, after = before;
	char bytes[16];
	void *object;
	int code, other;

	after.object = &after;
	channel_raise(&channel, &before);
	other = take_number(channel.fd);
	assert_int_equal(write(other, "hello", 5), 5);
	channel_raise(&channel, &after);
	assert_next(&before);
	assert_next(&after);
	assert_int_equal(channel_read(&channel, &object, &code), -EBADF);
	channel_raise(&channel, &after);
	assert_int_equal(channel_forget(&channel, &after), 1);
	channel_fini(&channel);
	assert_int_equal(recv(other, bytes, sizeof(bytes), MSG_DONTWAIT), -1);
	assert_int_equal(recv(channel.fd, bytes, sizeof(bytes), MSG_DONTWAIT), 5);
	close(channel.fd);
	close(other);
	assert_int_equal(channel_init(&channel), 0);
}

struct sleeper {
	struct channel channel;
	pid_t tid; /* atomic; 0: has not begun */
	bool returned;
};

static void *sleep_in_read(void *arg)
{
	struct sleeper *sleeper = arg;
	void *object;
	int code;

	__atomic_store_n(&sleeper->tid, gettid(), __ATOMIC_RELEASE);
	channel_read(&sleeper->channel, &object, &code);
	sleeper->returned = true;
	return NULL;
}

/* Wait until a thread is blocked in a system call other than `other`. Return its number, -1 if the
 * thread has ended. */
static long blocked_in(pid_t tid, long other)
{
	char path[64], text[32];
	long number = other;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
	while (number == other || number < 0) {
		FILE *file = fopen(path, "r");

		if (!file)
			return -1;
		/* It has "running", or the number and its arguments. */
		if (fgets(text, sizeof(text), file) && sscanf(text, "%ld", &number) != 1)
			number = other;
		fclose(file);
		sched_yield();
	}
	return number;
}

/* rping destroys its channel while its thread waits for an event. */
TEST(channel_read__does_not_return_when_the_channel_ends, .bare = true)
{
	struct sleeper sleeper = {0};
	pthread_t thread;
	void *result;
	pid_t tid;

	assert_int_equal(channel_init(&sleeper.channel), 0);
	assert_int_equal(pthread_create(&thread, NULL, sleep_in_read, &sleeper), 0);
	while ((tid = __atomic_load_n(&sleeper.tid, __ATOMIC_ACQUIRE)) == 0)
		sched_yield();
	assert_int_equal(blocked_in(tid, -1), SYS_read);
	channel_fini(&sleeper.channel);
	assert_int_not_equal(blocked_in(tid, SYS_read), -1);
	assert_false(sleeper.returned);
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
}
