/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/device/xrcd.c and xrc_share.c with threads: they open and close the domain of one
 * file while the owner of the port asks for stand-ins, and ends them. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/device.h"
#include "device/xrc_share.h"
#include "device/xrcd.h"
#include "test.h"

#define FIRST	(5u << 14)
#define OTHERS	(9u << 14)
#define OPENERS 3
#define ROUNDS	4000
#define LINKS	64 /* aliases of the other process, used in turn */

static struct device *device;
static int fd;
static pthread_mutex_t engine_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int busy; /* openers that have not ended; atomic */

/* The owner of the port. It follows the rules of pmd/owner/xrc.c. */
static struct {
	pthread_mutex_t lock; /* protects all below */
	unsigned int opens;
	enum link_state { LINK_NONE, LINK_ASKED, LINK_UP } links[LINKS];
	struct xrc_note said[2 * LINKS]; /* to the device */
	unsigned int said_count;
	unsigned int made; /* stand-ins */
} owner = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock(void *engine)
{
	(void)engine;
	pthread_mutex_lock(&engine_lock);
}

static void unlock(void *engine)
{
	(void)engine;
	pthread_mutex_unlock(&engine_lock);
}

static void do_nothing_with(void *engine, struct qp *qp)
{
	(void)engine;
	(void)qp;
}

static const struct engine_ops ops = {
	.lock = lock,
	.unlock = unlock,
	.attach = do_nothing_with,
	.detach = do_nothing_with,
	.kick = do_nothing_with,
};

static void say_locked(const struct xrc_note *note)
{
	assert_true(owner.said_count < sizeof(owner.said) / sizeof(owner.said[0]));
	owner.said[owner.said_count++] = *note;
}

static int ask(void *user, struct xrc_note *note)
{
	(void)user;
	assert_int_equal(note->type, XRC_OPEN);
	pthread_mutex_lock(&owner.lock);
	owner.opens++;
	pthread_mutex_unlock(&owner.lock);
	note->result = 0;
	return 0;
}

/* The process has closed the domain for the last time: its links end without a word to it. */
static void close_locked(void)
{
	assert_true(owner.opens > 0);
	if (--owner.opens > 0)
		return;
	for (unsigned int i = 0; i < LINKS; i++)
		owner.links[i] = LINK_NONE;
}

static void tell(void *user, const struct xrc_note *note)
{
	enum link_state *link = &owner.links[note->alias % LINKS];

	(void)user;
	pthread_mutex_lock(&owner.lock);
	switch (note->type) {
	case XRC_CLOSE:
		close_locked();
		break;
	case XRC_LINKED:
		owner.made += note->result == 0;
		if (*link == LINK_ASKED)
			*link = note->result == 0 ? LINK_UP : LINK_NONE;
		break;
	default:
		assert_int_equal(note->type, XRC_LOST);
		*link = LINK_NONE;
		break;
	}
	pthread_mutex_unlock(&owner.lock);
}

static bool has_next(void *user)
{
	bool has;

	(void)user;
	pthread_mutex_lock(&owner.lock);
	has = owner.said_count > 0;
	pthread_mutex_unlock(&owner.lock);
	return has;
}

static bool next(void *user, struct xrc_note *note)
{
	bool has;

	(void)user;
	pthread_mutex_lock(&owner.lock);
	has = owner.said_count > 0;
	if (has) {
		*note = owner.said[0];
		memmove(owner.said, owner.said + 1, --owner.said_count * sizeof(owner.said[0]));
	}
	pthread_mutex_unlock(&owner.lock);
	return has;
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
	assert_int_equal(device_add_gid(device, &own_gid, -1, 0), 0);
	fd = memfd_create("domain", MFD_CLOEXEC);
	assert_true(fd >= 0);
	return 0;
}

static int tear_down(TEST_STATE)
{
	device_destroy(device);
	close(fd);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* Ask for a stand-in, or end one, as the owner does for the other process. */
static void ask_for_one(const struct stat *file, unsigned int turn)
{
	struct xrc_note note = {
		.target = OTHERS + 1,
		.alias = OTHERS + LINKS + turn % LINKS,
		.mtu = IBV_MTU_1024,
		.min_rnr_timer = 12,
		.vlan_id = -1,
		.dev = (uint64_t)file->st_dev,
		.ino = (uint64_t)file->st_ino,
	};
	enum link_state *link = &owner.links[note.alias % LINKS];

	memcpy(note.gid, own_gid.raw, sizeof(note.gid));
	pthread_mutex_lock(&owner.lock);
	if (owner.said_count < LINKS && owner.opens > 0 && *link != LINK_ASKED) {
		note.type = *link == LINK_UP ? XRC_UNLINK : XRC_LINK;
		*link = *link == LINK_UP ? LINK_NONE : LINK_ASKED;
		say_locked(&note);
	}
	pthread_mutex_unlock(&owner.lock);
}

/* Run engine polls until all openers have ended. */
static void *run_engine(void *arg)
{
	struct stat file;

	(void)arg;
	assert_int_equal(fstat(fd, &file), 0);
	for (unsigned int turn = 0; __atomic_load_n(&busy, __ATOMIC_ACQUIRE) > 0; turn++) {
		ask_for_one(&file, turn);
		lock(NULL);
		if (xrc_share_is_due(device))
			xrc_share_follow(device);
		unlock(NULL);
		sched_yield();
	}
	return NULL;
}

static void *open_and_close(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct xrcd *xrcd;

		assert_int_equal(xrcd_open(device, fd, O_CREAT, &xrcd), 0);
		assert_non_null(xrcd_pd(xrcd));
		sched_yield();
		xrcd_close(xrcd);
	}
	__atomic_sub_fetch(&busy, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* A stand-in never outlives its domain, and the owner counts as many closes as opens. */
TEST(xrcd_close__by_threads_while_stand_ins_are_asked_for)
{
	pthread_t engine, openers[OPENERS];

	busy = OPENERS;
	assert_int_equal(pthread_create(&engine, NULL, run_engine, NULL), 0);
	for (unsigned int i = 0; i < OPENERS; i++)
		assert_int_equal(pthread_create(&openers[i], NULL, open_and_close, NULL), 0);
	for (unsigned int i = 0; i < OPENERS; i++)
		assert_int_equal(pthread_join(openers[i], NULL), 0);
	assert_int_equal(pthread_join(engine, NULL), 0);
	assert_int_equal(owner.opens, 0);
	assert_true(owner.made > 0);
	assert_int_equal(device->qps, 0);
	assert_true(LIST_EMPTY(&device->xrcds));
}
