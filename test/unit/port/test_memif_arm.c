/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that no packet of an owner is missed by an isolated program's port that falls asleep: arm
 * of pmd/port/memif_port.c, through every interleaving with the owner's steps, and between two
 * threads. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "memif/socket.h"
#include "memif_ends.h"
#include "memif_port.h"
#include "port/memif_caller.h"
#include "test.h"

#define ROUNDS	   20
#define PACKETS	   20000
#define TIMEOUT_MS 20000
#define LEN	   64

/* An owner's steps to send a packet. */
enum step { STEP_PUBLISH, STEP_ASK, STEP_RING, STEPS };

/* The moments of arm at which the owner may make a step: before each of its calls that access what
 * both have, and after the last. */
#define MOMENTS 5

static struct port port;
static struct memif_port *memif;
static struct memif_server owner;
static struct memif_doorbell_cost cost;
static int owner_fd;

static bool interleaves;
static uint32_t moments[STEPS]; /* when the owner makes each step */
static uint32_t moment;
static enum step next_step;
static bool asleep; /* what the owner has found */

static void owner_step(enum step step)
{
	static const uint8_t packet[LEN];

	switch (step) {
	case STEP_PUBLISH:
		assert_int_equal(memif_end_send(&owner.end, packet, sizeof(packet)), 0);
		memif_end_publish(&owner.end);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		break;
	case STEP_ASK:
		asleep = memif_end_is_asleep(&owner.end);
		break;
	default:
		/* On a busy machine a ring may seem expensive, and the next ones are left out. Here
		 * nobody looks without a ring. */
		cost = (struct memif_doorbell_cost){0};
		if (asleep)
			memif_doorbell_ring(owner.end.doorbell_fd, &cost);
	}
}

static void pass_moment(void)
{
	while (interleaves && next_step < STEPS && moments[next_step] <= moment)
		owner_step(next_step++);
	moment++;
}

int __real_epoll_wait(int fd, struct epoll_event *events, int max, int ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int ms);
bool __real_memif_doorbell_clear(int fd);
bool __wrap_memif_doorbell_clear(int fd);
void __real_memif_end_listen(struct memif_end *end, bool on);
void __wrap_memif_end_listen(struct memif_end *end, bool on);
bool __real_memif_end_waits(const struct memif_end *end);
bool __wrap_memif_end_waits(const struct memif_end *end);

int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int ms)
{
	pass_moment();
	return __real_epoll_wait(fd, events, max, ms);
}

bool __wrap_memif_doorbell_clear(int fd)
{
	pass_moment();
	return __real_memif_doorbell_clear(fd);
}

void __wrap_memif_end_listen(struct memif_end *end, bool on)
{
	pass_moment();
	__real_memif_end_listen(end, on);
}

bool __wrap_memif_end_waits(const struct memif_end *end)
{
	pass_moment();
	return __real_memif_end_waits(end);
}

static int call(void *arg, int *doorbell_fd)
{
	struct memif_message hello;
	int ends[2], doorbell[2];

	(void)arg;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	owner_fd = ends[0];
	assert_int_equal(memif_doorbell_make(doorbell), 0);
	own_mark(doorbell[0]);
	memif_end_take_doorbell(&owner.end, doorbell[0]);
	*doorbell_fd = doorbell[1];
	memif_server_hello(&owner, &hello, "test");
	assert_int_equal(memif_socket_send(owner_fd, &hello, sizeof(hello)), 0);
	return ends[1];
}

static bool is_up(void *arg)
{
	return arg == NULL;
}

static bool is_lost(void *arg)
{
	return arg != NULL;
}

static const struct memif_caller caller = {.call = call, .link_up = is_up, .lost = is_lost};

static void owner_hear(void)
{
	struct memif_message message, answer;
	int fd;

	while (memif_socket_receive(owner_fd, &message, sizeof(message), &fd) > 0) {
		assert_int_equal(memif_server_take(&owner, &message, fd, &answer), 0);
		assert_int_equal(memif_socket_send(owner_fd, &answer, sizeof(answer)), 0);
	}
}

static int setup(TEST_STATE)
{
	static const uint8_t mac[6] = {2, 1};

	interleaves = false;
	memset(&port, 0, sizeof(port));
	memset(&cost, 0, sizeof(cost));
	memif_server_init(&owner, &memif_limits_isolated);
	port.make_pool = ends_make_no_pool;
	assert_int_equal(memif_prepare_caller(&port, &caller, NULL, mac, 1500), 0);
	assert_int_equal(port_open(&port), 0);
	memif = port.ops_arg;
	for (int i = 0; i < ROUNDS; i++) {
		port_conn_run(&port);
		owner_hear();
	}
	assert_true(port_connected(&port) && owner.end.doorbell_fd >= 0);
	return 0;
}

static int teardown(TEST_STATE)
{
	ends_close(&port);
	memif_server_fini(&owner);
	close(owner_fd);
	return 0;
}

