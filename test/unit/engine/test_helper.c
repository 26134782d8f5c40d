/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/helper.c, and of ops.c beside a running helper. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "engine/crossing.h"
#include "helper_thread.h"
#include "ethdev.h"
#include "engine_rig.h"
#include "open_fds.h"
#include "test.h"

#define LOOKS 3

TEST_GROUP(rig_group_set_up, NULL);

static bool eventually(const unsigned int *value, unsigned int want)
{
	for (int i = 0; i < PATIENCE_MS; i++) {
		if (__atomic_load_n(value, __ATOMIC_ACQUIRE) == want)
			return true;
		usleep(1000);
	}
	return false;
}

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
	assert_true(eventually(&other.received, 1000));
}

/* The helper neither reads nor writes what has the number of its descriptor. */
TEST(helper__leaves_a_descriptor_of_the_programs_alone, .setup = set_up_hybrid)
{
	bool *const lost_fds = &engine->lost_fds;
	const int fd = engine->helper.thread->wake_fd;
	int ends[2], left = PATIENCE_MS;
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
	assert_true(eventually(&qp.timeouts, 1));
}

TEST(helper__lets_a_polling_program_run_the_engine, .setup = set_up_hybrid)
{
	const uint64_t before = engine ? engine->polling.turns : 0;

	for (int i = 0; i < PATIENCE_MS * 100 && engine->polling.turns < before + 1000; i++)
		ops->poll(engine);
	assert_true(engine->polling.turns >= before + 1000);
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
	assert_int_equal(poll(&poll_fd, 1, PATIENCE_MS), 1);
	assert_int_equal(poll_fd.revents, POLLERR);
	return poll_fd.fd;
}

TEST(helper__reads_the_error_of_a_port_that_went_down)
{
	struct pollfd poll_fd = {.events = 0};
	int left = PATIENCE_MS;

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
	for (int i = 0; i < PATIENCE_MS && (left = port_interrupts(port)); i++)
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
	for (int i = 0; i < PATIENCE_MS && __atomic_load_n(&sleeps, __ATOMIC_ACQUIRE) == 0; i++)
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
	for (int i = 0; i < PATIENCE_MS && __atomic_load_n(&looks, __ATOMIC_ACQUIRE) < LOOKS; i++)
		usleep(1000);
	helper_stop(engine);
	assert_false(port->armed);
	close(port->wake_fd);
	*port = before;
	assert_true(looks >= LOOKS);
	assert_false(armed_twice);
}

static struct helper_thread nobody = {.wake_fd = -1}; /* a helper that does not run */

/* Make the engine seem to doze; no thread runs here. */
static void doze_until(uint64_t now_ns, uint64_t until_ns)
{
	handover_take_call(engine);
	assert_true(handover_doze(engine, now_ns, until_ns - now_ns) > 0);
}

TEST(helper__is_called_for_what_a_kick_leaves)
{
	const uint64_t start_ns = clock_ns(&engine->clock);

	fake_receiver = &other;
	doze_until(start_ns, start_ns + UINT64_C(1000000000000));
	qp.to_send = 1;
	ops->kick(engine, &qp);
	assert_int_equal(handover_take_call(engine), CALL_NONE);
	qp.to_send = 1000;
	ops->kick(engine, &qp);
	assert_int_equal(handover_take_call(engine), CALL_TO_LOOK);
}

/* The kick comes from a thread that took the engine for a control call. */
TEST(helper__is_called_for_what_a_release_leaves)
{
	const uint64_t start_ns = clock_ns(&engine->clock);

	doze_until(start_ns, start_ns + UINT64_C(1000000000000));
	ops->lock(engine);
	qp.to_send = 1000;
	ops->kick(engine, &qp);
	ops->unlock(engine);
	assert_true(qp.to_send < 1000 && qp.to_send > 0);
	assert_int_equal(handover_take_call(engine), CALL_TO_LOOK);
}

