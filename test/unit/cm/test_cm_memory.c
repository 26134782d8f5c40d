/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the manager without memory, or without random numbers: the linker directs these calls
 * here, and any of them may fail. Nothing is lost but a message, which its sender repeats. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#include "agent_rig.h"
#include "cm_fixture.h"
#include "cm/ports.h"
#include "outbox.h"
#include "timers.h"

#define SECOND	 UINT64_C(1000000000)
#define NO_LIMIT UINT32_MAX

static uint32_t allowed = NO_LIMIT; /* allocations that succeed from now on */
static bool no_random;

static bool may_allocate(void)
{
	if (allowed == 0)
		return false;
	allowed -= allowed != NO_LIMIT;
	return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);

void *__wrap_malloc(size_t size)
{
	return may_allocate() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
	return may_allocate() ? __real_calloc(count, size) : NULL;
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
	return may_allocate() ? __real_reallocarray(old, count, size) : NULL;
}

ssize_t __real_getrandom(void *buf, size_t len, unsigned int flags);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned int flags);

ssize_t __wrap_getrandom(void *buf, size_t len, unsigned int flags)
{
	return __real_getrandom(buf, no_random ? len - 1 : len, flags);
}

static int tear_down(void **state)
{
	no_random = false;
	allowed = NO_LIMIT;
	return cm_fixture_tear_down(state);
}

TEST_FIXTURE(cm_fixture_set_up, tear_down);

static void receive_with(uint32_t allocations, const struct cm_mad *mad)
{
	allowed = allocations;
	rig_receive(&rig, mad);
	allowed = NO_LIMIT;
}

TEST(memory__manager_and_listener)
{
	const struct cm_listen_attr attr = {.service_id = 5, .any_address = true};
	const struct cm_config config = {.sink = &rig.sink};
	struct cm_listener *listener;
	struct cm *cm;
	int rc;

	allowed = 0;
	rc = cm_create(&config, &cm);
	assert_int_equal(rc, -ENOMEM);
	rc = cm_listen(rig.cm, &attr, &listener);
	allowed = NO_LIMIT;
	assert_int_equal(rc, -ENOMEM);
	assert_int_equal(cm_listen(rig.cm, &attr, &listener), 0);
}

TEST(memory__mad_that_is_to_be_sent)
{
	const uint8_t mad[MAD_LEN] = {1};
	struct outbox outbox = {0};
	int rc;

	allowed = 0;
	rc = outbox_push(&outbox, &rig.peer, mad);
	allowed = NO_LIMIT;
	assert_int_equal(rc, -ENOMEM);
	assert_null(outbox_first(&outbox));
	assert_int_equal(outbox_push(&outbox, &rig.peer, mad), 0);
	assert_memory_equal(outbox_first(&outbox)->bytes, mad, sizeof(mad));
	outbox_fini(&outbox);
}

TEST(memory__timers)
{
	struct cm_timers timers = {0};
	int rc;

	allowed = 0;
	rc = timers_reserve(&timers, 1);
	allowed = NO_LIMIT;
	assert_int_equal(rc, -ENOMEM);
	assert_int_equal(timers.room, 0);
	timers_fini(&timers);
}

/* A request is dropped, and gives its place in the backlog back. Each number of allocations is
 * tried twice, because the first try may leave memory for timers that the second one need not
 * allocate. */
static void request_without_memory(struct cm_mad req, enum cm_event_type type)
{
	uint32_t failures = 0;

	receive_with(failures, &req);
	while (!cm_next_event(rig.cm, &rig.event)) {
		assert_int_equal(cm_stats(rig.cm)->no_room, ++failures);
		assert_int_equal(cm_conn_count(rig.cm), 0);
		assert_int_equal(rig.sent, 0);
		receive_with(failures / 2, &req);
	}
	assert_int_equal(rig.event.type, type);
	assert_int_equal(failures, 4);
	assert_int_equal(cm_stats(rig.cm)->full, 0);
}

TEST(memory__request)
{
	const struct cm_listen_attr attr = {
		.service_id = RIG_SERVICE, .any_address = true, .backlog = 1};

	cm_unlisten(rig.listener, rig.now_ns);
	assert_int_equal(cm_listen(rig.cm, &attr, &rig.listener), 0);
	request_without_memory(rig_req(), CM_EVENT_REQ);
}

TEST(memory__sidr_request)
{
	const struct cm_listen_attr attr = {
		.service_id = RIG_DATAGRAMS, .any_address = true, .datagrams = true, .backlog = 1};

	cm_unlisten(rig.datagrams, rig.now_ns);
	assert_int_equal(cm_listen(rig.cm, &attr, &rig.datagrams), 0);
	request_without_memory(rig_sidr_req(), CM_EVENT_SIDR_REQ);
}

