/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions that come and go under traffic, from several threads. What a packet must not touch any
 * more is watched in two ways: by a pattern in memory that is mapped anew at the same place, and by
 * the address sanitizer, for memory that was freed.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "live.h"
#include "test.h"

TEST_GROUP(live_set_up, live_tear_down);

#define THREADS	   4
#define ROUNDS	   60
#define MESSAGES   16 /* posted before the region goes */
#define BYTES	   16384
#define PATTERN	   0x5a
#define REGIONS	   16
#define REG_ROUNDS 100

#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

/* Note a failed condition in a thread, and leave the thread. */
#define REQUIRE(what)                                                                       \
	do {                                                                                \
		if (!(what)) {                                                              \
			fprintf(stderr, "%s:%d: %s: errno %d\n", __func__, __LINE__, #what, \
				errno);                                                     \
			return "failed";                                                    \
		}                                                                           \
	} while (0)

static void run_threads(void *(*body)(void *arg), size_t count, void *arg, size_t arg_size)
{
	pthread_t threads[THREADS];
	void *result;

	for (size_t i = 0; i < count; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, body, (char *)arg + i * arg_size), 0);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_null(result);
	}
}

static uint8_t *map_at(uint8_t *at)
{
	void *map = mmap(at, BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

/* The place of the region that goes away, in the requests. */
enum place { TARGET_OF_WRITE, TARGET_OF_ATOMIC, SINK_OF_READ, RECEIVE_BUFFER, PLACES };

/* Requests between the memory that goes and some that stays. */
static bool post_messages(struct lane *lane, enum place place, const struct ibv_mr *going,
			  const struct ibv_mr *staying)
{
	const bool local = place == SINK_OF_READ || place == RECEIVE_BUFFER;
	const struct ibv_mr *near = place == SINK_OF_READ ? going : staying;
	const struct ibv_mr *far = local ? staying : going;
	struct ibv_sge sge = {.addr = (uintptr_t)near->addr, .length = BYTES, .lkey = near->lkey};
	struct ibv_sge into = {
		.addr = (uintptr_t)going->addr, .length = BYTES, .lkey = going->lkey};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {.remote_addr = (uintptr_t)far->addr, .rkey = far->rkey},
	};

	if (place == SINK_OF_READ)
		wr.opcode = IBV_WR_RDMA_READ;
	if (place == RECEIVE_BUFFER)
		wr.opcode = IBV_WR_SEND;
	if (place == TARGET_OF_ATOMIC) {
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = (uintptr_t)far->addr;
		wr.wr.atomic.rkey = far->rkey;
		wr.wr.atomic.compare_add = 1;
		sge.length = 8;
	}
	for (int i = 0; i < MESSAGES; i++) {
		if (place == RECEIVE_BUFFER && !lane_recv(lane, &into))
			return false;
		if (!lane_send(lane, wr, &sge))
			return false;
	}
	return true;
}

/* Everything that was posted completes, also what now has no peer. */
static bool finish(struct lane *lane, enum place place)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};

	if (place != RECEIVE_BUFFER)
		return lane_wait(lane, MESSAGES) >= 0;
	return ibv_modify_qp(lane->b, &error, IBV_QP_STATE) == 0 &&
	       ibv_modify_qp(lane->a, &error, IBV_QP_STATE) == 0 &&
	       lane_wait(lane, 2 * MESSAGES) >= 0;
}

/* The region ends, or gets other memory. */
static bool take_away(struct ibv_mr *mr, uint8_t *elsewhere)
{
	if (!elsewhere)
		return ibv_dereg_mr(mr) == 0;
	return ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, elsewhere, BYTES, 0) == 0;
}

