/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On-demand regions whose pages are not in memory, on each side whose device supports them. A
 * userfaultfd holds each page back until the requester has asked again.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#include "peer.h"

#define PAGE	  4096u
#define PAGES	  4u
#define HOLD_S	  2 /* twice the acknowledgement timer of peer.c */
#define INITIATOR 1
#define TARGET	  2
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static uint8_t *paged;
static struct ibv_mr *mr;
static struct card peer; /* contents of its pages */
static int uffd;
static uint8_t side;
static unsigned int faults; /* atomic */

/* The contents of a side's page at the beginning. */
static void fill_page(uint8_t *page, uint8_t of, unsigned int number)
{
	for (unsigned int i = 0; i < PAGE; i++)
		page[i] = (uint8_t)(i * 7 + number * 31 + of);
}

static void expect_page(unsigned int number, uint8_t of)
{
	uint8_t expected[PAGE];

	fill_page(expected, of, number);
	REQUIRE(memcmp(paged + number * PAGE, expected, PAGE) == 0);
}

static void *serve_faults(void *arg)
{
	const struct timespec hold = {.tv_sec = HOLD_S};
	static uint8_t content[PAGE];
	struct uffd_msg msg;

	while (read(uffd, &msg, sizeof(msg)) == sizeof(msg)) {
		const uintptr_t page =
			(uintptr_t)msg.arg.pagefault.address & ~(uintptr_t)(PAGE - 1);
		struct uffdio_copy copy = {.dst = page, .src = (uintptr_t)content, .len = PAGE};

		fill_page(content, side, (unsigned int)((page - (uintptr_t)paged) / PAGE));
		nanosleep(&hold, NULL);
		__atomic_add_fetch(&faults, 1, __ATOMIC_SEQ_CST);
		ioctl(uffd, UFFDIO_COPY, &copy);
	}
	return arg;
}

static bool has_on_demand_regions(void)
{
	struct ibv_device_attr_ex attr;

	REQUIRE(ibv_query_device_ex(run.context, NULL, &attr) == 0);
	return attr.odp_caps.general_caps & IBV_ODP_SUPPORT;
}

static void hold_pages_back(void)
{
	struct uffdio_register range = {.range = {(uintptr_t)paged, (uint64_t)PAGES * PAGE},
					.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_api api = {.api = UFFD_API};
	pthread_t thread;

	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	REQUIRE(uffd >= 0);
	REQUIRE(ioctl(uffd, UFFDIO_API, &api) == 0);
	REQUIRE(ioctl(uffd, UFFDIO_REGISTER, &range) == 0);
	REQUIRE(pthread_create(&thread, NULL, serve_faults, NULL) == 0);
}

static void make_pages(bool on_demand)
{
	struct card own;

	side = run.server ? INITIATOR : TARGET;
	paged = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(paged != MAP_FAILED);
	if (on_demand)
		hold_pages_back();
	for (unsigned int i = 0; i < PAGES && !on_demand; i++)
		fill_page(paged + i * PAGE, side, i);
	mr = ibv_reg_mr(run.pd, paged, (size_t)PAGES * PAGE,
			ACCESS | (on_demand ? IBV_ACCESS_ON_DEMAND : 0));
	REQUIRE(mr);
	own = (struct card){.addr = (uintptr_t)paged, .rkey = mr->rkey};
	tell(&own, sizeof(own));
	hear(&peer, sizeof(peer));
}

/* Transfer between one page of each side. */
static void work(enum ibv_wr_opcode opcode, enum ibv_wc_opcode completed, unsigned int number)
{
	const bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct ibv_sge sge = {.addr = (uintptr_t)paged + number * PAGE,
			      .length = atomic ? 8 : PAGE,
			      .lkey = mr->lkey};
	struct ibv_send_wr wr = {
		.opcode = opcode, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	if (atomic) {
		wr.wr.atomic.remote_addr = peer.addr + number * PAGE;
		wr.wr.atomic.rkey = peer.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = peer.addr + number * PAGE;
		wr.wr.rdma.rkey = peer.rkey;
	}
	REQUIRE(ibv_post_send(run.qp, &wr, &bad) == 0);
	expect(IBV_WC_SUCCESS, completed);
}

static void absent_initiator(void)
{
	struct ibv_send_wr empty = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	/* Post the receive request that every case begins with. */
	REQUIRE(ibv_post_send(run.qp, &empty, &bad) == 0);
	expect(IBV_WC_SUCCESS, IBV_WC_SEND);
	meet();
	work(IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0);
	work(IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 1);
	work(IBV_WR_SEND, IBV_WC_SEND, 2);
	work(IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, 3);
	expect_page(1, TARGET);
	meet();
}

/* The atomic incremented the first word of the last page, and the initiator got the word's old
 * value. */
static void expect_counted(void)
{
	uint64_t word, was;
	uint8_t page[PAGE];

	fill_page(page, TARGET, 3);
	memcpy(&was, page, sizeof(was));
	memcpy(&word, paged + 3 * PAGE, sizeof(word));
	REQUIRE(word == was + 1);
	REQUIRE(memcmp(paged + 3 * PAGE + 8, page + 8, PAGE - 8) == 0);
}

static void absent_target(void)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)paged + 2 * PAGE, .length = PAGE, .lkey = mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	expect(IBV_WC_SUCCESS, IBV_WC_RECV);
	REQUIRE(ibv_post_recv(run.qp, &recv, &bad) == 0);
	meet();
	expect(IBV_WC_SUCCESS, IBV_WC_RECV);
	meet();
	expect_page(0, INITIATOR);
	expect_page(1, TARGET);
	expect_page(2, INITIATOR);
	expect_counted();
}

void absent(void)
{
	const bool on_demand = has_on_demand_regions();

	make_pages(on_demand);
	meet();
	if (run.server)
		absent_initiator();
	else
		absent_target();
	REQUIRE(__atomic_load_n(&faults, __ATOMIC_SEQ_CST) == (on_demand ? PAGES : 0));
	REQUIRE(ibv_dereg_mr(mr) == 0);
}
