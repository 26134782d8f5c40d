/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory whose pages come from another place. A userfaultfd's handler reads the contents of each
 * page of an on-demand region by RDMA over the same device. Each page is held back for longer than
 * all retries of a queue pair last.
 */
#include "inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#include "raise_qp.h"

#define PAGE	   4096u
#define PAGES	   16u
#define LEN	   64u
#define AT	   128u /* offset in its page */
#define HOLD_NS	   600000000
#define TIMEOUT	   14 /* 67 ms: the retries are used up before a page comes */
#define PATIENCE_S 20
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static struct ibv_pd *pd;
static struct ibv_cq *cq, *fetch_cq;
static struct ibv_qp *near, *far, *fetch_near, *fetch_far;
static uint8_t *paged, *store, *stage, *plain;
static struct ibv_mr *paged_mr, *store_mr, *stage_mr, *plain_mr;
static int uffd;
static unsigned int faults; /* atomic */

static struct ibv_qp *make_qp(struct ibv_cq *of)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = of,
		.recv_cq = of,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	EXPECT(qp);
	return qp;
}

static void connect_qp(struct ibv_qp *qp, const struct ibv_qp *peer)
{
	struct ibv_qp_attr attr = {.port_num = 1,
				   .qp_access_flags = ACCESS,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = peer->qp_num,
				   .max_dest_rd_atomic = 4,
				   .max_rd_atomic = 4,
				   .min_rnr_timer = 12,
				   .timeout = TIMEOUT,
				   .retry_cnt = 2,
				   .rnr_retry = 7,
				   .ah_attr = {.is_global = 1, .port_num = 1}};

	EXPECT(ibv_query_gid(qp->context, 1, 1, &attr.ah_attr.grh.dgid) == 0);
	attr.ah_attr.grh.sgid_index = 1;
	attr.ah_attr.grh.hop_limit = 64;
	EXPECT(raise_qp(qp, &attr) == 0);
}

static void post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint8_t *local, struct ibv_mr *mr,
		 uint32_t len, uint8_t *remote, const struct ibv_mr *remote_mr)
{
	struct ibv_sge sge = {(uintptr_t)local, len, mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)remote;
		wr.wr.atomic.rkey = remote_mr->rkey;
		wr.wr.atomic.compare_add = 1;
	} else if (opcode != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = (uintptr_t)remote;
		wr.wr.rdma.rkey = remote_mr->rkey;
	}
	EXPECT(ibv_post_send(qp, &wr, &bad) == 0);
}

static void post_receive(uint8_t *to, struct ibv_mr *mr)
{
	struct ibv_sge sge = {(uintptr_t)to, LEN, mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	EXPECT(ibv_post_recv(far, &wr, &bad) == 0);
}

static void await_status(struct ibv_cq *of, enum ibv_wc_status status)
{
	const time_t until = time(NULL) + PATIENCE_S;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(of, 1, &wc)) == 0)
		EXPECT(time(NULL) <= until);
	EXPECT(n == 1);
	if (wc.status != status)
		fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc.status));
	EXPECT(wc.status == status);
}

/* Wait for one completion, and check that it is a success. */
static void await(struct ibv_cq *of)
{
	await_status(of, IBV_WC_SUCCESS);
}

/* Hold a page back, then read its contents from the store over the device that waits for the
 * page. */
static void *serve_faults(void *arg)
{
	const struct timespec hold = {.tv_nsec = HOLD_NS};
	struct uffd_msg msg;

	while (read(uffd, &msg, sizeof(msg)) == sizeof(msg)) {
		const uintptr_t page =
			(uintptr_t)msg.arg.pagefault.address & ~(uintptr_t)(PAGE - 1);
		struct uffdio_copy copy = {.dst = page, .src = (uintptr_t)stage, .len = PAGE};

		nanosleep(&hold, NULL);
		post(fetch_near, IBV_WR_RDMA_READ, stage, stage_mr, PAGE,
		     store + (page - (uintptr_t)paged), store_mr);
		await(fetch_cq);
		__atomic_add_fetch(&faults, 1, __ATOMIC_SEQ_CST);
		EXPECT(ioctl(uffd, UFFDIO_COPY, &copy) == 0 || errno == EEXIST || errno == ENOENT);
	}
	return arg;
}