/* A poll holds no acknowledgement back that a dozing helper would have to send. */
TEST(helper__is_not_called_for_what_a_poll_acknowledges)
{
	const uint64_t start_ns = clock_ns(&engine->clock);

	engine->ack_hold_ns = engine->ack_hold_beyond_ns = UINT64_MAX;
	fake_receiver = &other;
	other.only_ack = true;
	doze_until(start_ns, start_ns + UINT64_C(1000000000000));
	qp.to_send = 1;
	ops->kick(engine, &qp);
	assert_int_equal(handover_take_call(engine), CALL_NONE);
	ops->poll(engine);
	assert_int_equal(other.received, 1);
	assert_int_equal(other.runs, 1);
	assert_int_equal(handover_take_call(engine), CALL_NONE);
	/* While it watches the program, the program's next turn sends it. */
	handover_wake(engine);
	qp.to_send = 1;
	ops->kick(engine, &qp);
	ops->poll(engine);
	assert_int_equal(other.received, 2);
	assert_int_equal(other.runs, 1);
}

/* A helper that dozes until frames come runs the engine already. */
TEST(helper__is_not_called_if_frames_wake_it)
{
	const uint64_t start_ns = clock_ns(&engine->clock);
	const int fd = eventfd(0, EFD_CLOEXEC);

	assert_true(fd >= 0);
	engine->helper.thread = &nobody; /* as doze_until makes it seem */
	doze_until(start_ns, start_ns + UINT64_C(1000000000000));
	engine->link->port.wake_fd = fd;
	ops->wait(engine);
	assert_int_equal(handover_take_call(engine), CALL_NONE);
	/* It would not notice them in time. */
	engine->link->port.wake_fd = -1;
	ops->wait(engine);
	assert_int_equal(handover_take_call(engine), CALL_TO_RUN);
	/* It watches the program, and frames do not wake it. */
	engine->link->port.wake_fd = fd;
	handover_wake(engine);
	handover_nap(engine);
	ops->wait(engine);
	assert_int_equal(handover_take_call(engine), CALL_TO_RUN);
	engine->link->port.wake_fd = -1;
	engine->helper.thread = NULL;
	close(fd);
}

TEST(helper_is_relieved__by_polls_without_waits)
{
	struct helper_polls seen = {.polls = engine->polling.polls, .waits = engine->polling.waits};

	assert_false(helper_is_relieved(&seen, engine, 0));
	for (int i = 0; i < 4; i++)
		polling_count(&engine->polling);
	assert_true(helper_is_relieved(&seen, engine, 0));
	/* The same polls of a program that sleeps between events. */
	polling_count_wait(&engine->polling);
	assert_false(helper_is_relieved(&seen, engine, 0));
	for (int i = 0; i < 32; i++)
		polling_count(&engine->polling);
	assert_true(helper_is_relieved(&seen, engine, 0));
	/* Old polls do not count. */
	polling_count_wait(&engine->polling);
	assert_false(helper_is_relieved(&seen, engine, 1000000));
	polling_count(&engine->polling);
	assert_false(helper_is_relieved(&seen, engine, 1000001));
}

/* A thread that has slept has not polled in vain meanwhile. */
TEST(polling_vain__begins_anew_after_a_sleep, .bare = true)
{
	struct polling polling;
	struct crowd crowd;

	polling_init(&polling, &crowd);
	assert_int_equal(polling_vain_ns(&polling, 1000000), 0);
	assert_int_equal(polling_vain_ns(&polling, 1015000), 15000);
	assert_int_equal(polling_vain_ns(&polling, 1030000), 30000);
	/* Another thread, which has read the clock earlier. */
	assert_int_equal(polling_vain_ns(&polling, 1029000), 29000);
	assert_int_equal(polling_vain_ns(&polling, 2000000), 0);
	assert_int_equal(polling_vain_ns(&polling, 2001000), 1000);
}

