/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/engine.c: reports, commands and the link of a device, and threads that take
 * the engine. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/own.h"
#include "engine_rig.h"
#include "report/report_command.h"
#include "report/read.h"
#include "report/write.h"
#include "test.h"

TEST_GROUP(rig_group_set_up, NULL);
TEST_FIXTURE(rig_set_up, rig_tear_down);

TEST(engine_poll__answers_who_watches)
{
	struct report *report;
	uint32_t asked;
	int fd;

	assert_int_equal(report_create(&fd, &report), 0);
	engine->report = report;
	rig_polls(1);
	assert_int_equal(report->sequence, 0);
	asked = report_ask(report);
	assert_false(report_answered(report, asked));
	engine->link_due_ns = 0;
	rig_polls(1);
	assert_true(report_answered(report, asked));
	engine->report = NULL;
	report_unmap(report);
	close(fd);
}

/* Let the engine's clock stand, or advance by so much. */
static void set_clock(uint64_t passed_ns)
{
	engine->clock.ns_per_tsc = 0;
	engine->clock.start_ns += passed_ns;
}

static bool looks_after_device(void)
{
	rig_polls(1);
	return engine->link_due_ns != 0;
}

/* After a sleep a look at the device is due, and would take longer than the answer to the packet
 * that has woken the process. */
TEST(engine_poll__answers_before_it_looks_after_the_device)
{
	fake_receiver = &other;
	set_clock(1000000000);
	engine->link_due_ns = 0;
	rig_send(&qp, 1);
	assert_false(looks_after_device());
	rig_send(&other, 1);
	assert_false(looks_after_device());
	assert_false(looks_after_device());
	assert_int_equal(other.received, 2);
	set_clock(300000);
	assert_true(looks_after_device());
}

/* The thread that posts polls for the answer next. */
TEST(engine_poll__waits_for_an_answer_before_it_looks_after_the_device)
{
	set_clock(1000000000);
	engine->link_due_ns = 0;
	qp.to_send = 1;
	ops->kick(engine, &qp);
	rig_empty_port();
	assert_false(looks_after_device());
	set_clock(300000);
	assert_true(looks_after_device());
}

TEST(engine_poll__looks_after_the_device_also_if_there_is_always_work)
{
	fake_receiver = &other;
	set_clock(1000000000);
	engine->link_due_ns = 0;
	for (int i = 0; i < 10; i++) {
		set_clock(100000);
		rig_send(&qp, 1);
		assert_false(looks_after_device());
	}
	set_clock(100000);
	rig_send(&qp, 1);
	assert_true(looks_after_device());
}

/* Also if it was put off before the last sleep, but not for ever. */
TEST(engine_poll__answers_first_after_some_sleeps)
{
	fake_receiver = &other;
	engine->link_due_ns = 0;
	for (int i = 0; i < 4; i++) {
		set_clock(30000000);
		rig_send(&qp, 1);
		assert_false(looks_after_device());
	}
	set_clock(30000000);
	rig_send(&qp, 1);
	assert_true(looks_after_device());
}

static void *give_command(void *arg)
{
	struct report_command *command = arg;

	command->word = (uint64_t)-report_command_give(engine->report, command, 10000);
	return NULL;
}

/* Give a command from another thread while the engine runs. Return the positive errno. */
static int executed(enum report_command_kind kind, uint8_t index, uint32_t value)
{
	struct report_command command = {.kind = kind, .index = index, .value = value};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, give_command, &command), 0);
	while (__atomic_load_n(&engine->report->command, __ATOMIC_RELAXED) == 0)
		usleep(100);
	engine->link_due_ns = 0;
	engine->busy_ns = 0;
	rig_polls(1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return (int)command.word;
}

