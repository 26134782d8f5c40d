/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/report: write.c, read.c, set.c and device.c. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "device/device.h"
#include "device/gsi.h"
#include "mem/mr.h"
#include "mem/pd.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "queue/srq.h"
#include "report/set.h"
#include "report/write.h"
#include "test.h"
#include "queues.h"

static int fd;
static struct report *report;

static int set_up(TEST_STATE)
{
	return report_create(&fd, &report);
}

static int tear_down(TEST_STATE)
{
	report_unmap(report);
	close(fd);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

TEST(report_read__what_was_written)
{
	const struct report_record record = {.kind = REPORT_CQ, .number = 7, .cq = {.cqe = 16}};
	struct report_view view;

	strcpy(report->facts.device, "uroce0");
	report_begin(report);
	report_add_stat(report, "out_of_sequence", 3);
	report_add(report, &record);
	report_end(report);
	assert_int_equal(report_read(report, &view), 0);
	assert_string_equal(view.facts.device, "uroce0");
	assert_int_equal(report_stat(&view, "out_of_sequence"), 3);
	assert_int_equal(report_stat(&view, "packet_seq_err"), 0);
	assert_int_equal(view.record_count, 1);
	assert_int_equal(view.totals[REPORT_CQ], 1);
	assert_int_equal(view.records[0].number, 7);
	assert_int_equal(view.records[0].cq.cqe, 16);
	report_release(&view);
}

TEST(report_read__nothing_whole)
{
	struct report_view view;

	assert_int_equal(report_read(report, &view), -EAGAIN);
	report_begin(report);
	/* The writer was killed at this point. */
	assert_int_equal(report_read(report, &view), -EAGAIN);
	assert_null(view.records);
}

TEST(report_read__lies)
{
	struct report_view view;

	report_begin(report);
	report_end(report);
	report->record_count = REPORT_RECORDS_MAX + 1;
	assert_int_equal(report_read(report, &view), -EPROTO);
	report->record_count = 0;
	report->stat_count = REPORT_STATS_MAX + 1;
	assert_int_equal(report_read(report, &view), -EPROTO);
	report->stat_count = 1;
	memset(report->stats[0].name, 'x', sizeof(report->stats[0].name));
	memset(report->facts.device, 'x', sizeof(report->facts.device));
	assert_int_equal(report_read(report, &view), 0);
	assert_int_equal(strlen(view.stats[0].name), sizeof(view.stats[0].name) - 1);
	assert_int_equal(strlen(view.facts.device), sizeof(view.facts.device) - 1);
	report_release(&view);
	report->version++;
	assert_int_equal(report_read(report, &view), -EPROTO);
}

/* A terminal obeys what it is shown. */
TEST(report_read__makes_names_printable)
{
	struct report_view view;

	report_begin(report);
	report_add_stat(report, "\033c", 1);
	strcpy(report->facts.device, "\033[31mRED");
	strcpy(report->facts.port, "a\nb\x9bJ");
	report_end(report);
	assert_int_equal(report_read(report, &view), 0);
	assert_string_equal(view.facts.device, "?[31mRED");
	assert_string_equal(view.facts.port, "a?b?J");
	assert_string_equal(view.stats[0].name, "?c");
	report_release(&view);
}

TEST(report_comm__is_printable, .bare = true)
{
	char before[32], comm[32];

	assert_int_equal(prctl(PR_GET_NAME, before), 0);
	assert_int_equal(prctl(PR_SET_NAME, "\033]0;PWN\007x"), 0);
	report_comm(getpid(), comm);
	assert_string_equal(comm, "?]0;PWN?x");
	assert_int_equal(prctl(PR_SET_NAME, before), 0);
}

TEST(report_read__attached_processes)
{
	struct report_view view;

	report_begin(report);
	for (int i = 0; i < REPORT_ATTACHED_MAX + 1; i++)
		report_add_attached(report, 1000 + i);
	report_end(report);
	assert_int_equal(report_read(report, &view), 0);
	assert_int_equal(view.attached_count, REPORT_ATTACHED_MAX);
	assert_int_equal(view.attached[1], 1001);
	report_release(&view);
	report->attached_count = REPORT_ATTACHED_MAX + 1;
	assert_int_equal(report_read(report, &view), -EPROTO);
}

/* An owner knows who is attached to it. */
TEST(report_set_collect__believes_the_owner)
{
	struct report_set set;
	struct report_views views;
	struct report *mapped;

	report->facts.role = REPORT_OWNER;
	report_begin(report);
	report_end(report);
	assert_int_equal(report_map(fd, &mapped), 0);
	report_set_init(&set);
	assert_int_equal(report_set_add(&set, 10, 77, mapped), 0);
	assert_int_equal(report_set_collect(&set, 0, &views), 0);
	assert_int_equal(views.count, 1);
	assert_int_equal(views.list[0].facts.role, REPORT_ATTACHED);
	assert_int_equal(views.list[0].facts.owner_pid, 77);
	report_views_release(&views);
	report_set_fini(&set);
}

static unsigned int sleeps;

int usleep(useconds_t us)
{
	const struct timespec time = {.tv_nsec = (long)us * 1000};

	sleeps++;
	return nanosleep(&time, NULL);
}

/* Who says that his report is being written makes a reader wait, and many of them no longer. */
TEST(report_set_collect__waits_for_all_together)
{
	enum { BUSY = 3, WHOLE = BUSY };
	struct report_set set;
	struct report_views views;
	struct report *mapped;
	unsigned int one = 0;

	report_set_init(&set);
	for (int i = 0; i <= BUSY; i++) {
		int busy_fd;

		assert_int_equal(report_create(&busy_fd, &mapped), 0);
		close(busy_fd);
		report_begin(mapped);
		if (i == WHOLE)
			report_end(mapped);
		assert_int_equal(report_set_add(&set, 1 + i, 0, mapped), 0);
		sleeps = 0;
		assert_int_equal(report_set_collect(&set, 0, &views), 0);
		assert_int_equal(views.count, i == WHOLE);
		report_views_release(&views);
		one = i == 0 ? sleeps : one;
		assert_int_equal(sleeps, one);
	}
	assert_true(one > 0);
	report_set_fini(&set);
}

TEST(report_add__counts_what_has_no_room)
{
	const struct report_record record = {.kind = REPORT_MR};
	struct report_view view;

	report_begin(report);
	for (int i = 0; i < REPORT_RECORDS_MAX + 5; i++)
		report_add(report, &record);
	for (int i = 0; i < REPORT_STATS_MAX + 5; i++)
		report_add_stat(report, "probes", 1);
	report_end(report);
	assert_int_equal(report_read(report, &view), 0);
	assert_int_equal(view.record_count, REPORT_RECORDS_MAX);
	assert_int_equal(view.totals[REPORT_MR], REPORT_RECORDS_MAX + 5);
	assert_int_equal(view.stat_count, REPORT_STATS_MAX);
	report_release(&view);
}

TEST(report_map__refuses_what_may_shrink)
{
	const int soft = memfd_create("report", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const int small = memfd_create("report", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct report *mapped;
	int pipes[2];

	assert_int_equal(ftruncate(soft, sizeof(*mapped)), 0);
	assert_int_equal(report_map(soft, &mapped), -EPROTO);
	assert_int_equal(ftruncate(small, 100), 0);
	assert_int_equal(fcntl(small, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(report_map(small, &mapped), -EPROTO);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(report_map(pipes[0], &mapped), -EPROTO);
	assert_int_equal(report_map(-1, &mapped), -EBADF);
	assert_int_equal(report_map(fd, &mapped), 0);
	report_unmap(mapped);
	close(soft);
	close(small);
	close(pipes[0]);
	close(pipes[1]);
}

TEST(report_set_collect__knows_who_answers)
{
	static struct report_set set;
	struct report_views views;
	struct report *second, *mapped;
	int second_fd;

	assert_int_equal(report_create(&second_fd, &second), 0);
	assert_int_equal(report_map(fd, &mapped), 0);
	report_set_init(&set);
	report_begin(report);
	report_end(report);
	assert_int_equal(report_set_add(&set, 10, 0, mapped), 0);
	assert_int_equal(report_set_add(&set, 9, 0, second), 0);
	/* One process has never written a report. The other one has written one, but does not
	 * answer any more. */
	assert_int_equal(report_set_collect(&set, 2, &views), 0);
	assert_int_equal(views.count, 1);
	assert_int_equal(views.list[0].pid, 10);
	assert_false(views.list[0].fresh);
	report_views_release(&views);
	assert_true(report_is_wanted(report));
	report_begin(report);
	report_end(report);
	assert_false(report_is_wanted(report));
	report_begin(second);
	report_end(second);
	report->answered = second->answered = 1000;
	assert_int_equal(report_set_collect(&set, 2, &views), 0);
	assert_int_equal(views.count, 2);
	assert_int_equal(views.list[0].pid, 9);
	assert_true(views.list[0].fresh);
	assert_true(views.list[1].fresh);
	report_views_release(&views);
	report_set_remove(&set, mapped);
	report_set_remove(&set, NULL);
	assert_int_equal(set.count, 1);
	report_set_fini(&set);
	close(second_fd);
}

static const struct report_record *find(const struct report_view *view, enum report_kind kind)
{
	for (uint32_t i = 0; i < view->record_count; i++) {
		if (view->records[i].kind == (uint32_t)kind)
			return &view->records[i];
	}
	return NULL;
}

static void tell_a_conn(void *user, gsi_tell_conn *tell, void *arg)
{
	(void)user;
	tell(&(struct gsi_conn){.number = 77, .state = "\033[2J"}, arg);
}

TEST(report_write_device__all_objects)
{
	static const struct gsi_ops gsi = {.each_conn = tell_a_conn};
	const struct device_config config = {.name = "uroce0", .port_mtu_bytes = 1500};
	struct device_object pd_object = {0}, cq_object = {0}, srq_object = {0}, ctx_object = {0};
	static uint8_t memory[64];
	struct report_view view;
	struct qp_init init = {.type = IBV_QPT_UD, .cap = {.max_send_wr = 4, .max_send_sge = 1}};
	struct device *device;
	struct ibv_qp_cap cap;
	struct srq *srq;
	struct qp *qp;
	struct mr *mr;
	struct pd *pd;
	struct cq *cq;
	int qpn;

	assert_int_equal(device_create(&config, &device), 0);
	assert_int_equal(pd_create(device->keys, &pd), 0);
	pd->number = objects_add(device, DEVICE_OBJECT_PD, &pd_object, pd);
	assert_int_equal(cq_create(10, NULL, NULL, NULL, &cq), 0);
	cq->number = objects_add(device, DEVICE_OBJECT_CQ, &cq_object, cq);
	assert_int_equal(srq_create_in(NULL, 8, 1, pd, &srq), 0);
	objects_add(device, DEVICE_OBJECT_SRQ, &srq_object, srq);
	objects_add(device, DEVICE_OBJECT_CTX, &ctx_object, device);
	device->gsi = &gsi;
	assert_int_equal(mr_register(pd, memory, sizeof(memory), (uint64_t)(uintptr_t)memory,
				     IBV_ACCESS_LOCAL_WRITE, &mr),
			 0);
	qpn = device_alloc_qpn(device_first(device));
	init.pd = pd;
	init.send_cq = init.recv_cq = cq;
	init.qpn = (uint32_t)qpn;
	init.counters = &device_first(device)->counters;
	init.port_mtu = IBV_MTU_1024;
	assert_int_equal(qp_create(&init, &cap, &qp), 0);
	device_set_qp(device, (uint32_t)qpn, qp);
	counters_add(&device_first(device)->counters, COUNTER_local_ack_timeout_err, 2);

	report_write_device(report, device);
	assert_int_equal(report_read(report, &view), 0);
	assert_int_equal(report_stat(&view, "local_ack_timeout_err"), 2);
	for (int kind = 0; kind < REPORT_KINDS; kind++)
		assert_int_equal(view.totals[kind], 1);
	assert_int_equal(find(&view, REPORT_QP)->number, qpn);
	assert_int_equal(find(&view, REPORT_QP)->qp.type, IBV_QPT_UD);
	assert_int_equal(find(&view, REPORT_QP)->qp.state, IBV_QPS_RESET);
	assert_int_equal(find(&view, REPORT_QP)->qp.pd, 1);
	assert_int_equal(find(&view, REPORT_QP)->qp.send_cq, 1);
	assert_int_equal(find(&view, REPORT_MR)->number, mr->key);
	assert_int_equal(find(&view, REPORT_MR)->mr.length, sizeof(memory));
	assert_true(find(&view, REPORT_CQ)->cq.cqe >= 10);
	assert_true(find(&view, REPORT_PD)->pd.users > 0);
	assert_int_equal(find(&view, REPORT_SRQ)->srq.max_wr, 8);
	assert_int_equal(find(&view, REPORT_SRQ)->srq.pd, 1);
	assert_int_equal(find(&view, REPORT_CM_ID)->number, 77);
	/* Not printable for a terminal, as if another program had written it. */
	assert_string_equal(find(&view, REPORT_CM_ID)->cm_id.state, "?[2J");
	report_release(&view);

	qp_retire(qp);
	device_set_qp(device, (uint32_t)qpn, NULL);
	device_free_qpn(device, (uint32_t)qpn);
	qp_destroy(qp);
	assert_int_equal(mr_deregister(mr), 0);
	objects_remove(device, DEVICE_OBJECT_SRQ, &srq_object);
	srq_destroy(srq);
	objects_remove(device, DEVICE_OBJECT_CTX, &ctx_object);
	device->gsi = NULL;
	objects_remove(device, DEVICE_OBJECT_CQ, &cq_object);
	cq_destroy(cq);
	objects_remove(device, DEVICE_OBJECT_PD, &pd_object);
	objects_remove(device, DEVICE_OBJECT_PD, &pd_object);
	pd_destroy(pd);
	report_write_device(report, device);
	assert_int_equal(report_read(report, &view), 0);
	assert_int_equal(view.record_count, 0);
	report_release(&view);
	device_destroy(device);
}

#define ENDS 50

static bool seen_enough; /* atomic */

static void *look_on(void *arg)
{
	struct report_set *set = arg;
	struct report_views views;

	while (!__atomic_load_n(&seen_enough, __ATOMIC_RELAXED)) {
		if (report_set_collect(set, 0, &views) == 0)
			report_views_release(&views);
	}
	return NULL;
}

/* Processes end while they are looked at. */
TEST(report_set_remove__leaves_a_report_to_who_reads_it)
{
	static struct report_set set;
	struct report *mapped;
	pthread_t thread;

	report_set_init(&set);
	report_begin(report);
	for (int i = 0; i < REPORT_RECORDS_MAX; i++)
		report_add(report, &(struct report_record){.kind = REPORT_MR});
	report_end(report);
	assert_int_equal(pthread_create(&thread, NULL, look_on, &set), 0);
	for (int i = 0; i < ENDS; i++) {
		const uint32_t wanted = __atomic_load_n(&report->wanted, __ATOMIC_RELAXED);

		assert_int_equal(report_map(fd, &mapped), 0);
		assert_int_equal(report_set_add(&set, 10, 0, mapped), 0);
		while (__atomic_load_n(&report->wanted, __ATOMIC_RELAXED) == wanted)
			sched_yield();
		report_set_remove(&set, mapped);
	}
	__atomic_store_n(&seen_enough, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(set.count, 0);
	report_set_fini(&set);
}