static void *take_away_and_unmap(void *arg)
{
	const size_t seed = *(const size_t *)arg;
	uint8_t *staying = map_at(NULL), *going = map_at(NULL), *elsewhere = map_at(NULL);
	struct ibv_mr *staying_mr, *mr;
	struct lane lane;

	REQUIRE(staying && going && elsewhere && lane_open(&lane, live_context));
	staying_mr = ibv_reg_mr(lane.pd, staying, BYTES, ACCESS);
	REQUIRE(staying_mr);
	for (size_t round = 0; round < ROUNDS; round++) {
		const enum place place = (enum place)((round + seed) % PLACES);
		const bool changes = round / PLACES % 2;

		mr = ibv_reg_mr(lane.pd, going, BYTES, ACCESS);
		REQUIRE(mr);
		REQUIRE(post_messages(&lane, place, mr, staying_mr));
		REQUIRE(take_away(mr, changes ? elsewhere : NULL));
		/* Map other memory at its place in one step, or another thread's might get there in
		 * between. */
		REQUIRE(map_at(going));
		memset(going, PATTERN, BYTES);
		REQUIRE(finish(&lane, place));
		for (size_t i = 0; i < BYTES; i++)
			REQUIRE(going[i] == PATTERN);
		REQUIRE(!changes || ibv_dereg_mr(mr) == 0);
		REQUIRE(lane_again(&lane));
	}
	REQUIRE(ibv_dereg_mr(staying_mr) == 0);
	REQUIRE(lane_close(&lane));
	munmap(staying, BYTES);
	munmap(going, BYTES);
	munmap(elsewhere, BYTES);
	return NULL;
}

TEST(dereg_and_rereg_mr__no_packet_touches_the_memory_after_it)
{
	size_t seeds[THREADS] = {0, 1, 2, 3};

	run_threads(take_away_and_unmap, THREADS, seeds, sizeof(seeds[0]));
}

/* The same with memory of the heap: that is sent or read from, and written to. */
static void *deregister_and_free(void *arg)
{
	const size_t seed = *(const size_t *)arg;
	struct lane lane;

	REQUIRE(lane_open(&lane, live_context));
	for (size_t round = 0; round < ROUNDS; round++) {
		uint8_t *from = calloc(1, BYTES), *to = calloc(1, BYTES);
		struct ibv_mr *from_mr = ibv_reg_mr(lane.pd, from, BYTES, ACCESS);
		struct ibv_mr *to_mr = ibv_reg_mr(lane.pd, to, BYTES, ACCESS);
		const enum place place = round / 2 % 2 ? SINK_OF_READ : TARGET_OF_WRITE;

		REQUIRE(from_mr && to_mr);
		REQUIRE(post_messages(&lane, place, to_mr, from_mr));
		/* Deregister either region first, by turns. */
		if ((round + seed) % 2) {
			REQUIRE(ibv_dereg_mr(from_mr) == 0);
			free(from);
			REQUIRE(ibv_dereg_mr(to_mr) == 0);
			free(to);
		} else {
			REQUIRE(ibv_dereg_mr(to_mr) == 0);
			free(to);
			REQUIRE(ibv_dereg_mr(from_mr) == 0);
			free(from);
		}
		REQUIRE(finish(&lane, place));
		REQUIRE(lane_again(&lane));
	}
	REQUIRE(lane_close(&lane));
	return NULL;
}

TEST(dereg_mr__memory_is_free_to_be_freed)
{
	size_t seeds[THREADS] = {0, 1, 2, 3};

	run_threads(deregister_and_free, THREADS, seeds, sizeof(seeds[0]));
}

/* The part of one thread in the next test. */
struct worker {
	void *(*body)(void *arg);
	unsigned int *running; /* registering threads; atomic */
};