static uint8_t *map_pages(void)
{
	uint8_t *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(pages != MAP_FAILED);
	return pages;
}

static void set_up(void)
{
	struct ibv_context *context = open_device();
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	pthread_t thread;

	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	fetch_cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	EXPECT(pd && cq && fetch_cq);
	near = make_qp(cq);
	far = make_qp(cq);
	fetch_near = make_qp(fetch_cq);
	fetch_far = make_qp(fetch_cq);
	connect_qp(near, far);
	connect_qp(far, near);
	connect_qp(fetch_near, fetch_far);
	connect_qp(fetch_far, fetch_near);
	paged = map_pages();
	store = map_pages();
	stage = map_pages();
	plain = map_pages();
	range.range.start = (uintptr_t)paged;
	range.range.len = PAGES * PAGE;
	EXPECT(ioctl(uffd, UFFDIO_API, &api) == 0);
	EXPECT(ioctl(uffd, UFFDIO_REGISTER, &range) == 0);
	paged_mr = ibv_reg_mr(pd, paged, PAGES * PAGE, ACCESS | IBV_ACCESS_ON_DEMAND);
	store_mr = ibv_reg_mr(pd, store, PAGES * PAGE, ACCESS);
	stage_mr = ibv_reg_mr(pd, stage, PAGES * PAGE, ACCESS);
	plain_mr = ibv_reg_mr(pd, plain, PAGES * PAGE, ACCESS);
	EXPECT(paged_mr && store_mr && stage_mr && plain_mr);
	for (size_t i = 0; i < PAGES * PAGE; i++) {
		store[i] = (uint8_t)(i / PAGE + i * 7);
		plain[i] = (uint8_t)(i * 3 + 1);
	}
	EXPECT(pthread_create(&thread, NULL, serve_faults, NULL) == 0);
}

/* Check that one more page was held back, and that only the bytes at AT differ from the store. */
static void expect_page(unsigned int page, unsigned int before, uint32_t changed)
{
	const uint8_t *is = paged + page * PAGE, *was = store + page * PAGE;

	EXPECT(__atomic_load_n(&faults, __ATOMIC_SEQ_CST) == before + 1);
	EXPECT(memcmp(is, was, AT) == 0);
	EXPECT(memcmp(is + AT + changed, was + AT + changed, PAGE - AT - changed) == 0);
}

/* An operation whose remote memory is in a page that is held back. */
static void check_target(enum ibv_wr_opcode opcode, unsigned int page)
{
	const unsigned int before = __atomic_load_n(&faults, __ATOMIC_SEQ_CST);
	uint8_t *at = paged + page * PAGE + AT, *local = plain + page * PAGE;
	const bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	const uint8_t *stored = store + page * PAGE + AT;
	uint64_t value;

	if (opcode == IBV_WR_SEND)
		post_receive(at, paged_mr);
	post(near, opcode, local, plain_mr, atomic ? 8 : LEN, at, paged_mr);
	await(cq);
	if (opcode == IBV_WR_SEND)
		await(cq);
	if (opcode == IBV_WR_RDMA_READ) {
		EXPECT(memcmp(local, stored, LEN) == 0);
	} else if (atomic) {
		EXPECT(memcmp(local, stored, 8) == 0);
		memcpy(&value, stored, 8);
		value++;
		EXPECT(memcmp(at, &value, 8) == 0);
	} else {
		EXPECT(memcmp(at, local, LEN) == 0);
	}
	expect_page(page, before, atomic ? 8 : opcode == IBV_WR_RDMA_READ ? 0 : LEN);
}

/* An operation whose local memory is in a page that is held back. */
static void check_initiator(enum ibv_wr_opcode opcode, unsigned int page)
{
	const unsigned int before = __atomic_load_n(&faults, __ATOMIC_SEQ_CST);
	uint8_t *at = paged + page * PAGE + AT, *remote = plain + page * PAGE;
	const bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	uint8_t was[8];

	memcpy(was, remote, sizeof(was));
	if (opcode == IBV_WR_SEND)
		post_receive(remote, plain_mr);
	post(near, opcode, at, paged_mr, atomic ? 8 : LEN, remote, plain_mr);
	await(cq);
	if (opcode == IBV_WR_SEND)
		await(cq);
	EXPECT(atomic ? memcmp(at, was, 8) == 0 : memcmp(at, remote, LEN) == 0);
	expect_page(page, before, atomic ? 8 : opcode == IBV_WR_RDMA_READ ? LEN : 0);
}