TEST(engine_poll__executes_commands_that_are_allowed)
{
	struct report *report;
	int fd;

	assert_int_equal(report_create(&fd, &report), 0);
	engine->report = report;
	fake_receiver = &other;
	engine->device->cc_params = cc_params_normal;
	rig_polls(1);
	assert_int_equal(executed(REPORT_COMMAND_PARAM, (uint8_t)cc_param_find("rpg_ai_rate"), 123),
			 0);
	assert_int_equal(engine->device->cc_params.rpg_ai_rate, 123);
	assert_int_equal(executed(REPORT_COMMAND_PARAM, (uint8_t)cc_param_find("rpg_ai_rate"), 0),
			 ERANGE);
	assert_int_equal(executed(REPORT_COMMAND_PARAM, 255, 1), ENOENT);
	assert_int_equal(engine->device->cc_params.rpg_ai_rate, 123);
	assert_int_equal(other.runs, 0);
	assert_int_equal(executed(REPORT_COMMAND_ALGORITHM, CC_SWIFT, FAKE_QPN), 0);
	assert_int_equal(fake_kind, CC_SWIFT);
	/* The queue pair runs: what was held may be allowed now. */
	rig_polls(1);
	assert_int_equal(other.runs, 1);
	assert_int_equal(executed(REPORT_COMMAND_ALGORITHM, CC_SWIFT, FAKE_QPN + 1), ENOENT);
	assert_int_equal(executed(REPORT_COMMAND_KINDS, 0, 0), EINVAL);
	engine->report = NULL;
	report_unmap(report);
	close(fd);
}

static bool lost_says_no(void *arg)
{
	(void)arg;
	return false;
}

static bool link_says_no(void *arg, bool connected)
{
	(void)arg;
	(void)connected;
	return false;
}

static bool lost_says_yes(void *arg)
{
	(void)arg;
	return true;
}

static bool connected_says_yes(void *arg)
{
	(void)arg;
	return true;
}

static const struct port_ops away = {
	.lost = lost_says_no, .link_up = link_says_no, .connected = lost_says_no};
static const struct port_ops connected = {
	.lost = lost_says_no, .link_up = link_says_no, .connected = connected_says_yes};

TEST(engine_check_link__hastens_queue_pairs_when_packets_reach_others_again)
{
	struct port *port = &engine->link->port;
	const struct port_ops *before = port->ops;

	fake_receiver = &qp;
	port->ops = &away;
	engine_check_link(engine);
	assert_int_equal(qp.hastened, 0);
	port->ops = &connected;
	engine_check_link(engine);
	engine_check_link(engine);
	port->ops = before;
	assert_int_equal(qp.hastened, 1);
	assert_true(qp.sched.is_ready);
}

/* Another program can make and end the connection again and again. */
TEST(engine_check_link__a_connection_that_flaps_hastens_seldom)
{
	struct port *port = &engine->link->port;
	const struct port_ops *before = port->ops;

	fake_receiver = &qp;
	for (unsigned int i = 0; i < 30; i++) {
		port->ops = i % 2 == 0 ? &away : &connected;
		engine_check_link(engine);
		engine->now_ns += 10000000;
	}
	port->ops = before;
	/* In 300 ms. */
	assert_int_equal(qp.hastened, 3);
}

/* A connection may be made so fast that the engine sees none without it. */
TEST(engine_check_link__each_new_connection_hastens)
{
	struct port *port = &engine->link->port;
	const struct port_ops *before = port->ops;

	fake_receiver = &qp;
	port->ops = &connected;
	engine_check_link(engine);
	engine->now_ns += 1000000000;
	qp.hastened = 0;
	engine_check_link(engine);
	assert_int_equal(qp.hastened, 0);
	port->connections++;
	engine_check_link(engine);
	assert_int_equal(qp.hastened, 1);
	/* The next one comes too soon, and has its turn later. */
	port->connections++;
	engine->now_ns += 10000000;
	engine_check_link(engine);
	assert_int_equal(qp.hastened, 1);
	engine->now_ns += 100000000;
	engine_check_link(engine);
	assert_int_equal(qp.hastened, 2);
	engine_check_link(engine);
	port->ops = before;
	assert_int_equal(qp.hastened, 2);
}

TEST(engine_check_link__a_lost_port_ends_everything)
{
	const struct port_ops lost = {
		.lost = lost_says_yes, .link_up = link_says_no, .connected = lost_says_no};
	const struct port_ops *before;
	struct port *port;

	port = &engine->link->port;
	before = port->ops;
	fake_receiver = &qp;
	engine->device->link_up = false;
	port->ops = &lost;
	engine_check_link(engine);
	assert_int_equal(fake_last_event, IBV_EVENT_DEVICE_FATAL);
	assert_true(qp.failed);
	/* The link's loss is reported once: after it there is nothing left to lose. */
	fake_last_event = 0;
	engine_check_link(engine);
	port->ops = before;
	port->started = true;
	assert_int_equal(fake_last_event, 0);
	rig_polls(1);
	assert_int_equal(qp.runs, 1);
}

