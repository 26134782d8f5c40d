/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/device/xrc_share.c: links of a target to other processes, and stand-ins for targets
 * of others. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/verbs_later.h"
#include "device/device.h"
#include "device/limits.h"
#include "device/xrc_share.h"
#include "device/xrcd.h"
#include "qp/qp.h"
#include "raise_qp.h"
#include "test.h"
#include "transport/pass.h"

#define FIRST  (5u << 14)
#define OTHERS (9u << 14)
#define NOTES  8

static struct device *device;
static struct xrcd *xrcd;
static int fd;
static int ask_says;
static unsigned int kicks;
/* What the device has told, and what it will hear. */
static struct xrc_note told[NOTES], said[NOTES];
static unsigned int told_count, said_count;

static void do_nothing(void *engine)
{
	(void)engine;
}

static void do_nothing_with(void *engine, struct qp *qp)
{
	(void)engine;
	(void)qp;
}

static void kick(void *engine, struct qp *qp)
{
	(void)engine;
	(void)qp;
	kicks++;
}

static const struct engine_ops ops = {
	.lock = do_nothing,
	.unlock = do_nothing,
	.attach = do_nothing_with,
	.detach = do_nothing_with,
	.kick = kick,
};

static int ask(void *user, struct xrc_note *note)
{
	assert_ptr_equal(user, &told);
	note->result = ask_says;
	return 0;
}

static void tell(void *user, const struct xrc_note *note)
{
	assert_ptr_equal(user, &told);
	assert_true(told_count < NOTES);
	told[told_count++] = *note;
}

static bool has_next(void *user)
{
	assert_ptr_equal(user, &told);
	return said_count > 0;
}

static bool next(void *user, struct xrc_note *note)
{
	assert_ptr_equal(user, &told);
	if (said_count == 0)
		return false;
	*note = said[0];
	memmove(said, said + 1, --said_count * sizeof(said[0]));
	return true;
}

static const struct xrc_share_ops share_ops = {
	.ask = ask, .tell = tell, .has_next = has_next, .next = next};

static const union ibv_gid own_gid = {.raw = {[10] = 0xff, 0xff, 10, 0, 0, 1}};