/* Writes a counter into memory of its own, for as long as others register. */
static void *keep_traffic(void *arg)
{
	const struct worker *worker = arg;
	static uint64_t source[BYTES / 8], target[BYTES / 8];
	struct ibv_sge sge = {.addr = (uintptr_t)source, .length = BYTES};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
	struct ibv_mr *from, *to;
	struct lane lane;

	REQUIRE(lane_open(&lane, live_context));
	from = ibv_reg_mr(lane.pd, source, BYTES, ACCESS);
	to = ibv_reg_mr(lane.pd, target, BYTES, ACCESS);
	REQUIRE(from && to);
	sge.lkey = from->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)target;
	wr.wr.rdma.rkey = to->rkey;
	do {
		source[BYTES / 8 - 1]++;
		REQUIRE(lane_send(&lane, wr, &sge));
		REQUIRE(lane_wait(&lane, 1) == 1);
		REQUIRE(target[BYTES / 8 - 1] == source[BYTES / 8 - 1]);
	} while (__atomic_load_n(worker->running, __ATOMIC_ACQUIRE) > 0);
	REQUIRE(ibv_dereg_mr(from) == 0);
	REQUIRE(ibv_dereg_mr(to) == 0);
	REQUIRE(lane_close(&lane));
	return NULL;
}

static struct ibv_mr *register_kind(struct ibv_pd *pd, struct ibv_dm *dm, uint8_t *memory,
				    size_t kind)
{
	switch (kind % 5) {
	case 0:
		return ibv_reg_mr(pd, memory, BYTES, ACCESS);
	case 1:
		return ibv_reg_mr_iova(pd, memory, BYTES, 0x10000, ACCESS);
	case 2:
		return ibv_reg_mr(pd, memory, BYTES, ACCESS | IBV_ACCESS_ON_DEMAND);
	case 3:
		return ibv_reg_dm_mr(pd, dm, 0, BYTES,
				     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
	default:
		return ibv_alloc_null_mr(pd);
	}
}

/* Every kind of region comes, is changed, and goes. */
static const char *register_round(struct lane *lane, struct ibv_dm *dm, uint8_t *memory)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = BYTES};
	struct ibv_mr *mrs[REGIONS];

	for (size_t i = 0; i < REGIONS; i++) {
		mrs[i] = register_kind(lane->pd, dm, memory, i);
		REQUIRE(mrs[i]);
	}
	sge.lkey = mrs[2]->lkey;
	REQUIRE(ibv_advise_mr(lane->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &sge, 1) == 0);
	REQUIRE(ibv_rereg_mr(mrs[0], IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			     IBV_ACCESS_LOCAL_WRITE) == 0);
	for (size_t i = 0; i < REGIONS; i++)
		REQUIRE(ibv_dereg_mr(mrs[i]) == 0);
	return NULL;
}

/* A window of the thread's own is bound, written through, and taken back. */
static const char *window_round(struct lane *lane, struct ibv_mw *mw, uint32_t *rkey,
				struct ibv_mr *mr)
{
	struct ibv_sge sge = {.addr = (uintptr_t)mr->addr, .length = 64, .lkey = mr->lkey};
	struct ibv_send_wr bind = {.opcode = IBV_WR_BIND_MW}, *bad;
	struct ibv_send_wr write = {.opcode = IBV_WR_RDMA_WRITE};
	struct ibv_send_wr take_back = {.opcode = IBV_WR_SEND_WITH_INV};

