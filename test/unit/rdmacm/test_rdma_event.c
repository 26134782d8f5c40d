/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/rdma_event.c. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "later.h"
#include "rdmacm_rig.h"
#include "sanitizer.h"

TEST_FIXTURE(rig_set_up, rig_tear_down);

/* An id with an event that the program has and has not acknowledged. */
static struct rdma_cm_id *hold_event(struct rdma_cm_event **event)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, 1), 1000), 0);
	*event = rig_event_of(rig_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	return id;
}

TEST(rdma_get_cm_event__descriptor_tells)
{
	struct pollfd poll_fd = {.fd = rig_channel->fd, .events = POLLIN};
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	assert_int_equal(poll(&poll_fd, 1, 0), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, 1), 1000), 0);
	assert_int_equal(poll(&poll_fd, 1, 0), 1);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(poll(&poll_fd, 1, 0), 0);
	rdma_destroy_id(id);
}

TEST(rdma_get_cm_event__wrong_calls)
{
	struct rdma_cm_event *event;

	rig_fails(rdma_get_cm_event(NULL, &event), EINVAL);
	rig_fails(rdma_get_cm_event(rig_channel, NULL), EINVAL);
	rig_fails(rdma_get_cm_event(rig_channel, &event), EAGAIN);
	rig_fails(rdma_ack_cm_event(NULL), EINVAL);
	rdma_destroy_event_channel(NULL);
}

static unsigned int waits;

static void count_wait(void)
{
	waits++;
}

/* The engine's helper runs when it hears that the program is about to sleep. It may receive
 * completions together with the end of their connection, which the program must not hear before it
 * polls again. */
TEST(rdma_get_cm_event__reads_before_the_helper_runs)
{
	struct rig_pair pair = rig_connect();
	struct rdma_cm_event *event;

	rig.waiting = count_wait;
	waits = 0;
	assert_int_equal(rdma_disconnect(pair.active), 0);
	/* The rig's wire moves packets when a call waits. */
	rig_fails(rdma_get_cm_event(rig_channel, &event), EAGAIN);
	assert_int_equal(waits, 1);
	rig.waiting = count_wait;
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_DISCONNECTED), pair.passive);
	assert_int_equal(waits, 1);
	rig_end(&pair);
}

/* The same thread may sleep in the call until the helper has received an event. */
TEST(rdma_get_cm_event__of_a_blocking_channel_waits_first)
{
	struct rig_pair pair = rig_connect();
	struct rdma_cm_event *event;

	assert_int_equal(fcntl(rig_channel->fd, F_SETFL, 0), 0);
	assert_int_equal(rdma_disconnect(pair.active), 0);
	assert_int_equal(rdma_get_cm_event(rig_channel, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	rig_end(&pair);
}

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static void signal_soon(void)
{
	const struct itimerval soon = {.it_value.tv_usec = 10000};
	const struct sigaction action = {.sa_handler = count_signal};

	signals = 0;
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
}

TEST(rdma_get_cm_event__signal_ends_the_wait)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;

	signal_soon();
	rig_fails(rdma_get_cm_event(channel, &event), EINTR);
	assert_int_equal(signals, 1);
	rdma_destroy_event_channel(channel);
}

/* The peer answers when the program waits for the second time. */
static void answer_later(void)
{
	if (signals == 0)
		return;
	rig.waiting = NULL;
	rig.silent = false;
	rig_pass(RIG_SECOND / 10);
}

/* Synchronous calls have an outcome of their own: a signal is none. */
TEST(event_complete__signal_does_not_end_a_synchronous_call)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	rig.silent = true;
	rig.waiting = answer_later;
	signal_soon();
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, 1), 1000), 0);
	assert_int_equal(signals, 1);
	rdma_destroy_id(id);
}

static bool acknowledged;

static void *acknowledge_later(void *event)
{
	usleep(20000);
	acknowledged = true;
	rdma_ack_cm_event(event);
	return NULL;
}

TEST(rdma_destroy_id__waits_for_what_is_not_acknowledged)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id = hold_event(&event);
	pthread_t thread;

	acknowledged = false;
	assert_int_equal(pthread_create(&thread, NULL, acknowledge_later, event), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_true(acknowledged);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

TEST(rdma_migrate_id__waits_for_what_is_not_acknowledged)
{
	struct rdma_event_channel *other = rig_create_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id = hold_event(&event);
	pthread_t thread;

	acknowledged = false;
	assert_int_equal(pthread_create(&thread, NULL, acknowledge_later, event), 0);
	assert_int_equal(rdma_migrate_id(id, other), 0);
	assert_true(acknowledged);
	assert_int_equal(pthread_join(thread, NULL), 0);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(other);
}

static bool destroyed;

static void *destroy(void *id)
{
	rdma_destroy_id(id);
	destroyed = true;
	pthread_testcancel();
	return NULL;
}

/* A thread that is cancelled as it waits ends with its id destroyed, and no lock held. */
TEST(rdma_destroy_id__thread_is_cancelled_after_it)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id = hold_event(&event);
	pthread_t thread;
	void *result;

	destroyed = false;
	assert_int_equal(pthread_create(&thread, NULL, destroy, id), 0);
	usleep(20000);
	assert_int_equal(pthread_cancel(thread), 0);
	usleep(20000);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_true(destroyed);
}

