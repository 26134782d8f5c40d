/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended completion queues. */
#include <fcntl.h>
#include <pthread.h>
#include <time.h>

#include "queue/cq.h"

#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

static void complete(struct ibv_cq_ex *cq, uint64_t wr_id)
{
	const struct ibv_wc wc = {
		.wr_id = wr_id,
		.status = IBV_WC_REM_ACCESS_ERR,
		.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
		.vendor_err = 1,
		.byte_len = 2,
		.imm_data = 3,
		.qp_num = 4,
		.src_qp = 5,
		.wc_flags = IBV_WC_WITH_IMM,
		.slid = 6,
		.sl = 7,
		.dlid_path_bits = 8,
	};

	assert_int_equal(cq_push(face_cq(ibv_cq_ex_to_cq(cq))->cq, &wc, false), 0);
}

static struct ibv_cq_ex *create(struct ibv_context *context, uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 8,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = flags,
	};

	return ibv_create_cq_ex(context, &attr);
}

TEST(create__is_a_queue_of_either_kind)
{
	struct ibv_cq_ex *cq = create(*state, 0);
	struct ibv_wc wc;

	assert_non_null(cq);
	complete(cq, 9);
	assert_int_equal(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 1);
	assert_int_equal(wc.wr_id, 9);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST(create__refuses_what_is_not_built)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 8};

	attr.wc_flags = IBV_WC_EX_WITH_FLOW_TAG;
	errno = 0;
	assert_null(ibv_create_cq_ex(*state, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
}

TEST(create__refuses_what_is_not_defined)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 8, .comp_mask = 1u << 31};

	errno = 0;
	assert_null(ibv_create_cq_ex(*state, &attr));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(create(*state, 1u << 31));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask = 0;
	attr.cqe = UINT32_MAX;
	assert_null(ibv_create_cq_ex(*state, &attr));
	assert_int_equal(errno, EINVAL);
}