static int set_up(TEST_STATE)
{
	const struct device_config config = {.name = "uroce0",
					     .port_mtu_bytes = 1500,
					     .qpn_first = FIRST,
					     .qpn_count = 1u << 14};

	assert_int_equal(device_create(&config, &device), 0);
	device_first(device)->ops = &ops;
	device->xrc_share = &share_ops;
	device->xrc_share_user = &told;
	assert_int_equal(device_add_gid(device, &own_gid, -1, 0), 0);
	told_count = said_count = kicks = 0;
	ask_says = 0;
	fd = memfd_create("domain", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(xrcd_open(device, fd, O_CREAT, &xrcd), 0);
	return 0;
}

static int tear_down(TEST_STATE)
{
	if (xrcd)
		xrcd_close(xrcd);
	assert_int_equal(device->qps, 0);
	device_destroy(device);
	close(fd);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static void hear(struct xrc_note note)
{
	said[said_count++] = note;
	xrc_share_follow(device);
	assert_int_equal(said_count, 0);
}

/* Take what the device has told first. */
static struct xrc_note was_told(enum xrc_note_type type)
{
	const struct xrc_note note = told[0];

	assert_true(told_count > 0);
	memmove(told, told + 1, --told_count * sizeof(told[0]));
	assert_int_equal(note.type, type);
	return note;
}

/* Return the request of another process for a stand-in. */
static struct xrc_note request(void)
{
	struct xrc_note note = {.type = XRC_LINK,
				.target = OTHERS + 1,
				.alias = OTHERS + 2,
				.psn = 0xffffff,
				.mtu = IBV_MTU_1024,
				.min_rnr_timer = 12,
				.vlan_id = -1};
	struct stat file;

	assert_int_equal(fstat(fd, &file), 0);
	note.dev = (uint64_t)file.st_dev;
	note.ino = (uint64_t)file.st_ino;
	memcpy(note.gid, own_gid.raw, sizeof(note.gid));
	return note;
}

static struct qp *stand_in(void)
{
	struct xrc_note answer;
	struct qp *qp;

	hear(request());
	answer = was_told(XRC_LINKED);
	assert_int_equal(answer.result, 0);
	assert_int_equal(answer.alias, OTHERS + 2);
	qp = device_find_qp(device, answer.stand_in);
	assert_non_null(qp);
	assert_int_equal(qp_state(qp), IBV_QPS_RTR);
	return qp;
}

TEST(xrc_share_follow__makes_a_stand_in_and_ends_it)
{
	const uint32_t qpn = qp_number(stand_in());

	hear((struct xrc_note){.type = XRC_UNLINK, .alias = OTHERS + 3});
	assert_non_null(device_find_qp(device, qpn));
	hear((struct xrc_note){.type = XRC_UNLINK, .alias = OTHERS + 2});
	assert_null(device_find_qp(device, qpn));
	assert_int_equal(told_count, 0);
	assert_int_equal(device->qps, 0);
}

/* The target checks what is enabled on it, which may change. */
TEST(xrc_share_follow__makes_a_stand_in_with_all_rights)
{
	const unsigned int rights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				    IBV_ACCESS_REMOTE_ATOMIC | LATER_ACCESS_FLUSH_GLOBAL |
				    LATER_ACCESS_FLUSH_PERSISTENT;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	qp_query(stand_in(), &attr, &init);
	assert_int_equal(attr.qp_access_flags & rights, rights);
}

TEST(xrc_share_follow__refuses_what_it_cannot_stand_in_for)
{
	struct xrc_note note;

	note = request();
	note.ino++;
	hear(note);
	assert_int_equal(was_told(XRC_LINKED).result, -ENOENT);
	note = request();
	note.mtu = 99;
	hear(note);
	assert_int_equal(was_told(XRC_LINKED).result, -EINVAL);
	note = request();
	note.min_rnr_timer = 99;
	hear(note);
	assert_int_equal(was_told(XRC_LINKED).result, -EINVAL);
	note = request();
	note.gid[15]++;
	hear(note);
	assert_int_equal(was_told(XRC_LINKED).result, -ENOENT);
	assert_int_equal(device->qps, 0);
}

TEST(xrc_share_follow__tells_of_a_stand_in_that_fails)
{
	const struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct qp *qp = stand_in();

	assert_false(xrc_share_is_due(device));
	assert_int_equal(qp_modify(qp, &error, IBV_QP_STATE, NULL), 0);
	assert_true(xrc_share_is_due(device));
	/* Its NAK may still be on its way, and says why. */
	xrc_share_follow(device);
	assert_int_equal(told_count, 0);
	xrc_share_follow(device);
	assert_int_equal(was_told(XRC_LOST).alias, OTHERS + 2);
	assert_int_equal(device->qps, 0);
}

/* The engine must not wait for a thread that opens a domain. */
TEST(xrc_share_follow__looks_again_later_while_a_domain_is_opened)
{
	said[said_count++] = request();
	pthread_mutex_lock(&device->xrcd_lock);
	assert_true(xrc_share_is_due(device));
	xrc_share_follow(device);
	pthread_mutex_unlock(&device->xrcd_lock);
	assert_int_equal(told_count, 0);
	assert_true(xrc_share_is_due(device));
	xrc_share_follow(device);
	assert_int_equal(was_told(XRC_LINKED).result, 0);
}

/* Another thread may have opened the domain again before it was closed. Then the owner does not end
 * the links. */
TEST(xrcd_close__ends_the_stand_ins)
{
	stand_in();
	xrcd_close(xrcd);
	xrcd = NULL;
	assert_int_equal(was_told(XRC_LOST).alias, OTHERS + 2);
	was_told(XRC_CLOSE);
	assert_int_equal(device->qps, 0);
}

TEST(xrcd_open__asks_the_owner)
{
	const int other = memfd_create("other", MFD_CLOEXEC);
	struct xrcd *opened;

	ask_says = -EAGAIN;
	assert_int_equal(xrcd_open(device, other, O_CREAT, &opened), -EAGAIN);
	ask_says = 0;
	/* Another process has it. */
	assert_int_equal(xrcd_open(device, other, 0, &opened), 0);
	assert_int_equal(xrcd_find_target(opened, OTHERS + 1), 0);
	ask_says = -EINVAL;
	assert_int_equal(xrcd_find_target(opened, OTHERS + 1), -EINVAL);
	xrcd_close(opened);
	was_told(XRC_CLOSE);
	/* An isolated process has domains of its own. */
	ask_says = -EOPNOTSUPP;
	assert_int_equal(xrcd_open(device, other, 0, &opened), -EAGAIN);
	assert_int_equal(xrcd_open(device, other, O_CREAT, &opened), 0);
	assert_int_equal(xrcd_find_target(opened, OTHERS + 1), -EINVAL);
	assert_int_equal(xrcd_announce(opened, FIRST + 1), 0);
	xrcd_close(opened);
	assert_int_equal(told_count, 0);
	close(other);
}

static struct xrcd_member target;

static void raise_target(void)
{
	struct ibv_qp_attr attr = raise_attr(&own_gid, 77, 5);
	struct path_attr path_attr = {.vlan_tci = -1, .hop_limit = 64, .udp_sport = 0xc000};
	struct path path;

	memcpy(path_attr.sgid, own_gid.raw, sizeof(path_attr.sgid));
	memcpy(path_attr.dgid, own_gid.raw, sizeof(path_attr.dgid));
	assert_int_equal(path_init(&path, &path_attr), 0);
	for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTR; s++) {
		attr.qp_state = (enum ibv_qp_state)s;
		assert_int_equal(qp_modify(target.qp, &attr,
					   raise_mask(IBV_QPT_XRC_RECV, attr.qp_state), &path),
				 0);
	}
}

static void make_target(void)
{
	const struct qp_init init = {
		.pd = xrcd_pd(xrcd),
		.type = IBV_QPT_XRC_RECV,
		.qpn = (uint32_t)device_alloc_qpn(device_first(device)),
		.home = device_first(device),
		.counters = &device_first(device)->counters,
		.find_srq = xrcd_find_srq,
		.domain = xrcd,
		.find_link = xrc_share_find,
		.user = &target,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.port_mtu = IBV_MTU_1024,
	};
	struct ibv_qp_cap cap;

	assert_int_equal(qp_create(&init, &cap, &target.qp), 0);
	device_set_qp(device, init.qpn, target.qp);
	xrcd_add_qp(xrcd, &target);
	raise_target();
}

static void end_target(void)
{
	const uint32_t qpn = qp_number(target.qp);

	xrcd_remove_qp(&target);
	assert_int_equal(was_told(XRC_TARGET_END).target, qpn);
	qp_retire(target.qp);
	device_set_qp(device, qpn, NULL);
	qp_destroy(target.qp);
	device_free_qpn(device, qpn);
}

static int find(uint32_t srqn)
{
	struct pass_link *link = NULL;
	const int rc = xrc_share_find(&target, srqn, &link);

	if (rc == 0)
		assert_non_null(link);
	return rc;
}

static void count(struct qp *qp, void *arg)
{
	(void)qp;
	++*(unsigned int *)arg;
}

TEST(xrc_share_find__asks_for_a_link_once)
{
	struct xrc_note note;
	unsigned int qps = 0;

	make_target();
	assert_int_equal(find(FIRST + 9), -ENOENT);
	assert_int_equal(told_count, 0);
	assert_int_equal(find(OTHERS + 9), -EAGAIN);
	note = was_told(XRC_LINK);
	assert_int_equal(note.target, qp_number(target.qp));
	assert_int_equal(note.srqn, OTHERS + 9);
	assert_int_equal(note.mtu, IBV_MTU_1024);
	assert_memory_equal(note.gid, own_gid.raw, sizeof(note.gid));
	/* Answers to the alias come to the target, which is still one queue pair. */
	assert_ptr_equal(device_find_qp(device, note.alias), target.qp);
	device_each_qp(device, count, &qps);
	assert_int_equal(qps, 1);
	assert_int_equal(find(OTHERS + 10), -EAGAIN);
	assert_int_equal(told_count, 0);
	hear((struct xrc_note){.type = XRC_LINKED, .alias = note.alias, .stand_in = OTHERS + 20});
	assert_int_equal(kicks, 1);
	assert_int_equal(find(OTHERS + 10), 0);
	hear((struct xrc_note){.type = XRC_LOST, .alias = note.alias});
	assert_int_equal(kicks, 2);
	assert_null(device_find_qp(device, note.alias));
	assert_int_equal(find(OTHERS + 10), -EAGAIN);
	note = was_told(XRC_LINK);
	hear((struct xrc_note){.type = XRC_LINKED, .alias = note.alias, .result = -ENOENT});
	assert_int_equal(find(OTHERS + 10), -ENOENT);
	assert_int_equal(find(OTHERS + 10), -EAGAIN);
	was_told(XRC_LINK);
	end_target();
}

/* The address is gone: the stand-in is of no use. */
TEST(xrc_share_follow__ends_a_stand_in_to_which_it_finds_no_path)
{
	struct xrc_note note;

	make_target();
	assert_int_equal(find(OTHERS + 9), -EAGAIN);
	note = was_told(XRC_LINK);
	device_sync_gids(device, NULL, 0);
	hear((struct xrc_note){.type = XRC_LINKED, .alias = note.alias, .stand_in = OTHERS + 20});
	assert_int_equal(was_told(XRC_UNLINK).alias, note.alias);
	assert_int_equal(find(OTHERS + 9), -ENOENT);
	assert_int_equal(told_count, 0);
	end_target();
}

TEST(xrc_share_find__a_target_that_begins_anew_has_new_links)
{
	const struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct xrc_note note;

	make_target();
	assert_int_equal(find(OTHERS + 9), -EAGAIN);
	note = was_told(XRC_LINK);
	hear((struct xrc_note){.type = XRC_LINKED, .alias = note.alias, .stand_in = OTHERS + 20});
	assert_int_equal(find(OTHERS + 9), 0);
	assert_int_equal(qp_modify(target.qp, &reset, IBV_QP_STATE, NULL), 0);
	raise_target();
	assert_int_equal(find(OTHERS + 9), -EAGAIN);
	assert_int_equal(was_told(XRC_UNLINK).alias, note.alias);
	was_told(XRC_LINK);
	end_target();
}