TEST(helper__is_called_for_a_timer_that_ends_before_its_sleep)
{
	const uint64_t start_ns = clock_ns(&engine->clock);

	qp.deadline_ns = start_ns + 5000000;
	doze_until(start_ns, start_ns + 1000000);
	ops->kick(engine, &qp);
	assert_int_equal(handover_take_call(engine), CALL_NONE);
	handover_wake(engine);
	/* The helper knows this timer. The next timer is earlier. */
	doze_until(start_ns, start_ns + 20000000);
	ops->kick(engine, &qp);
	assert_int_equal(handover_take_call(engine), CALL_NONE);
	qp.deadline_ns = start_ns + 2000000;
	ops->kick(engine, &qp);
	assert_int_equal(handover_take_call(engine), CALL_TO_LOOK);
}

TEST(helper_average__rises_slowly_and_falls_at_once, .bare = true)
{
	assert_int_equal(helper_average_ns(0, 4000), 500);
	assert_int_equal(helper_average_ns(4000, 3000), 3000);
	/* A CPU that was taken away for long is no more than a dear look. */
	assert_int_equal(helper_average_ns(0, 10000000), 25000);
	assert_int_equal(helper_average_ns(200000, 10000000), 200000);
}

TEST(helper_note_losses__for_some_time_after_any_sign_of_one, .bare = true)
{
	static const enum counter signs[] = {COUNTER_retransmitted_packets,
					     COUNTER_duplicate_request, COUNTER_out_of_sequence};
	struct helper_losses losses = {0};
	struct counters counters = {0};

	helper_note_losses(&losses, &counters, 1000);
	assert_int_equal(losses.until_ns, 0);
	for (uint64_t i = 0; i < RTE_DIM(signs); i++) {
		counters_add(&counters, signs[i], 1);
		helper_note_losses(&losses, &counters, 2000 + i);
		assert_int_equal(losses.until_ns, 10002000 + i);
	}
	counters_add(&counters, COUNTER_rx_packets, 1);
	helper_note_losses(&losses, &counters, 3000);
	assert_int_equal(losses.until_ns, 10002002);
}

TEST(helper_is_needed__after_a_tick_without_polls)
{
	struct helper_watch watch = {.turns = 0};

	engine->polling.turns = 1;
	assert_false(helper_is_needed(&watch, engine, 20, 320));
	assert_true(helper_is_needed(&watch, engine, 20, 320));
}

/* A turn with many packets over a kernel interface is longer than a tick. A helper that took it for
 * the program's silence spun beside the turn, for 15 % of the CPU's time. */
TEST(helper_is_needed__not_during_another_threads_turn)
{
	struct helper_watch watch = {.turns = 0};

	assert_false(owner_is_taken(&engine->owner));
	assert_true(owner_try(&engine->owner));
	assert_true(owner_is_taken(&engine->owner));
	assert_false(helper_is_needed(&watch, engine, 20, 320));
	owner_unlock(&engine->owner);
	assert_true(helper_is_needed(&watch, engine, 20, 320));
}

/* The kernel's answers about the thread that polls. The tests ask about no other one. */
static uint64_t poller_ns;
static bool poller_wants_cpu;

uint64_t __wrap_cpu_thread_ns(uint32_t tid);
bool __wrap_cpu_thread_wants_cpu(uint32_t tid);

uint64_t __wrap_cpu_thread_ns(uint32_t tid)
{
	return tid == 0 ? 0 : poller_ns;
}

bool __wrap_cpu_thread_wants_cpu(uint32_t tid)
{
	return tid != 0 && poller_wants_cpu;
}

static void poll_in_vain(uint64_t now_ns)
{
	poller_ns += 1000;
	polling_vain_ns(&engine->polling, now_ns);
}

TEST(helper_poller_waits__while_it_wants_a_cpu_and_gets_none)
{
	struct helper_watch watch = {.turns = 0};

	poller_wants_cpu = true;
	poll_in_vain(0);
	assert_false(helper_poller_waits(&watch, engine, 0)); /* there is nothing to compare */
	assert_true(helper_poller_waits(&watch, engine, 20000));
	assert_true(watch.short_until_ns > 20000);
	/* The thread had a CPU, and did not poll. */
	poller_ns++;
	assert_false(helper_poller_waits(&watch, engine, 40000));
	/* It sleeps. */
	poller_wants_cpu = false;
	assert_false(helper_poller_waits(&watch, engine, 60000));
	/* It has ended. */
	poller_wants_cpu = true;
	poller_ns = 0;
	assert_false(helper_poller_waits(&watch, engine, 80000));
	assert_false(helper_poller_waits(&watch, engine, 100000));
}

