/* SPDX-License-Identifier: BSD-3-Clause */
/* A device without a port, registered as the only one. */
#include "fake_provider.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "device/registry.h"
#include "qp/qp.h"
#include "raise_qp.h"

#define FAKE_FRAMES_MAX 64

struct fake fake;
uint32_t fake_engines;

/* Packets between one engine poll and the next. */
static struct {
	struct packet_sink sink;
	struct packet_out out;
	uint8_t frames[FAKE_FRAMES_MAX][PACKET_FRAME_MAX];
	uint32_t lengths[FAKE_FRAMES_MAX];
	unsigned int count;
	uint64_t now_ns;
} link_state;

static struct packet_out *sink_get(struct packet_sink *sink)
{
	(void)sink;
	if (link_state.count == FAKE_FRAMES_MAX)
		return NULL;
	link_state.out.frame = link_state.frames[link_state.count];
	return &link_state.out;
}

static int sink_put(struct packet_sink *sink, struct packet_out *out)
{
	const int len = packet_seal(out);

	(void)sink;
	if (len < 0)
		return len;
	link_state.lengths[link_state.count++] = (uint32_t)len;
	return 0;
}

static bool run_qps(void)
{
	bool more = false;

	for (int i = 0; i < FAKE_QPS_MAX; i++) {
		if (fake.attached[i])
			more |= qp_run(fake.attached[i], link_state.now_ns, &link_state.sink, 16);
	}
	return more;
}

/* Engine polls until nothing moves. */
static void carry(void)
{
	bool more;

	do {
		struct qp *qp;

		link_state.count = 0;
		link_state.now_ns += 1000;
		more = run_qps();
		for (unsigned int i = 0; i < link_state.count; i++)
			assert_true(device_receive(device_first(fake.device), link_state.frames[i],
						   link_state.lengths[i], FRAME_SOURCE_GOOD,
						   link_state.now_ns, &qp));
	} while (more || link_state.count > 0);
}

/* The argument of an engine's operations is its element of fake.engine_waits. */
static void assert_is_engine(const void *engine)
{
	const unsigned int *waits = engine;

	assert_in_range((uintptr_t)waits, (uintptr_t)fake.engine_waits,
			(uintptr_t)&fake.engine_waits[fake.device->engine_count - 1]);
}

static void fake_lock(void *engine)
{
	assert_is_engine(engine);
	/* Each engine of the device is locked once. */
	assert_true(fake.held < fake.device->engine_count);
	fake.held++;
	fake.locked = true;
	__atomic_add_fetch(&fake.locks, 1, __ATOMIC_SEQ_CST);
}

static void fake_unlock(void *engine)
{
	assert_is_engine(engine);
	assert_true(fake.locked);
	fake.locked = --fake.held > 0;
}

static void fake_attach(void *engine, struct qp *qp)
{
	assert_is_engine(engine);
	assert_true(fake.locked);
	assert_ptr_equal(device_find_qp(fake.device, qp_number(qp)), qp);
	for (int i = 0; i < FAKE_QPS_MAX; i++) {
		if (!fake.attached[i]) {
			fake.attached[i] = qp;
			return;
		}
	}
	fail_msg("too many queue pairs");
}

static void fake_detach(void *engine, struct qp *qp)
{
	assert_is_engine(engine);
	assert_true(fake.locked);
	for (int i = 0; i < FAKE_QPS_MAX; i++) {
		if (fake.attached[i] == qp)
			fake.attached[i] = NULL;
	}
	__atomic_add_fetch(&fake.detaches, 1, __ATOMIC_SEQ_CST);
}

static void fake_kick(void *engine, struct qp *qp)
{
	assert_is_engine(engine);
	assert_false(fake.locked);
	assert_non_null(qp);
	fake.kicks++;
	if (fake.carries)
		carry();
}

static void fake_settle(void *engine, struct qp *qp)
{
	assert_is_engine(engine);
	assert_true(fake.locked);
	assert_non_null(qp);
	fake.settled++;
}

static void fake_poll(void *engine)
{
	assert_is_engine(engine);
	fake.polls++;
	if (fake.carries)
		carry();
}

static void fake_polled(void *engine, int n)
{
	assert_is_engine(engine);
	fake.found += n;
}

static void fake_wait(void *engine)
{
	unsigned int *waits = engine;

	assert_is_engine(engine);
	++*waits;
	fake.waits++;
}

static uint64_t fake_now(void *engine)
{
	assert_is_engine(engine);
	return link_state.now_ns;
}

static int fake_join(void *engine, const union ibv_gid *gid)
{
	(void)gid;
	assert_is_engine(engine);
	assert_false(fake.locked);
	if (fake.join_result == 0)
		fake.joined++;
	return fake.join_result;
}