TEST_FIXTURE(setup, teardown);

static bool is_woken(int ms)
{
	struct pollfd wake = {.fd = port_wake_fd(&port), .events = POLLIN};

	return poll(&wake, 1, ms) == 1;
}

static bool copy(uint8_t *to, const uint8_t *from, size_t len)
{
	memcpy(to, from, len);
	return true;
}

/* Take all packets. Returns how many there were. */
static uint32_t take(void)
{
	uint8_t room[LEN];
	uint32_t count = 0;
	bool right;

	while (memif_end_receive(memif->end, room, sizeof(room), copy, &right) == LEN)
		count++;
	if (count > 0)
		memif_end_release(memif->end);
	return count;
}

/* What has happened before: bits. */
#define WAS_ARMED 1 /* the port could not be disarmed after its last sleep */
#define WAS_RUNG  2 /* a ring waits */
#define IS_FULL	  4 /* so many that the doorbell has no room */
#define BEFORES	  8

static void prepare(unsigned int before)
{
	interleaves = false;
	port_disarm(&port);
	while (is_woken(0))
		(void)__real_memif_doorbell_clear(memif->end->wake_fd);
	if (before & WAS_ARMED)
		assert_false(port_arm(&port));
	if (before & WAS_RUNG)
		memif_doorbell_ring(owner.end.doorbell_fd, &cost);
	while ((before & IS_FULL) && memif_socket_send(owner.end.doorbell_fd, "", 1) == 0)
		;
	next_step = STEP_PUBLISH;
	moment = 0;
	asleep = false;
	interleaves = true;
}

struct outcomes {
	uint32_t seen, woken;
};

static void run_once(unsigned int before, struct outcomes *outcomes)
{
	bool waits;

	prepare(before);
	waits = port_arm(&port);
	/* Arm may have passed fewer moments. */
	moment = MOMENTS;
	pass_moment();
	assert_int_equal(next_step, STEPS);
	outcomes->seen += waits;
	outcomes->woken += !waits && is_woken(0);
	/* The port must not sleep while the packet waits. */
	assert_true(waits || is_woken(0));
	assert_int_equal(take(), 1);
}

TEST(memif_arm__misses_no_packet_in_any_order)
{
	struct outcomes outcomes = {0};
	uint32_t runs = 0;

	for (unsigned int at = 0; at < MOMENTS * MOMENTS * MOMENTS; at++) {
		for (int i = 0; i < STEPS; i++)
			moments[i] = i == 0   ? at % MOMENTS
				     : i == 1 ? at / MOMENTS % MOMENTS
					      : at / MOMENTS / MOMENTS;
		if (moments[1] < moments[0] || moments[2] < moments[1])
			continue;
		for (unsigned int before = 0; before < BEFORES; before++, runs++)
			run_once(before, &outcomes);
	}
	assert_int_equal(runs, 35 * BEFORES);
	/* Both ways were taken. */
	assert_true(outcomes.seen > 0 && outcomes.woken > 0);
}

/* Whoever polls is not rung. */
TEST(memif_disarm__ends_the_rings)
{
	prepare(WAS_ARMED);
	port_disarm(&port);
	for (enum step step = STEP_PUBLISH; step < STEPS; step++)
		owner_step(step);
	assert_false(is_woken(0));
	assert_int_equal(take(), 1);
}

/* What stays readable must not keep the port awake for ever. */
TEST(memif_arm__hears_no_more_of_who_sends_anything_else)
{
	prepare(0);
	interleaves = false;
	assert_int_equal(shutdown(owner.end.doorbell_fd, SHUT_RDWR), 0);
	assert_true(is_woken(0));
	assert_false(port_arm(&port));
	assert_false(is_woken(0));
	assert_true(port_connected(&port));
}

static uint32_t taken; /* packets; atomic */

/* Send each packet when the one before has been taken, so that the port is about to sleep. */
static void *owner_run(void *arg)
{
	for (uint32_t i = 0; i < PACKETS; i++) {
		while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) != i)
			sched_yield();
		/* Meet different moments. */
		for (volatile uint32_t k = 0; k < i % 2048; k++)
			;
		for (enum step step = STEP_PUBLISH; step < STEPS; step++)
			owner_step(step);
	}
	return arg;
}

TEST(memif_arm__misses_no_packet_of_another_cpu)
{
	pthread_t thread;
	uint32_t count = 0;

	taken = 0;
	assert_int_equal(pthread_create(&thread, NULL, owner_run, NULL), 0);
	while (count < PACKETS) {
		uint32_t came;

		if (!port_arm(&port))
			assert_true(is_woken(TIMEOUT_MS));
		port_disarm(&port);
		came = take();
		count += came;
		if (came > 0)
			__atomic_store_n(&taken, count, __ATOMIC_RELEASE);
	}
	pthread_join(thread, NULL);
}