TEST(helper_poller_waits__for_a_limited_time)
{
	struct helper_watch watch = {.turns = 0};

	poller_wants_cpu = true;
	poll_in_vain(0);
	helper_poller_waits(&watch, engine, 0);
	assert_true(helper_poller_waits(&watch, engine, 1000));
	assert_true(helper_poller_waits(&watch, engine, 999 + HELPER_WAITS_NS));
	assert_false(helper_poller_waits(&watch, engine, 1000 + HELPER_WAITS_NS));
	/* Then the helper has run the engine. */
	assert_true(helper_poller_waits(&watch, engine, 2000 + HELPER_WAITS_NS));
}

TEST(helper_poller_waits__not_for_another_thread)
{
	struct helper_watch watch = {.turns = 0};

	poller_wants_cpu = true;
	poll_in_vain(0);
	helper_poller_waits(&watch, engine, 0);
	engine->polling.poller++;
	assert_false(helper_poller_waits(&watch, engine, 20000));
	assert_true(helper_poller_waits(&watch, engine, 40000));
	engine->polling.poller = 0;
	assert_false(helper_poller_waits(&watch, engine, 60000));
	assert_false(helper_poller_waits(&watch, engine, 80000));
}

TEST(helper_is_needed__by_who_finds_much_and_runs_no_turn)
{
	struct helper_watch watch = {.turns = 0};

	for (uint64_t ns = 0; ns < 640 - 20; ns += 20) {
		engine->polling.found++;
		assert_false(helper_is_needed(&watch, engine, 20, 320));
	}
	engine->polling.found++;
	assert_true(helper_is_needed(&watch, engine, 20, 320));
	/* A turn now and then will do. */
	for (int i = 0; i < 10; i++) {
		engine->polling.found++;
		engine->polling.turns += i % 2 == 0;
		assert_false(helper_is_needed(&watch, engine, 320, 320));
	}
}

static int set_up_dedicated(TEST_STATE)
{
	const int rc = rig_begin(SETTINGS_PROGRESS_DEDICATED);

	return rc == 0 ? helper_start(engine) : rc;
}

TEST(helper__dedicated_serves_kicks_and_the_program_no_turns, .setup = set_up_dedicated)
{
	fake_receiver = &other;
	qp.to_send = 50;
	ops->kick(engine, &qp);
	for (int i = 0; i < 100; i++)
		ops->poll(engine);
	assert_int_equal(engine->polling.turns, 0);
	assert_true(eventually(&other.received, 50));
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
		assert_true(eventually(&qps[i].to_send, 0));
	}
	ops->lock(engine);
	for (int i = 0; i < 3; i++)
		ops->detach(engine, &qps[i]);
	ops->unlock(engine);
}

/* Two engines of a device. */
static struct device_engine home;
static struct engine *further;

static int begin_two(enum settings_progress progress)
{
	struct device *device;

	if (rig_begin(progress) != 0)
		return -1;
	device = engine->device;
	memset(&home, 0, sizeof(home));
	home.device = device;
	home.number = 1;
	TAILQ_INIT(&home.waiting);
	moderator_init(&home.moderator);
	device->engines[1] = &home;
	device->engine_count = 2;
	if (crossing_create(engine) != 0 || crossing_add(engine, 1) != 0)
		return -1;
	further = home.driver;
	return helper_start(engine) != 0 || helper_start(further) != 0 ? -1 : 0;
}

static int set_up_two(TEST_STATE)
{
	return begin_two(SETTINGS_PROGRESS_HYBRID);
}

static int set_up_two_dedicated(TEST_STATE)
{
	return begin_two(SETTINGS_PROGRESS_DEDICATED);
}