/* The program has closed all its descriptors, and another file has the number. */
TEST(engine_check_link__a_closed_descriptor_ends_everything)
{
	const struct port_ops good = {
		.lost = lost_says_no, .link_up = link_says_no, .connected = lost_says_no};
	const int ours = eventfd(0, EFD_CLOEXEC), theirs = eventfd(0, EFD_CLOEXEC);
	const struct port_ops *before;
	struct port *port;

	port = &engine->link->port;
	before = port->ops;
	fake_receiver = &qp;
	engine->device->link_up = false;
	port->ops = &good;
	own_mark(ours);
	engine->canary_fd = ours;
	engine_check_link(engine);
	assert_int_equal(fake_last_event, 0);
	assert_int_equal(dup2(theirs, ours), ours);
	engine_check_link(engine);
	port->ops = before;
	port->started = true;
	assert_int_equal(fake_last_event, IBV_EVENT_DEVICE_FATAL);
	assert_true(qp.failed);
	close(ours);
	close(theirs);
}

TEST(engine_check_link__tells_of_changes_once)
{
	struct port *port;

	port = &engine->link->port;
	assert_true(engine->device->link_up);
	port->started = false;
	engine_check_link(engine);
	port->started = true;
	assert_int_equal(fake_last_event, IBV_EVENT_PORT_ERR);
	assert_false(engine->device->link_up);
	engine_check_link(engine);
	assert_int_equal(fake_last_event, IBV_EVENT_PORT_ACTIVE);
	assert_true(engine->device->link_up);
	fake_last_event = 0;
	engine_check_link(engine);
	assert_int_equal(fake_last_event, 0);
}

/* An engine that has ended, or belongs to a fork's parent, does nothing and blocks nobody. */
TEST(engine_disown__makes_every_call_return)
{
	assert_true(engine_try(engine));
	engine_disown(engine);
	ops->lock(engine);
	ops->unlock(engine);
	qp.to_send = 1;
	ops->kick(engine, &qp);
	ops->poll(engine);
	ops->wait(engine);
	assert_int_equal(qp.runs, 0);
}

static void *cancelled_in_a_poll(void *arg)
{
	assert_true(engine_try(engine));
	pthread_cancel(pthread_self());
	pthread_testcancel();
	engine_release(engine);
	*(bool *)arg = true;
	pthread_testcancel();
	*(bool *)arg = false;
	return NULL;
}

TEST(engine_try__protects_the_owner_from_being_cancelled)
{
	pthread_t thread;
	bool released = false;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, cancelled_in_a_poll, &released), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	/* The cancellation waits until the thread has released the engine, and not much longer. */
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_true(released);
	assert_true(engine_try(engine));
	engine_release(engine);
}

static void *cancelled_as_it_waits(void *arg)
{
	pthread_cancel(pthread_self());
	engine_lock(engine);
	engine_release(engine);
	pthread_testcancel();
	return arg;
}

TEST(engine_lock__protects_who_waits_from_being_cancelled)
{
	pthread_t thread;
	void *result;

	assert_true(engine_try(engine));
	assert_int_equal(pthread_create(&thread, NULL, cancelled_as_it_waits, NULL), 0);
	/* Wait until the thread waits for the engine. It spins for some time before it sleeps, and
	 * could be cancelled only there. */
	while (__atomic_load_n(&engine->owner.waiters, __ATOMIC_SEQ_CST) == 0)
		sched_yield();
	usleep(50000);
	engine_release(engine);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	/* No thread waits any more, so engine polls need not yield to any. */
	assert_int_equal(engine->owner.waiters, 0);
	assert_true(engine_try(engine));
	engine_release(engine);
}

/* The next packet may be for memory that was unmapped. */
TEST(engine_poll__unblocks_the_signals_of_faults)
{
	sigset_t all, before, now;

	rig_polls(1);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	usleep(1000); /* longer than GUARD_PERIOD_NS */
	rig_polls(1);
	pthread_sigmask(SIG_SETMASK, &before, &now);
	assert_false(sigismember(&now, SIGSEGV) || sigismember(&now, SIGBUS));
	assert_true(sigismember(&now, SIGTERM));
}
