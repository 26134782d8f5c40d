/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/helper.c, and of ops.c beside a running helper. */
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine_rig.h"
#include "ethdev.h"
#include "helper_thread.h"
#include "test.h"

#define LOOKS 3

TEST_GROUP(rig_group_set_up, NULL);

static int set_up_hybrid(TEST_STATE)
{
	const int rc = rig_begin(SETTINGS_PROGRESS_HYBRID);

	return rc == 0 ? helper_start(engine) : rc;
}

TEST(helper__takes_over_when_nobody_polls, .setup = set_up_hybrid)
{
	fake_receiver = &other;
	qp.to_send = 1000;
	ops->kick(engine, &qp);
	assert_true(rig_eventually(&other.received, 1000));
}

/* The helper neither reads nor writes what has the number of its descriptor. */
TEST(helper__leaves_a_descriptor_of_the_programs_alone, .setup = set_up_hybrid)
{
	bool *const lost_fds = &engine->lost_fds;
	const int fd = engine->helper.thread->wake_fd;
	int ends[2], left = TIMEOUT_MS;
	char bytes[16];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(dup2(ends[0], fd), fd);
	close(ends[0]);
	assert_int_equal(write(ends[1], "hello", 5), 5);
	while (!__atomic_load_n(lost_fds, __ATOMIC_ACQUIRE) && left-- > 0) {
		ops->wait(engine);
		usleep(1000);
	}
	assert_true(left > 0);
	for (int i = 0; i < 100; i++)
		ops->wait(engine);
	helper_stop(engine);
	/* The port is the next test's. */
	engine->link->port.started = true;
	((struct ethdev *)engine->link->port.ops_arg)->removed = false;
	((struct ethdev *)engine->link->port.ops_arg)->given_up = false;
	assert_int_equal(recv(ends[1], bytes, sizeof(bytes), MSG_DONTWAIT), -1);
	assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT), 5);
	close(fd);
	close(ends[1]);
}

TEST(helper__serves_timers_while_the_program_sleeps, .setup = set_up_hybrid)
{
	qp.deadline_ns = clock_ns(&engine->clock) + 3000000;
	ops->kick(engine, &qp);
	ops->wait(engine);
	assert_true(rig_eventually(&qp.timeouts, 1));
}

TEST(helper__lets_a_polling_program_run_the_engine, .setup = set_up_hybrid)
{
	const uint64_t before = engine ? engine->polling.engine_polls : 0;

	for (int i = 0; i < TIMEOUT_MS * 100 && engine->polling.engine_polls < before + 1000; i++)
		ops->poll(engine);
	assert_true(engine->polling.engine_polls >= before + 1000);
}

static int set_up_idle(TEST_STATE)
{
	return rig_begin(SETTINGS_PROGRESS_HYBRID);
}

TEST_FIXTURE(set_up_idle, rig_tear_down);