static int tear_down_two(TEST_STATE)
{
	struct crossing *crossing = engine->crossing;

	if (helper_stop(engine) != 0 || helper_stop(further) != 0)
		return -1;
	port_destroy(&further->link->port);
	free(further);
	free(crossing);
	return rig_tear_down(state);
}

/* Return true if the timer of a queue pair fires while the program sleeps. */
static bool serves_timer(struct engine *served, struct qp *sleeper)
{
	const unsigned int before = __atomic_load_n(&sleeper->timeouts, __ATOMIC_ACQUIRE);

	ops->lock(served);
	sleeper->deadline_ns = clock_ns(&served->clock) + 3000000;
	ops->unlock(served);
	ops->kick(served, sleeper);
	ops->wait(served);
	return eventually(&sleeper->timeouts, before + 1);
}

TEST(helper__serves_two_engines, .setup = set_up_two, .teardown = tear_down_two)
{
	assert_ptr_equal(engine->helper.thread, further->helper.thread);
	for (int i = 0; i < 3; i++) {
		assert_true(serves_timer(engine, &qp));
		assert_true(serves_timer(further, &other));
	}
}

/* The clock of an engine that starts later differs: its rate is not exact. The program polls, and
 * then stops without a call. */
TEST(helper__serves_engines_whose_clocks_differ, .setup = set_up_two, .teardown = tear_down_two)
{
	uint64_t polled_until_ns;

	assert_int_equal(helper_stop(engine), 0);
	assert_int_equal(helper_stop(further), 0);
	engine->clock.start_ns += UINT64_C(3600000000000);
	assert_int_equal(helper_start(engine), 0);
	assert_int_equal(helper_start(further), 0);
	polled_until_ns = clock_ns(&engine->clock) + 20000000;
	while (clock_ns(&engine->clock) < polled_until_ns)
		ops->poll(engine);
	qp.deadline_ns = clock_ns(&engine->clock) + 3000000;
	ops->kick(engine, &qp);
	assert_true(eventually(&qp.timeouts, 1));
}

TEST(helper__starves_no_engine_beside_one_with_much_work, .setup = set_up_two,
     .teardown = tear_down_two)
{
	__atomic_store_n(&qp.to_send, UINT32_MAX, __ATOMIC_RELEASE);
	ops->kick(engine, &qp);
	for (int i = 0; i < 3; i++)
		assert_true(serves_timer(further, &other));
	assert_true(__atomic_load_n(&qp.to_send, __ATOMIC_ACQUIRE) > 0);
	ops->lock(engine);
	ops->detach(engine, &qp);
	ops->unlock(engine);
}

TEST(helper__leaves_the_engine_that_is_polled_alone, .setup = set_up_two, .teardown = tear_down_two)
{
	const uint64_t before = engine->polling.turns;

	other.deadline_ns = clock_ns(&further->clock) + 3000000;
	ops->kick(further, &other);
	ops->wait(further);
	for (int i = 0; i < PATIENCE_MS * 100 && engine->polling.turns < before + 1000; i++)
		ops->poll(engine);
	assert_true(engine->polling.turns >= before + 1000);
	assert_true(eventually(&other.timeouts, 1));
	/* It runs the engine again as soon as nobody polls. */
	assert_true(serves_timer(engine, &qp));
}

TEST(helper_stop__of_one_engine_leaves_the_other, .setup = set_up_two, .teardown = tear_down_two)
{
	assert_int_equal(helper_stop(engine), 0);
	assert_true(serves_timer(further, &other));
	assert_int_equal(helper_start(engine), 0);
	assert_ptr_equal(engine->helper.thread, further->helper.thread);
	assert_true(serves_timer(engine, &qp));
}

static bool no_threads; /* can be started */

int __real_privilege_create(pthread_t *thread, void *(*run)(void *arg), void *arg,
			    bool opens_files);
int __wrap_privilege_create(pthread_t *thread, void *(*run)(void *arg), void *arg,
			    bool opens_files);

int __wrap_privilege_create(pthread_t *thread, void *(*run)(void *arg), void *arg, bool opens_files)
{
	return no_threads ? -EAGAIN : __real_privilege_create(thread, run, arg, opens_files);
}