	*rkey = ibv_inc_rkey(*rkey);
	bind.send_flags = IBV_SEND_SIGNALED;
	bind.bind_mw.mw = mw;
	bind.bind_mw.rkey = *rkey;
	bind.bind_mw.bind_info =
		(struct ibv_mw_bind_info){.mr = mr,
					  .addr = (uintptr_t)mr->addr,
					  .length = BYTES,
					  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	REQUIRE(ibv_post_send(lane->b, &bind, &bad) == 0);
	REQUIRE(lane_wait(lane, 1) == 1);
	REQUIRE(ibv_dereg_mr(mr) == EBUSY);
	write.wr.rdma.remote_addr = (uintptr_t)mr->addr + 64;
	write.wr.rdma.rkey = *rkey;
	REQUIRE(lane_send(lane, write, &sge));
	REQUIRE(lane_wait(lane, 1) == 1);
	take_back.invalidate_rkey = *rkey;
	REQUIRE(lane_recv(lane, &sge));
	REQUIRE(lane_send(lane, take_back, NULL));
	REQUIRE(lane_wait(lane, 2) == 2);
	return NULL;
}

static void *keep_registering(void *arg)
{
	const struct worker *worker = arg;
	struct ibv_alloc_dm_attr attr = {.length = BYTES};
	struct ibv_dm *dm = ibv_alloc_dm(live_context, &attr);
	uint8_t *memory = map_at(NULL);
	struct lane lane;
	struct ibv_mw *mw;
	struct ibv_mr *mr;
	uint32_t rkey;

	REQUIRE(dm && memory && lane_open(&lane, live_context));
	mw = ibv_alloc_mw(lane.pd, IBV_MW_TYPE_2);
	REQUIRE(mw);
	rkey = mw->rkey;
	for (int round = 0; round < REG_ROUNDS; round++) {
		REQUIRE(!register_round(&lane, dm, memory));
		mr = ibv_reg_mr(lane.pd, memory, BYTES, ACCESS);
		REQUIRE(mr);
		REQUIRE(!window_round(&lane, mw, &rkey, mr));
		REQUIRE(ibv_dereg_mr(mr) == 0);
	}
	REQUIRE(ibv_dealloc_mw(mw) == 0);
	REQUIRE(ibv_free_dm(dm) == 0);
	REQUIRE(lane_close(&lane));
	munmap(memory, BYTES);
	__atomic_sub_fetch(worker->running, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *run_worker(void *arg)
{
	const struct worker *worker = arg;
	void *result = worker->body(arg);

	/* A thread that failed has not reported its end. */
	if (result)
		__atomic_store_n(worker->running, 0, __ATOMIC_RELEASE);
	return result;
}

TEST(reg_mr__from_several_threads_under_traffic)
{
	unsigned int running = THREADS - 1;
	struct worker workers[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		workers[i] = (struct worker){.body = i == 0 ? keep_traffic : keep_registering,
					     .running = &running};
	run_threads(run_worker, THREADS, workers, sizeof(workers[0]));
}

/* Destroy an object that another thread uses, by a handle of its own, at any time. */
static void *dealloc_other(void *arg)
{
	int rc;

	while ((rc = ibv_dealloc_pd(arg)) == EBUSY)
		sched_yield();
	REQUIRE(rc == 0);
	return NULL;
}

static void *dereg_other(void *arg)
{
	REQUIRE(ibv_dereg_mr(arg) == 0);
	return NULL;
}

/* A region is made in a domain that goes, or it is not; there is nothing in between. */
TEST(dealloc_pd__while_another_handle_is_used)
{
	struct ibv_pd *pd, *other;
	pthread_t thread;
	struct ibv_mr *mr;
	void *result;
	char buf[64];

	for (int round = 0; round < ROUNDS; round++) {
		pd = ibv_alloc_pd(live_context);
		other = ibv_import_pd(live_context, pd->handle);
		assert_non_null(other);
		assert_int_equal(pthread_create(&thread, NULL, dealloc_other, other), 0);
		while ((mr = ibv_reg_mr(pd, buf, sizeof(buf), 0)) != NULL) {
			assert_int_equal(ibv_dereg_mr(mr), 0);
			sched_yield();
		}
		assert_int_equal(errno, EINVAL);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_null(result);
		ibv_unimport_pd(pd);
	}
}

TEST(dereg_mr__while_another_handle_is_used)
{
	struct ibv_pd *pd = ibv_alloc_pd(live_context);
	struct ibv_mr *mr, *other;
	uint8_t *memory = map_at(NULL);
	pthread_t thread;
	void *result;
	int rc;

	for (int round = 0; round < ROUNDS; round++) {
		mr = ibv_reg_mr(pd, memory, BYTES, ACCESS);
		other = ibv_import_mr(pd, mr->handle);
		assert_non_null(other);
		assert_int_equal(pthread_create(&thread, NULL, dereg_other, other), 0);
		do {
			rc = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS);
		} while (rc == 0);
		assert_int_equal(rc, IBV_REREG_MR_ERR_INPUT);
		assert_int_equal(errno, EINVAL);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_null(result);
		ibv_unimport_mr(mr);
	}
	munmap(memory, BYTES);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}