TEST(poll__reads_every_field)
{
	struct ibv_cq_ex *cq = create(*state, 0);
	struct ibv_poll_cq_attr attr = {0};

	complete(cq, 10);
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	assert_int_equal(cq->wr_id, 10);
	assert_int_equal(cq->status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(ibv_wc_read_vendor_err(cq), 1);
	assert_int_equal(ibv_wc_read_byte_len(cq), 2);
	assert_int_equal(ibv_wc_read_imm_data(cq), 3);
	assert_int_equal(ibv_wc_read_qp_num(cq), 4);
	assert_int_equal(ibv_wc_read_src_qp(cq), 5);
	assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
	assert_int_equal(ibv_wc_read_slid(cq), 6);
	assert_int_equal(ibv_wc_read_sl(cq), 7);
	assert_int_equal(ibv_wc_read_dlid_path_bits(cq), 8);
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST(poll__iterates_and_ends_with_enoent)
{
	struct ibv_cq_ex *cq = create(*state, 0);
	struct ibv_poll_cq_attr attr = {0};

	assert_int_equal(ibv_start_poll(cq, &attr), ENOENT);
	complete(cq, 1);
	complete(cq, 2);
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	assert_int_equal(cq->wr_id, 1);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->wr_id, 2);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	assert_int_equal(ibv_start_poll(cq, &attr), ENOENT);
	attr.comp_mask = 1;
	assert_int_equal(ibv_start_poll(cq, &attr), EINVAL);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* The polls count like those of ibv_poll_cq: the helper leaves the engine to a program that always
 * finds completions. */
TEST(poll__tells_the_engine)
{
	struct ibv_cq_init_attr_ex init = {.cqe = 64};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(*state, &init);
	struct ibv_poll_cq_attr attr = {0};
	unsigned int polls;

	assert_int_equal(ibv_start_poll(cq, &attr), ENOENT);
	assert_int_equal(fake.polls, 1);
	assert_int_equal(fake.found, 0);
	for (uint64_t i = 0; i < 3; i++)
		complete(cq, i);
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(fake.found, 0);
	ibv_end_poll(cq);
	assert_int_equal(fake.found, 2);
	polls = fake.polls;
	/* A long iteration does not wait for its end to tell. */
	for (uint64_t i = 0; i < 60; i++)
		complete(cq, i);
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	for (uint64_t i = 0; i < 60; i++)
		assert_int_equal(ibv_next_poll(cq), 0);
	assert_true(fake.found > 2 && fake.found < 63);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	assert_int_equal(fake.found, 63);
	assert_int_equal(fake.polls, polls);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

struct poller {
	struct ibv_cq_ex *cq;
	bool done; /* atomic */
	uint64_t wr_id;
};

static void *poll_thread(void *arg)
{
	struct poller *poller = arg;
	struct ibv_poll_cq_attr attr = {0};

	assert_int_equal(ibv_start_poll(poller->cq, &attr), 0);
	poller->wr_id = poller->cq->wr_id;
	ibv_end_poll(poller->cq);
	__atomic_store_n(&poller->done, true, __ATOMIC_SEQ_CST);
	return NULL;
}

TEST(poll__by_two_threads_takes_turns)
{
	struct ibv_cq_ex *cq = create(*state, 0);
	struct ibv_poll_cq_attr attr = {0};
	struct poller poller = {.cq = cq};
	pthread_t thread;

	complete(cq, 1);
	complete(cq, 2);
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	assert_int_equal(pthread_create(&thread, NULL, poll_thread, &poller), 0);
	fake_yield();
	assert_false(__atomic_load_n(&poller.done, __ATOMIC_SEQ_CST));
	assert_int_equal(cq->wr_id, 1);
	ibv_end_poll(cq);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(poller.wr_id, 2);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* The promise of one thread is used: a second start_poll of that thread finds no lock. */
TEST(poll__single_threaded_takes_no_lock)
{
	struct ibv_cq_ex *cq = create(*state, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	struct ibv_poll_cq_attr attr = {0};

	complete(cq, 1);
	complete(cq, 2);
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	assert_int_equal(cq->wr_id, 2);
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST(overrun__may_be_ignored)
{
	struct ibv_cq_ex *cq = create(*state, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	struct ibv_context *context = *state;
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_async_event event;

	for (int i = 0; i < cq->cqe + 3; i++)
		complete(cq, (uint64_t)i);
	assert_int_equal(fcntl(context->async_fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(ibv_get_async_event(*state, &event), -1);
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	for (int i = 1; i < cq->cqe; i++)
		assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static uint64_t raw_clock(struct ibv_context *context)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

	assert_int_equal(ibv_query_rt_values_ex(context, &values), 0);
	assert_int_equal(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	return (uint64_t)values.raw_clock.tv_nsec;
}

static uint64_t wallclock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The fake engine's clock goes on by engine polls only. */
TEST(stamps__are_the_engines_time_of_the_completion)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 8,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(*state, &init);
	struct ibv_poll_cq_attr attr = {0};
	uint64_t first, second, before, stamp;

	assert_non_null(cq);
	fake.carries = true;
	first = raw_clock(*state);
	complete(cq, 1);
	assert_int_equal(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 0, NULL), 0);
	device_engine_poll(device_first(fake.device));
	second = raw_clock(*state);
	assert_true(second > first);
	complete(cq, 2);
	device_engine_poll(device_first(fake.device));
	before = wallclock();
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	assert_int_equal(ibv_wc_read_completion_ts(cq), first);
	stamp = ibv_wc_read_completion_wallclock_ns(cq);
	/* The past, by as much as the engine's clock has gone on. */
	assert_true(stamp >= before - (raw_clock(*state) - first));
	assert_true(stamp <= wallclock() - (raw_clock(*state) - first));
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(ibv_wc_read_completion_ts(cq), second);
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST(stamps__move_with_a_resize)
{
	struct ibv_cq_init_attr_ex init = {.cqe = 4,
					   .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(*state, &init);
	struct ibv_poll_cq_attr attr = {0};
	uint64_t stamps[6];

	fake.carries = true;
	for (uint64_t i = 0; i < 6; i++) {
		if (i == 2)
			assert_int_equal(ibv_resize_cq(ibv_cq_ex_to_cq(cq), 64), 0);
		stamps[i] = raw_clock(*state);
		complete(cq, i);
		device_engine_poll(device_first(fake.device));
	}
	for (uint64_t i = 0; i < 6; i++) {
		assert_int_equal(i == 0 ? ibv_start_poll(cq, &attr) : ibv_next_poll(cq), 0);
		assert_int_equal(cq->wr_id, i);
		assert_int_equal(ibv_wc_read_completion_ts(cq), stamps[i]);
	}
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST(query_rt_values__answers_what_is_asked)
{
	struct ibv_values_ex values = {.raw_clock.tv_nsec = 77};

	assert_int_equal(ibv_query_rt_values_ex(*state, &values), 0);
	assert_int_equal(values.raw_clock.tv_nsec, 77);
	values.comp_mask = 1u << 31;
	assert_int_equal(ibv_query_rt_values_ex(*state, &values), EINVAL);
}