static unsigned int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned int n = 0;

	EXPECT(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2; /* . and .. */
}

/* Fork while a page is absent: the child has no thread of uroce, and the parent continues. */
static void check_fork(unsigned int page)
{
	const struct timespec moment = {.tv_nsec = HOLD_NS / 4};
	int status = -1;
	pid_t pid;

	post(near, IBV_WR_RDMA_WRITE, plain, plain_mr, LEN, paged + page * PAGE + AT, paged_mr);
	nanosleep(&moment, NULL);
	EXPECT(threads() > 1);
	pid = fork();
	EXPECT(pid >= 0);
	if (pid == 0)
		_exit(threads() == 1 && ibv_poll_cq(cq, 1, &(struct ibv_wc){0}) <= 0 ? 0 : 1);
	EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
	await(cq);
	EXPECT(memcmp(paged + page * PAGE + AT, plain, LEN) == 0);
}

/* Map other memory in place of an absent page. Its page is present at once, but nothing wakes the
 * thread that waits for the old one. */
static void check_replaced(unsigned int page)
{
	const struct timespec moment = {.tv_nsec = HOLD_NS / 4};
	uint8_t *at = paged + page * PAGE;

	post(near, IBV_WR_RDMA_WRITE, plain, plain_mr, LEN, at + AT, paged_mr);
	nanosleep(&moment, NULL);
	EXPECT(mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) == at);
	await(cq);
	EXPECT(memcmp(at + AT, plain, LEN) == 0);
}

/* Unmap memory while one of its pages is absent, then deregister the region. */
static void check_unmapped(unsigned int page)
{
	const struct timespec moment = {.tv_nsec = HOLD_NS / 4};

	post(near, IBV_WR_RDMA_WRITE, plain, plain_mr, LEN, paged + page * PAGE + AT, paged_mr);
	nanosleep(&moment, NULL);
	EXPECT(munmap(paged + page * PAGE, PAGE) == 0);
	await_status(cq, IBV_WC_REM_ACCESS_ERR);
	EXPECT(ibv_dereg_mr(paged_mr) == 0);
}

/* The initiator's memory cannot be accessed. */
static void check_protected(enum ibv_wr_opcode opcode)
{
	uint8_t *barred = map_pages();
	struct ibv_mr *mr = ibv_reg_mr(pd, barred, PAGES * PAGE, ACCESS | IBV_ACCESS_ON_DEMAND);
	struct ibv_qp *qp = make_qp(cq), *peer = make_qp(cq);

	EXPECT(mr && mprotect(barred, PAGES * PAGE, PROT_NONE) == 0);
	connect_qp(qp, peer);
	connect_qp(peer, qp);
	post(qp, opcode, barred, mr, LEN, plain, plain_mr);
	await_status(cq, IBV_WC_LOC_PROT_ERR);
	EXPECT(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(peer) == 0);
	EXPECT(ibv_dereg_mr(mr) == 0 && munmap(barred, PAGES * PAGE) == 0);
}

void check_pages(void)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						     IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
	unsigned int page = 0;

	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	EXPECT(uffd >= 0);
	set_up();
	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		fprintf(stderr, "operation %d, target\n", (int)opcodes[i]);
		check_target(opcodes[i], page++);
		fprintf(stderr, "operation %d, initiator\n", (int)opcodes[i]);
		check_initiator(opcodes[i], page++);
	}
	fprintf(stderr, "a child\n");
	check_fork(page++);
	for (size_t i = 1; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		fprintf(stderr, "operation %d, protected\n", (int)opcodes[i]);
		check_protected(opcodes[i]);
	}
	fprintf(stderr, "replaced\n");
	check_replaced(page++);
	fprintf(stderr, "unmapped\n");
	check_unmapped(page++);
}