/* A socket like the port's of an interface that went down: in error until the error is read. */
static int socket_in_error(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct pollfd poll_fd = {.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
	const int silent = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(addr);

	assert_int_equal(bind(silent, (const struct sockaddr *)&addr, len), 0);
	assert_int_equal(getsockname(silent, (struct sockaddr *)&addr, &len), 0);
	close(silent);
	assert_int_equal(connect(poll_fd.fd, (const struct sockaddr *)&addr, len), 0);
	assert_int_equal(send(poll_fd.fd, "", 1, 0), 1);
	assert_int_equal(poll(&poll_fd, 1, TIMEOUT_MS), 1);
	assert_int_equal(poll_fd.revents, POLLERR);
	return poll_fd.fd;
}

TEST(helper__reads_the_error_of_a_port_that_went_down)
{
	struct pollfd poll_fd = {.events = 0};
	int left = TIMEOUT_MS;

	poll_fd.fd = socket_in_error();
	engine->link->port.wake_fd = poll_fd.fd;
	assert_int_equal(helper_start(engine), 0);
	while (poll(&poll_fd, 1, 0) != 0 && left-- > 0)
		usleep(1000);
	helper_stop(engine);
	engine->link->port.wake_fd = -1;
	close(poll_fd.fd);
	assert_true(left > 0);
}

/* This port has none, which shows when they are armed. */
TEST(helper__arms_interrupts_as_the_owner_alone)
{
	const int fd = eventfd(0, EFD_CLOEXEC);
	struct port *port;
	bool left = true;

	assert_true(fd >= 0);
	port = &engine->link->port;
	port->interrupts = true;
	port->wake_fd = fd;
	engine_lock(engine);
	assert_int_equal(helper_start(engine), 0);
	/* Longer than it takes to fall asleep; shorter on a busy machine, where nothing is shown.
	 */
	usleep(20000);
	assert_true(port_interrupts(port));
	engine_release(engine);
	for (int i = 0; i < TIMEOUT_MS && (left = port_interrupts(port)); i++)
		usleep(1000);
	helper_stop(engine);
	assert_false(left);
	assert_int_equal(port_wake_fd(port), -1);
	close(fd);
}

static unsigned int sleeps; /* for which interrupts were armed; atomic */
static unsigned int looks;  /* at which frames waited already; atomic */
static bool armed_twice;

/* Arm as a NIC: it does not report frames that came before. */
static bool arm_as_nic(void *arg)
{
	struct port *port = arg;

	if (port->armed) {
		__atomic_add_fetch(&sleeps, 1, __ATOMIC_RELEASE);
		return false;
	}
	__atomic_store_n(&port->armed, true, __ATOMIC_RELAXED);
	return true;
}

static void disarm_as_nic(void *arg)
{
	struct port *port = arg;

	__atomic_store_n(&port->armed, false, __ATOMIC_RELAXED);
}

static uint16_t receive_none(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	(void)arg, (void)mbufs, (void)n;
	return 0;
}

TEST(helper__sleeps_on_interrupts)
{
	struct port *port = &engine->link->port;
	const struct port before = *port;
	const struct port_ops nic = {.rx_burst = receive_none,
				     .tx_burst = before.ops->tx_burst,
				     .arm = arm_as_nic,
				     .disarm = disarm_as_nic,
				     .connected = before.ops->connected,
				     .link_up = before.ops->link_up,
				     .lost = before.ops->lost};

	sleeps = 0;
	port->ops = &nic;
	port->ops_arg = port;
	port->interrupts = port->arms_once = true;
	port->wake_fd = eventfd(0, EFD_CLOEXEC);
	engine->link_due_ns = UINT64_MAX;
	assert_int_equal(helper_start(engine), 0);
	for (int i = 0; i < TIMEOUT_MS && __atomic_load_n(&sleeps, __ATOMIC_ACQUIRE) == 0; i++)
		usleep(1000);
	helper_stop(engine);
	assert_false(port->armed);
	close(port->wake_fd);
	*port = before;
	assert_true(sleeps > 0);
}

/* Arm as memif: frames that came before are reported now. The port is armed nevertheless. */
static bool arm_as_memif(void *arg)
{
	struct port *port = arg;

	armed_twice |= port->armed;
	__atomic_store_n(&port->armed, true, __ATOMIC_RELAXED);
	return __atomic_add_fetch(&looks, 1, __ATOMIC_RELEASE) < LOOKS;
}

/* A sender that finds the port armed rings it, for each of its bursts. */
TEST(helper__disarms_a_port_that_had_frames_when_it_was_armed)
{
	struct port *port = &engine->link->port;
	const struct port before = *port;
	const struct port_ops memif = {.rx_burst = receive_none,
				       .tx_burst = before.ops->tx_burst,
				       .arm = arm_as_memif,
				       .disarm = disarm_as_nic,
				       .connected = before.ops->connected,
				       .link_up = before.ops->link_up,
				       .lost = before.ops->lost};

	looks = 0;
	armed_twice = false;
	port->ops = &memif;
	port->ops_arg = port;
	port->interrupts = true;
	port->wake_fd = eventfd(0, EFD_CLOEXEC);
	engine->link_due_ns = UINT64_MAX;
	assert_int_equal(helper_start(engine), 0);
	for (int i = 0; i < TIMEOUT_MS && __atomic_load_n(&looks, __ATOMIC_ACQUIRE) < LOOKS; i++)
		usleep(1000);
	helper_stop(engine);
	assert_false(port->armed);
	close(port->wake_fd);
	*port = before;
	assert_true(looks >= LOOKS);
	assert_false(armed_twice);
}

static int set_up_dedicated(TEST_STATE)
{
	const int rc = rig_begin(SETTINGS_PROGRESS_DEDICATED);

	return rc == 0 ? helper_start(engine) : rc;
}

TEST(helper__dedicated_serves_kicks_and_the_program_polls_no_engine, .setup = set_up_dedicated)
{
	fake_receiver = &other;
	qp.to_send = 50;
	ops->kick(engine, &qp);
	for (int i = 0; i < 100; i++)
		ops->poll(engine);
	assert_int_equal(engine->polling.engine_polls, 0);
	assert_true(rig_eventually(&other.received, 50));
}

/* Kicks from several threads against a running helper: none is lost. */
static void *kicker(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		__atomic_fetch_add(&((struct qp *)arg)->to_send, 0, __ATOMIC_SEQ_CST);
		ops->kick(engine, arg);
	}
	return NULL;
}

TEST(ops_kick__none_is_lost_between_threads, .setup = set_up_hybrid)
{
	struct qp qps[3];
	pthread_t threads[3];

	for (int i = 0; i < 3; i++) {
		fake_qp_init(&qps[i], peer_mac);
		assert_int_equal(pthread_create(&threads[i], NULL, kicker, &qps[i]), 0);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 3; i++) {
		__atomic_store_n(&qps[i].to_send, 1, __ATOMIC_RELEASE);
		ops->kick(engine, &qps[i]);
		assert_true(rig_eventually(&qps[i].to_send, 0));
	}
	ops->lock(engine);
	for (int i = 0; i < 3; i++)
		ops->detach(engine, &qps[i]);
	ops->unlock(engine);
}