static void *read_event(void *channel)
{
	struct rdma_cm_event *event;

	rdma_get_cm_event(channel, &event);
	return NULL;
}

TEST(rdma_get_cm_event__thread_is_cancelled_within)
{
	struct rdma_event_channel *channel;
	pthread_t thread;

	/* The address sanitizer does not know the stack of a thread that is cancelled in a system
	 * call. */
	if (ADDRESS_SANITIZER)
		skip();
	channel = rdma_create_event_channel();
	assert_int_equal(pthread_create(&thread, NULL, read_event, channel), 0);
	usleep(20000);
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	rig_no_event(channel);
	rdma_destroy_event_channel(channel);
}

/* A queue pair that cannot be made ready is the end of the connection, for both sides. */
TEST(take_response__queue_pair_in_the_wrong_state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct rig_pair pair = rig_ask();
	struct rdma_cm_event *event;

	rig_create_qp(pair.passive);
	assert_int_equal(rdma_accept(pair.passive, NULL), 0);
	assert_int_equal(ibv_modify_qp(pair.active->qp, &attr, IBV_QP_STATE), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_CONNECT_ERROR);
	assert_ptr_equal(event->id, pair.active);
	assert_int_equal(event->status, -EINVAL);
	rdma_ack_cm_event(event);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_REJECTED);
	assert_ptr_equal(event->id, pair.passive);
	assert_int_equal(event->status, CM_REJ_CONSUMER_DEFINED);
	rdma_ack_cm_event(event);
	rig_end(&pair);
}

/* The peer has accepted, and has rejected before the program reads the answer. CONNECT_ERROR is the
 * only event that says so, as with rdma-core: a program ends the id at the first such event. */
TEST(take_response__peer_has_rejected_meanwhile)
{
	struct pollfd poll_fd = {.fd = rig_channel->fd, .events = POLLIN};
	struct rig_pair pair = rig_ask();

	rig_create_qp(pair.passive);
	assert_int_equal(rdma_accept(pair.passive, NULL), 0);
	rig_pass(0);
	rdma_destroy_qp(pair.passive);
	assert_int_equal(rdma_destroy_id(pair.passive), 0);
	pair.passive = NULL;
	rig_pass(0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_CONNECT_ERROR), pair.active);
	assert_int_equal(pair.active->qp->state, IBV_QPS_ERR);
	assert_int_equal(poll(&poll_fd, 1, 0), 0);
	rig_pass(200 * RIG_SECOND);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_TIMEWAIT_EXIT), pair.active);
	rig_no_event(rig_channel);
	rig_end(&pair);
}

/* Another thread cannot destroy the queue pair while REJECTED moves it to the error state. */
TEST(take_last__locks_the_queue_pair)
{
	struct rig_pair pair = rig_ask();

	rdma_reject(pair.passive, NULL, 0);
	rig_pass(0);
	rig_try_qp_lock(pair.active);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_REJECTED), pair.active);
	assert_int_equal(rig.qp_lock_rc, EBUSY);
	assert_int_equal(pair.active->qp->state, IBV_QPS_ERR);
	rig_end(&pair);
}

/* A second thread has taken the REJECTED when the first one takes the CONNECT_RESPONSE. */
TEST(take_last__comes_once)
{
	struct rig_pair pair = rig_ask();
	struct rdma_cm_event *event;

	rdma_reject(pair.passive, NULL, 0);
	rig_pass(0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_REJECTED), pair.active);
	assert_int_equal(event_tell(cm_id_of(pair.active), RDMA_CM_EVENT_CONNECT_RESPONSE, 0), 0);
	assert_int_equal(event_tell(cm_id_of(pair.active), RDMA_CM_EVENT_DISCONNECTED, 0), 0);
	rig_fails(rdma_get_cm_event(rig_channel, &event), EAGAIN);
	rig_end(&pair);
}

TEST(event_raise__request_is_on_its_listeners_channel)
{
	struct rdma_event_channel *other = rig_create_channel();
	struct rdma_cm_id *listener = rig_listen(RDMA_PS_TCP);
	struct cm_id *child = id_create(rig_channel, NULL, RDMA_PS_TCP, IBV_QPT_RC);
	struct id_event *event =
		event_create(cm_id_of(listener), child, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	assert_int_equal(rdma_migrate_id(listener, other), 0);
	event_raise(event);
	assert_ptr_equal(child->public.channel, other);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(other);
}

TEST(rdma_event_str__every_event_has_its_own_name)
{
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED),
			    "RDMA_CM_EVENT_ADDR_RESOLVED");
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT),
			    "RDMA_CM_EVENT_TIMEWAIT_EXIT");
	assert_string_equal(rdma_event_str(LATER_EVENT_USER), "RDMA_CM_EVENT_USER");
	for (int i = 1; i <= (int)LATER_EVENT_INTERNAL; i++)
		assert_string_not_equal(rdma_event_str((enum rdma_cm_event_type)i),
					rdma_event_str((enum rdma_cm_event_type)(i - 1)));
}

TEST(rdma_event_str__unknown)
{
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type)99), "UNKNOWN EVENT");
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type) - 1), "UNKNOWN EVENT");
}
