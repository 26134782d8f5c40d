/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/helper.c: a helper of two engines, and its end. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/own.h"
#include "engine/engines.h"
#include "engine_rig.h"
#include "helper_thread.h"
#include "open_fds.h"
#include "test.h"

TEST_GROUP(rig_group_set_up, NULL);

static int set_up_idle(TEST_STATE)
{
	return rig_begin(SETTINGS_PROGRESS_HYBRID);
}

TEST_FIXTURE(set_up_idle, rig_tear_down);

/* Two engines of a device. */
static struct engine *further;

static int begin_two(enum settings_progress progress)
{
	if (rig_begin(progress) != 0)
		return -1;
	further = rig_add_engine();
	return !further || helper_start(engine) != 0 || helper_start(further) != 0 ? -1 : 0;
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
	struct engines *engines = engine->engines;

	if (helper_stop(engine) != 0 || helper_stop(further) != 0)
		return -1;
	port_destroy(&further->link->port);
	free(further);
	free(engines);
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
	return rig_eventually(&sleeper->timeouts, before + 1);
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
	assert_true(rig_eventually(&qp.timeouts, 1));
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
	const uint64_t before = engine->polling.engine_polls;

	other.deadline_ns = clock_ns(&further->clock) + 3000000;
	ops->kick(further, &other);
	ops->wait(further);
	for (int i = 0; i < TIMEOUT_MS * 100 && engine->polling.engine_polls < before + 1000; i++)
		ops->poll(engine);
	assert_true(engine->polling.engine_polls >= before + 1000);
	assert_true(rig_eventually(&other.timeouts, 1));
	/* The helper runs the engine again as soon as nobody polls. */
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
	/* The helper has prepared to sleep for the first engine, and not for the ended one. */
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
