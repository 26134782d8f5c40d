/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The structs behind the pointers that verbs return.
 *
 * Each object begins with its public struct, so that a cast converts one into the other. A queue
 * pair ends with it, because not all queue pairs have the whole of it. Each object points to the
 * object of the room that does its work.
 */
#ifndef VERBS_OBJECTS_H
#define VERBS_OBJECTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <infiniband/verbs.h>
#include <rte_common.h>

#include "device/device.h"
#include "device/xrcd.h"
#include "queue/ah.h"
#include "queue/channel.h"
#include "queue/ring.h"

#include "later.h"

struct check_qp;
struct cq;
struct dm;
struct face_qp_cntrs;
struct mr;
struct mw;
struct pd;
struct qp;
struct srq;

#define FACE_PORT	 1 /* the only port of a device */
#define FACE_SRQ_EVENTS	 2 /* kinds of events of a shared receive queue */
#define FACE_PORT_EVENTS 8 /* kinds of events of no object */

TAILQ_HEAD(face_context_list, face_context);
LIST_HEAD(face_ex_qps, face_qp);
LIST_HEAD(face_ex_cqs, face_cq);

/* The kinds of objects of a context. ibv_close_device ends them in this order: each kind before
 * those that it is made of. */
enum face_kind {
	FACE_QP,
	FACE_COMP_CNTR,
	FACE_MW,
	FACE_MR,
	FACE_SRQ,
	FACE_CQ,
	FACE_CHANNEL,
	FACE_AH,
	FACE_XRCD,
	FACE_PARENT,
	FACE_TD,
	FACE_DM,
	FACE_PD,
	FACE_KINDS,
};

/* List entry of an object in its context. */
struct face_object {
	LIST_ENTRY(face_object) link;
};

LIST_HEAD(face_object_list, face_object);

/* Stands in the place of a generation: the device was closed, and its objects have ended. */
#define FACE_CLOSED UINT32_MAX

/* A device. It lives from the first ibv_get_device_list to the end of the process. */
struct face_device {
	struct ibv_device ibv;
	/* Drivers look here for their own table to recognise their devices; it is never there. */
	const void *driver_ops;
	struct device *device;
	size_t index;			   /* index in the list */
	uint32_t generation;		   /* its fork_generation */
	pthread_mutex_t lock;		   /* protects contexts; taken by the engine's thread too */
	struct face_context_list contexts; /* open contexts, and closed ones that had objects */
};

struct face_context {
	struct verbs_context verbs; /* ends with the application's struct ibv_context */
	struct face_device *face;
	struct device *device;
	uint32_t generation; /* its fork_generation, or FACE_CLOSED */
	/* under face->lock */
	TAILQ_ENTRY(face_context) link;
	bool open;
	bool closing; /* closed, but it still has objects */
	struct face_object_list objects[FACE_KINDS];
	struct face_ex_qps ex_qps; /* queue pairs with operations of their own */
	struct face_ex_cqs ex_cqs;

	struct device_object listed; /* while open */
	uint32_t users;		     /* 1 while open, and one for each object; atomic */
	uint32_t next_handle;	     /* atomic */
	struct channel async;
	struct channel_source port_events[FACE_PORT_EVENTS];

	dev_t file_dev; /* the file of cmd_fd: the same for all contexts that share objects */
	ino_t file_ino;
	struct face_context *root; /* the first of these; itself, unless it was imported */

	/* used in the first one only */
	pthread_mutex_t shared_lock; /* protects shared and its entries */
	LIST_HEAD(, shared) shared;  /* objects that are not destroyed */
};

/* An object that a context shares with those that were imported from it. Its handles point here. */
enum shared_kind {
	SHARED_PD,
	SHARED_DM,
};

struct shared {
	LIST_ENTRY(shared) link;
	struct face_context *root;
	enum shared_kind kind;
	uint32_t handle;
	uint32_t holders;	     /* handles of the application */
	void *object;		     /* NULL: destroyed */
	struct device_object listed; /* used for a SHARED_PD */
};

struct face_td {
	struct ibv_td ibv;
	struct face_object object;
	uint32_t number; /* chooses the engine of its queues */
	uint32_t users;	 /* parent domains that use it; atomic */
};