/* Another thread has called an engine just before its helper was stopped, and rings only now. */
TEST(helper_stop__leaves_what_a_late_ring_uses)
{
	const struct helper_thread *thread;
	unsigned int before = 0;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(helper_start(engine), 0);
		thread = engine->helper.thread;
		assert_int_equal(helper_stop(engine), 0);
		assert_null(engine->helper.thread);
		assert_true(own_is(thread->wake_fd));
		helper_ring(engine);
		assert_false(engine->lost_fds);
		/* The next helper uses it again. */
		before = i == 0 ? fds_count() : before;
		assert_int_equal(fds_count(), before);
	}
}

/* The same if the helper's thread does not start again for its other engines. */
TEST(helper_stop__without_a_thread_leaves_what_a_late_ring_uses, .setup = set_up_two,
     .teardown = tear_down_two)
{
	const struct helper_thread *thread = further->helper.thread;

	no_threads = true;
	assert_int_equal(helper_stop(engine), -EAGAIN);
	assert_null(further->helper.thread);
	assert_true(own_is(thread->wake_fd));
	assert_int_equal(helper_start(engine), -EAGAIN);
	assert_null(engine->helper.thread);
	assert_true(own_is(thread->wake_fd));
	no_threads = false;
	assert_int_equal(helper_start(engine), 0);
	assert_int_equal(helper_start(further), 0);
	assert_true(serves_timer(engine, &qp));
	assert_true(serves_timer(further, &other));
}

/* The program has closed the eventfd meanwhile, or a parent process has made it. */
TEST(helper_start__uses_no_eventfd_of_others_again)
{
	struct helper_thread *thread;
	int fd;

	assert_int_equal(helper_start(engine), 0);
	thread = engine->helper.thread;
	assert_int_equal(helper_stop(engine), 0);
	thread->pid++;
	assert_int_equal(helper_start(engine), 0);
	assert_ptr_not_equal(engine->helper.thread, thread);
	thread->pid--;
	thread = engine->helper.thread;
	assert_int_equal(helper_stop(engine), 0);
	fd = dup(thread->wake_fd);
	assert_int_equal(dup2(STDIN_FILENO, thread->wake_fd), thread->wake_fd);
	assert_int_equal(helper_start(engine), 0);
	assert_ptr_not_equal(engine->helper.thread, thread);
	assert_int_equal(helper_stop(engine), 0);
	assert_int_equal(dup2(fd, thread->wake_fd), thread->wake_fd);
	close(fd);
}

TEST(helper_join__of_one_engine_leaves_the_other, .setup = set_up_two, .teardown = tear_down_two)
{
	engine_disown(further);
	helper_join(further);
	assert_true(__atomic_load_n(&further->helper.left, __ATOMIC_ACQUIRE));
	assert_true(serves_timer(engine, &qp));
}

/* Nobody takes the call of an engine that has ended. */
TEST(handover_sleep__ignores_an_engine_that_has_ended)
{
	struct engine ended = {.ended = true, .link = engine->link};
	struct helper_thread thread = {.first = engine, .wake_fd = eventfd(0, EFD_CLOEXEC)};

	own_mark(thread.wake_fd);
	engine->helper.thread = ended.helper.thread = &thread;
	engine->helper.next = &ended;
	engine->helper.listens = ended.helper.listens = true;
	handover_call(&ended, CALL_TO_RUN);
	handover_sleep(engine, 1000);
	/* It has prepared to sleep for the other one, and for that one alone. */
	assert_true(engine->helper.armed || engine->helper.heard);
	assert_false(ended.helper.armed || ended.helper.heard);
	engine->helper.thread = NULL;
	engine->helper.next = NULL;
	close(thread.wake_fd);
}

TEST(helper__dedicated_has_a_thread_for_each_engine, .setup = set_up_two_dedicated,
     .teardown = tear_down_two)
{
	assert_ptr_not_equal(engine->helper.thread, further->helper.thread);
	assert_true(serves_timer(engine, &qp));
	assert_true(serves_timer(further, &other));
}
