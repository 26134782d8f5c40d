/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/helper.c: for what a helper in idle sleep is called. */
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine_rig.h"
#include "helper_thread.h"
#include "test.h"

TEST_GROUP(rig_group_set_up, NULL);

static int set_up_idle(TEST_STATE)
{
	return rig_begin(SETTINGS_PROGRESS_HYBRID);
}

TEST_FIXTURE(set_up_idle, rig_tear_down);

static struct helper_thread nobody = {.wake_fd = -1}; /* a helper that does not run */

/* Make the engine's helper seem to be in idle sleep; no thread runs here. */
static void sleep_until(uint64_t now_ns, uint64_t until_ns)
{
	handover_take_call(engine);
	assert_true(handover_idle_sleep(engine, now_ns, until_ns - now_ns) > 0);
}

TEST(helper__is_called_for_what_a_kick_leaves)
{
	const uint64_t start_ns = clock_ns(&engine->clock);

	fake_receiver = &other;
	sleep_until(start_ns, start_ns + UINT64_C(1000000000000));
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

	sleep_until(start_ns, start_ns + UINT64_C(1000000000000));
	ops->lock(engine);
	qp.to_send = 1000;
	ops->kick(engine, &qp);
	ops->unlock(engine);
	assert_true(qp.to_send < 1000 && qp.to_send > 0);
	assert_int_equal(handover_take_call(engine), CALL_TO_LOOK);
}

/* A poll holds no acknowledgement back that a helper in idle sleep would have to send. */
TEST(helper__is_not_called_for_what_a_poll_acknowledges)
{
	const uint64_t start_ns = clock_ns(&engine->clock);

	engine->ack_hold_ns = engine->ack_hold_beyond_ns = UINT64_MAX;
	fake_receiver = &other;
	other.only_ack = true;
	sleep_until(start_ns, start_ns + UINT64_C(1000000000000));
	qp.to_send = 1;
	ops->kick(engine, &qp);
	assert_int_equal(handover_take_call(engine), CALL_NONE);
	ops->poll(engine);
	assert_int_equal(other.received, 1);
	assert_int_equal(other.runs, 1);
	assert_int_equal(handover_take_call(engine), CALL_NONE);
	/* While it watches the program, the program's next engine poll sends it. */
	handover_wake(engine);
	qp.to_send = 1;
	ops->kick(engine, &qp);
	ops->poll(engine);
	assert_int_equal(other.received, 2);
	assert_int_equal(other.runs, 1);
}

/* A helper in idle sleep until frames come runs the engine already. */
TEST(helper__is_not_called_if_frames_wake_it)
{
	const uint64_t start_ns = clock_ns(&engine->clock);
	const int fd = eventfd(0, EFD_CLOEXEC);

	assert_true(fd >= 0);
	engine->helper.thread = &nobody; /* as sleep_until makes it seem */
	sleep_until(start_ns, start_ns + UINT64_C(1000000000000));
	engine->link->port.wake_fd = fd;
	ops->wait(engine);
	assert_int_equal(handover_take_call(engine), CALL_NONE);
	/* Without a descriptor the helper would not notice frames in time. */
	engine->link->port.wake_fd = -1;
	ops->wait(engine);
	assert_int_equal(handover_take_call(engine), CALL_TO_RUN);
	/* The helper watches the program, and frames do not wake the helper. */
	engine->link->port.wake_fd = fd;
	handover_wake(engine);
	handover_short_sleep(engine);
	ops->wait(engine);
	assert_int_equal(handover_take_call(engine), CALL_TO_RUN);
	engine->link->port.wake_fd = -1;
	engine->helper.thread = NULL;
	close(fd);
}

TEST(helper__is_called_for_a_timer_that_ends_before_its_sleep)
{
	const uint64_t start_ns = clock_ns(&engine->clock);

	qp.deadline_ns = start_ns + 5000000;
	sleep_until(start_ns, start_ns + 1000000);
	ops->kick(engine, &qp);
	assert_int_equal(handover_take_call(engine), CALL_NONE);
	handover_wake(engine);
	/* The helper knows this timer. The next timer is earlier. */
	sleep_until(start_ns, start_ns + 20000000);
	ops->kick(engine, &qp);
	assert_int_equal(handover_take_call(engine), CALL_NONE);
	qp.deadline_ns = start_ns + 2000000;
	ops->kick(engine, &qp);
	assert_int_equal(handover_take_call(engine), CALL_TO_LOOK);
}