struct face_pd {
	struct ibv_pd ibv;
	struct face_object object;
	struct pd *pd; /* held; in a parent domain: a reference to the domain that it extends */
	struct shared *shared;	    /* NULL in a parent domain */
	struct face_parent *parent; /* the parent domain itself; NULL in other domains */
};

struct face_parent {
	struct face_pd domain;	   /* the part that the application holds */
	struct face_parent *outer; /* the parent domain that it extends, or NULL */
	struct face_td *td;	   /* NULL without one */
	uint32_t users;		   /* objects created with it; atomic */
	struct queue_domain queues;
	struct ring_allocator allocator;

	/* the application's functions, with IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
};

struct face_mr {
	struct ibv_mr ibv;
	struct face_object object;
	struct mr *mr;
	uint32_t key; /* its key, by which we find out if another handle has ended the region */
	bool imported;
	bool is_null;
	struct face_parent *parent; /* the parent domain that it was created with, or NULL; also in
				       the structs below */
};

struct face_mw {
	struct ibv_mw ibv;
	struct face_object object;
	struct mw *mw;
	struct face_parent *parent;
};

struct face_dm {
	struct ibv_dm ibv;
	struct face_object object;
	struct dm *dm;
	struct shared *shared; /* NULL in a child process, which shares nothing */
};

struct face_ah {
	struct ah ah; /* the part that posting reads */
	struct face_object object;
	struct ibv_ah_attr attr;
	struct pd *pd;
	struct face_parent *parent;
};

struct face_channel {
	struct ibv_comp_channel ibv; /* refcnt: completion queues that use it; atomic */
	struct face_object object;
	struct channel channel;
	/* For each engine, how many of the channel's queues it adds completions to. Atomic: a count
	 * is right at any time, so threads that are about to sleep read it without a lock. */
	uint32_t fed[DEVICE_ENGINES_MAX];
};

struct face_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex; /* contains ibv as well */
	};
	struct face_object object;
	struct cq *cq;
	struct device *device;
	struct device_engine *home; /* atomic; changes only before its first use (home.c) */
	uint32_t feeders; /* bits of the engines that add completions; atomic; device's lock */
	struct device_object listed;
	struct face_parent *parent;
	struct channel_source error; /* IBV_EVENT_CQ_ERR */
	/* check_poll.c; atomic, until it is polled next */
	bool armed_full;   /* it held completions when it was armed */
	uintptr_t sleeper; /* the thread that slept then; 0: none */
	uint32_t due; /* check_work.c: completions that posted requests will be, or are; its lock */

	/* unfold.c: how often was drawn, and how many polls find nothing yet; atomic */
	struct {
		uint32_t polls, idle, arms, late;
	} unfold;

	/* between ibv_start_poll and ibv_end_poll */
	pthread_mutex_t iterator_lock;
	bool single_threaded; /* the application's promise: iterator_lock is not taken */
	struct ibv_wc wc;     /* the current completion */
	int untold;	      /* polled completions that the engine was not told of */
	uint64_t stamp_ns;    /* time at which it was added, if asked for */
	bool wants_wallclock;
	uint64_t wallclock_offset_ns; /* difference from the engine's clock to CLOCK_REALTIME */

	bool is_ex; /* created by ibv_create_cq_ex: in the context's list */
	LIST_ENTRY(face_cq) ex_link;
};

struct face_xrcd {
	struct ibv_xrcd ibv;
	struct face_object object;
	struct xrcd *xrcd;
	uint32_t users; /* shared receive queues and queue pairs that were opened with it; atomic */
};

struct face_srq {
	struct ibv_srq ibv;
	struct face_object object;
	struct srq *srq;
	struct device *device;
	struct device_engine *home; /* of the first queue pair that used it; device's lock */
	struct device_object listed;
	struct face_parent *parent;
	struct ibv_cq *cq;	/* XRC: queue of its completions, else NULL */
	struct face_xrcd *xrcd; /* XRC, else NULL */
	struct channel_source events[FACE_SRQ_EVENTS];
};

TAILQ_HEAD(face_qp_list, face_qp);

/*
 * A queue pair that receives for an XRC domain. Each program part that opens it has a handle, and
 * the last handle ends it. Under the engine's lock.
 */