static void fake_leave(void *engine, const union ibv_gid *gid)
{
	(void)gid;
	assert_is_engine(engine);
	assert_false(fake.locked);
	fake.joined--;
}

static int fake_resolve(void *engine, uint8_t sgid_index, const union ibv_gid *dgid, uint8_t mac[6])
{
	(void)sgid_index;
	(void)dgid;
	assert_is_engine(engine);
	assert_false(fake.locked);
	fake.resolves++;
	memcpy(mac, fake.mac, 6);
	return fake.resolve_result;
}

static const struct engine_ops fake_ops = {
	.lock = fake_lock,
	.unlock = fake_unlock,
	.attach = fake_attach,
	.detach = fake_detach,
	.kick = fake_kick,
	.settle = fake_settle,
	.poll = fake_poll,
	.polled = fake_polled,
	.wait = fake_wait,
	.now = fake_now,
};

static const struct device_net_ops fake_net = {
	.join = fake_join,
	.leave = fake_leave,
	.resolve = fake_resolve,
};

/* A real start sleeps, as this may: threads can be cancelled there. */
static int fake_start(struct device **devices, size_t max)
{
	const struct device_config config = {
		.name = "fake0",
		.mac = {0x02, 0, 0, 0, 0, 0x01},
		.port_mtu_bytes = 9000,
		.link_mbps = 100000,
		.engines = fake_engines,
		.unique = "fake",
	};
	static const union ibv_gid gids[] = {
		[FAKE_GID_V4] = {.raw = {[10] = 0xff, 0xff, 10, 0, 0, 1}},
		[FAKE_GID_V6] = {.raw = {0xfd, [15] = 1}},
	};

	pthread_testcancel();
	assert_true(max >= 1);
	assert_int_equal(device_create(&config, &fake.device), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(device_add_gid(fake.device, &gids[i], -1, 7), i);
	fake.device->link_up = true;
	fake.device->net = &fake_net;
	fake.device->net_user = &fake.engine_waits[0];
	for (uint32_t i = 0; i < fake.device->engine_count; i++) {
		fake.device->engines[i]->ops = &fake_ops;
		fake.device->engines[i]->driver = &fake.engine_waits[i];
		fake.device->engines[i]->now_ns = &link_state.now_ns;
	}
	link_state.sink = (struct packet_sink){.get = sink_get, .put = sink_put};
	devices[0] = fake.device;
	return 1;
}

static const struct device_provider provider = {.start = fake_start};

__attribute__((constructor)) static void fake_register(void)
{
	registry_set_provider(&provider);
}

struct ibv_context *fake_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	assert_non_null(list);
	assert_non_null(list[0]);
	context = ibv_open_device(list[0]);
	assert_non_null(context);
	ibv_free_device_list(list);
	memcpy(fake.mac, fake.device->config.mac, sizeof(fake.mac));
	return context;
}

int fake_setup(void **state)
{
	*state = fake_open();
	return 0;
}

int fake_close(void **state)
{
	struct device *device = fake.device;

	assert_int_equal(ibv_close_device(*state), 0);
	assert_int_equal(device->qps, 0);
	memset(&fake, 0, sizeof(fake));
	fake.device = device;
	return 0;
}

struct ibv_ah_attr fake_ah_attr(uint8_t sgid_index)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = {.sgid_index = sgid_index, .dgid = fake.device->gids[sgid_index].gid},
	};
}

struct fake_pair fake_pair_create(struct ibv_context *context)
{
	struct fake_pair pair = {
		.pd = ibv_alloc_pd(context),
		.cq = ibv_create_cq(context, 64, NULL, NULL, 0),
	};
	struct ibv_qp_init_attr init = {
		.send_cq = pair.cq,
		.recv_cq = pair.cq,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2},
		.qp_type = IBV_QPT_RC,
	};

	pair.qp = ibv_create_qp(pair.pd, &init);
	assert_non_null(pair.qp);
	return pair;
}

void fake_pair_destroy(struct fake_pair *pair)
{
	assert_int_equal(ibv_destroy_qp(pair->qp), 0);
	assert_int_equal(ibv_destroy_cq(pair->cq), 0);
	assert_int_equal(ibv_dealloc_pd(pair->pd), 0);
}

int fake_connect(struct ibv_qp *qp, uint32_t dest_qpn, uint8_t gid_index, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.qkey = FAKE_QKEY,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = fake_ah_attr(gid_index),
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	return raise_qp_to(qp, &attr, to);
}

void fake_yield(void)
{
	for (int i = 0; i < 2000; i++)
		sched_yield();
}