/* A full backlog without the filter for repeated requests: none is let in. */
TEST(memory__filter_of_repeated_requests)
{
	const struct cm_listen_attr attr = {
		.service_id = RIG_SERVICE, .any_address = true, .backlog = 4};
	struct cm_mad req = rig_req();

	cm_unlisten(rig.listener, rig.now_ns);
	assert_int_equal(cm_listen(rig.cm, &attr, &rig.listener), 0);
	for (int i = 0; i < 4; i++) {
		req.local_id++;
		req.req.qpn++;
		rig_receive(&rig, &req);
	}
	req.local_id++;
	req.req.qpn++;
	for (int i = 0; i < 3; i++)
		receive_with(0, &req);
	assert_int_equal(cm_conn_count(rig.cm), 4);
	assert_int_equal(cm_stats(rig.cm)->full, 3);
	rig_receive(&rig, &req);
	rig_receive(&rig, &req);
	assert_int_equal(cm_conn_count(rig.cm), 5);
}

TEST(memory__connect_and_resolve)
{
	const struct cm_connect_attr attr = rig_connect_attr(&rig);
	const struct cm_resolve_attr resolve = {.to = rig.peer};
	struct cm_conn *conn;
	int rc;

	for (uint32_t i = 0; i < 2; i++) {
		allowed = i;
		rc = cm_connect(rig.cm, &attr, rig.now_ns, &conn);
		if (rc == 0)
			break;
		assert_int_equal(rc, -ENOMEM);
		allowed = 0;
		assert_int_equal(cm_resolve(rig.cm, &resolve, rig.now_ns, &conn), -ENOMEM);
		assert_int_equal(cm_conn_count(rig.cm), 0);
		assert_int_equal(rig.sent, 0);
	}
	allowed = NO_LIMIT;
	assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &conn), 0);
	assert_int_equal(cm_resolve(rig.cm, &resolve, rig.now_ns, &conn), 0);
}

/* A message whose event finds no memory counts as lost: nothing changes, and the peer repeats
 * it. */
TEST(memory__event)
{
	struct cm_mad rep;
	unsigned int sent;

	rig_bring(&rig, CM_STATE_REQ_SENT);
	sent = rig.sent;
	rep = rig_message(&rig, CM_REP);
	receive_with(0, &rep);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_REQ_SENT);
	assert_int_equal(cm_stats(rig.cm)->no_room, 1);
	assert_int_equal(cm_stats(rig.cm)->unexpected, 0);
	assert_int_equal(rig.sent, sent);
	rig_no_event(&rig);
	rig_receive(&rig, &rep);
	rig_event(&rig, CM_EVENT_REP);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_REP_RCVD);
}

/* A timer whose event finds no memory runs again after a second. */
TEST(memory__timer)
{
	rig_bring(&rig, CM_STATE_TIMEWAIT);
	allowed = 0;
	rig_expire(&rig);
	allowed = NO_LIMIT;
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_TIMEWAIT);
	assert_true(cm_deadline_ns(rig.cm) == rig.now_ns + SECOND);
	rig_expire(&rig);
	rig_event(&rig, CM_EVENT_TIMEWAIT_EXIT);
}

TEST(memory__agent)
{
	uint32_t failures = 0;
	int rc;

	agent_rig_init_bare();
	do {
		allowed = failures;
		rc = agent_get(agent_rig.device, &agent_rig_notify, &agent_rig.agent);
		allowed = NO_LIMIT;
		if (rc != 0) {
			assert_int_equal(rc, -ENOMEM);
			assert_null(agent_rig.device->gsi);
			failures++;
		}
	} while (rc != 0);
	assert_int_equal(failures, 2);
	agent_rig_fini();
}

TEST(memory__port)
{
	struct cm_port_claim claim = {.space = CM_PS_TCP, .port = 7174, .any_address = true};
	uint32_t id;
	int rc;

	allowed = 0;
	rc = cm_ports_local.claim(NULL, &claim, &id);
	allowed = NO_LIMIT;
	assert_int_equal(rc, -ENOMEM);
	assert_int_equal(cm_ports_local.claim(NULL, &claim, &id), 0);
	cm_ports_local.release(NULL, id);
}

/* An id or a port that could be guessed is worse than none. */
TEST(random__none)
{
	struct cm_port_claim claim = {.space = CM_PS_TCP, .any_address = true};
	const struct cm_connect_attr attr = rig_connect_attr(&rig);
	const struct cm_config config = {.sink = &rig.sink};
	struct cm_conn *conn;
	struct cm *cm;
	uint32_t id;

	no_random = true;
	assert_int_equal(cm_create(&config, &cm), -EIO);
	assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &conn), -ENOMEM);
	assert_int_equal(cm_conn_count(rig.cm), 0);
	assert_int_equal(cm_ports_local.claim(NULL, &claim, &id), -EIO);
	assert_int_equal(claim.port, 0);
}