struct face_target {
	struct xrcd_member member;
	struct xrcd *xrcd;
	struct face_qp_list handles; /* all of them get its events */
};
static_assert(offsetof(struct face_target, member) == 0, "xrc_share_find gets the member");

struct face_qp {
	struct face_object object;
	struct channel_several events;
	struct pd *pd; /* referenced; the handle in ibv.pd may end before (ibv_unimport_pd(3)) */
	struct face_parent *parent;
	struct device *device;
	uint32_t groups;	     /* multicast groups that it is attached to; atomic */
	struct face_qp_cntrs *cntrs; /* NULL: none is attached; engine's lock */
	struct check_qp *check;	     /* NULL: nobody wants to know its mistakes (check.h) */
	bool blocks_own_mcast;
	bool is_ex;   /* created with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS */
	bool is_away; /* XRC_RECV: the queue pair is in another process; `qp` has only its number */
	LIST_ENTRY(face_qp) ex_link;

	/* XRC_RECV only, else NULL */
	struct face_target *target;
	struct face_xrcd *xrcd;
	TAILQ_ENTRY(face_qp) target_link;

	/* Posting reads the fields from here on: one cache line. */
	struct qp *qp;
	struct device_engine *home;
	union {
		struct ibv_qp ibv;
		/* The fields from here on exist only if is_ex is set. */
		struct ibv_qp_ex ex; /* contains ibv as well */
		char room[LATER_QP_EX_OFF + sizeof(struct later_qp_ex)];
	};
	struct sq *build_sq; /* queue in which lists are built; in a child process a dummy */
	uint32_t wr_opcodes; /* opcodes that may be built: bits of enum ibv_wr_opcode */
};
static_assert(offsetof(struct face_qp, qp) / RTE_CACHE_LINE_MIN_SIZE ==
		      offsetof(struct face_qp, ibv.context) / RTE_CACHE_LINE_MIN_SIZE,
	      "one cache line");

/* Return the size of the struct with or without its last part. */
static inline size_t face_qp_bytes(bool is_ex)
{
	return is_ex ? sizeof(struct face_qp)
		     : offsetof(struct face_qp, ibv) + sizeof(struct ibv_qp);
}

static inline struct face_device *face_device(struct ibv_device *ibv)
{
	return (struct face_device *)ibv;
}

static inline struct face_context *face_context(struct ibv_context *ibv)
{
	return (struct face_context *)((char *)ibv - offsetof(struct face_context, verbs.context));
}

/** Return the engine of a completion queue. MT-safe. */
static inline struct device_engine *face_home(const struct face_cq *cq)
{
	return __atomic_load_n(&cq->home, __ATOMIC_RELAXED);
}

static inline struct face_pd *face_pd(struct ibv_pd *ibv)
{
	return (struct face_pd *)ibv;
}

/* Return a domain's attributes for queues that are created with it, or NULL. */
static inline const struct queue_domain *face_queues(struct ibv_pd *ibv)
{
	const struct face_parent *parent = face_pd(ibv)->parent;

	return parent ? &parent->queues : NULL;
}

static inline struct face_mr *face_mr(struct ibv_mr *ibv)
{
	return (struct face_mr *)ibv;
}

static inline struct face_mw *face_mw(struct ibv_mw *ibv)
{
	return (struct face_mw *)ibv;
}

static inline struct face_dm *face_dm(struct ibv_dm *ibv)
{
	return (struct face_dm *)ibv;
}

static inline struct face_ah *face_ah(struct ibv_ah *ibv)
{
	return (struct face_ah *)ibv;
}

static inline struct face_channel *face_channel(struct ibv_comp_channel *ibv)
{
	return (struct face_channel *)ibv;
}

static inline struct face_cq *face_cq(struct ibv_cq *ibv)
{
	return (struct face_cq *)ibv;
}

static inline struct face_srq *face_srq(struct ibv_srq *ibv)
{
	return (struct face_srq *)ibv;
}

static inline struct face_xrcd *face_xrcd(struct ibv_xrcd *ibv)
{
	return (struct face_xrcd *)ibv;
}

static inline struct face_qp *face_qp(struct ibv_qp *ibv)
{
	return (struct face_qp *)((char *)ibv - offsetof(struct face_qp, ibv));
}

#endif
