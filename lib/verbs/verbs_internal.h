/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stands behind the pointers that verbs hand out.
 *
 * Each object begins with its public struct, so a cast leads from one to the other, and points to
 * the object of the room that does its work. Errors are -errno inside and become what the call's
 * man page says at its last line.
 */
#ifndef VERBS_INTERNAL_H
#define VERBS_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <infiniband/verbs.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "device/device.h"
#include "device/xrcd.h"
#include "queue/ah.h"
#include "queue/channel.h"
#include "queue/ring.h"

struct cq;
struct dm;
struct mr;
struct mw;
struct pd;
struct qp;
struct srq;

#define FACE_PORT	  1 /* the only port of a device */
#define FACE_COMP_VECTORS 1
#define FACE_QP_EVENTS	  8 /* kinds of events that a queue pair has */
#define FACE_SRQ_EVENTS	  2 /* kinds that a shared receive queue has */
#define FACE_PORT_EVENTS  8 /* kinds that belong to no object */

TAILQ_HEAD(face_context_list, face_context);
LIST_HEAD(face_ex_qps, face_qp);
LIST_HEAD(face_ex_cqs, face_cq);

/* Lives from the first ibv_get_device_list to the end of the process. */
struct face_device {
	struct ibv_device ibv;
	/* Where drivers look for a table of theirs to know whether the device is; it never is. */
	const void *driver_ops;
	struct device *device;
	size_t index;	     /* in the list */
	uint32_t generation; /* the fork_generation that it is of */
	pthread_mutex_t lock; /* below it: contexts; taken by the engine's thread too */
	struct face_context_list contexts; /* open ones, and closed ones that have objects */
};

struct face_context {
	struct verbs_context verbs; /* ends in the struct ibv_context that the application holds */
	struct face_device *face;
	struct device *device;
	uint32_t generation; /* the fork_generation that it is of */
	/* under face->lock */
	TAILQ_ENTRY(face_context) link;
	bool open;
	struct face_ex_qps ex_qps; /* whose operations are their own, not the context's */
	struct face_ex_cqs ex_cqs;

	uint32_t users;	      /* 1 while open, and its objects; atomic */
	uint32_t next_handle; /* atomic */
	struct channel async;
	struct channel_source port_events[FACE_PORT_EVENTS];

	dev_t file_dev; /* what cmd_fd leads to: the same for all contexts that share objects */
	ino_t file_ino;
	struct face_context *root; /* the first of these; itself, unless it was imported */

	/* the first one's */
	pthread_mutex_t shared_lock; /* below it: shared, and what its entries lead to */
	LIST_HEAD(, shared) shared;  /* objects that are not destroyed */
};

/* An object of a context and of those that were imported from it. Its handles point here. */
enum shared_kind {
	SHARED_PD,
	SHARED_DM,
};

struct shared {
	LIST_ENTRY(shared) link;
	struct face_context *root;
	enum shared_kind kind;
	uint32_t handle;
	uint32_t holders; /* handles that the application has */
	void *object;	  /* NULL: destroyed */
	struct device_object listed; /* of a SHARED_PD */
};

struct face_td {
	struct ibv_td ibv;
	uint32_t users; /* parent domains; atomic */
};

struct face_pd {
	struct ibv_pd ibv;
	struct pd *pd; /* held; with a parent domain, that of the one which it extends, and used */
	struct shared *shared;	    /* NULL with a parent domain */
	struct face_parent *parent; /* itself, if it is a parent domain; else NULL */
};

struct face_parent {
	struct face_pd domain;	   /* what the application holds */
	struct face_parent *outer; /* the parent domain that it extends, or NULL */
	struct face_td *td;	   /* NULL without one */
	uint32_t users;		   /* objects made with it; atomic */
	struct queue_domain queues;
	struct ring_allocator allocator;

	/* the application's, with IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
};

struct face_mr {
	struct ibv_mr ibv;
	struct mr *mr;
	uint32_t key; /* by which it is known whether another handle has ended it */
	bool imported;
	bool is_null;
	struct face_parent *parent; /* made with it, or NULL: so it is in what follows */
};

struct face_mw {
	struct ibv_mw ibv;
	struct mw *mw;
	struct face_parent *parent;
};

struct face_dm {
	struct ibv_dm ibv;
	struct dm *dm;
	struct shared *shared; /* NULL in a child process, which shares nothing */
};

struct face_ah {
	struct ah ah; /* what posting reads */
	struct ibv_ah_attr attr;
	struct pd *pd;
	struct face_parent *parent;
};

struct face_channel {
	struct ibv_comp_channel ibv; /* refcnt: completion queues that use it; atomic */
	struct channel channel;
};

struct face_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex; /* the same, and more */
	};
	struct cq *cq;
	struct device *device;
	struct device_object listed;
	struct face_parent *parent;
	struct channel_source error; /* IBV_EVENT_CQ_ERR */

	/* between ibv_start_poll and ibv_end_poll */
	pthread_mutex_t iterator_lock;
	bool single_threaded; /* the application's promise: iterator_lock is not taken */
	struct ibv_wc wc;     /* the current completion */
	uint64_t stamp_ns;    /* when it was added, if wanted */
	bool wants_wallclock;
	uint64_t wallclock_offset_ns; /* what the engine's clock lacks to CLOCK_REALTIME */

	bool is_ex; /* made by ibv_create_cq_ex: in the context's list */
	LIST_ENTRY(face_cq) ex_link;
};

struct face_xrcd {
	struct ibv_xrcd ibv;
	struct xrcd *xrcd;
	uint32_t users; /* shared receive queues and queue pairs opened through it; atomic */
};

struct face_srq {
	struct ibv_srq ibv;
	struct srq *srq;
	struct device *device;
	struct face_parent *parent;
	struct ibv_cq *cq;	/* XRC: where it completes, else NULL */
	struct face_xrcd *xrcd; /* XRC, else NULL */
	struct channel_source events[FACE_SRQ_EVENTS];
};

TAILQ_HEAD(face_qp_list, face_qp);

/*
 * A queue pair that receives for an XRC domain: each who opens it has a handle, and the last handle
 * ends it. Under the engine's lock.
 */
struct face_target {
	struct xrcd_member member;
	struct xrcd *xrcd;
	struct face_qp_list handles; /* all hear of its events */
};

/* What later releases of verbs.h have at the end of struct ibv_qp_ex. */
struct face_qp_ex_later {
	struct ibv_qp_ex ex;
	void (*wr_flush)(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t length,
			 uint8_t type, uint8_t level);
};

struct face_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex; /* the same, and more */
		struct face_qp_ex_later later;
	};
	struct qp *qp;
	struct device *device;
	struct pd *pd; /* used; the handle in ibv.pd may go before (ibv_unimport_pd(3)) */
	struct face_parent *parent;
	bool is_ex;	     /* asked for with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS */
	uint32_t wr_opcodes; /* what may then be built: bits of enum ibv_wr_opcode */
	struct sq *build_sq; /* where it is; in a child process nowhere */
	LIST_ENTRY(face_qp) ex_link;
	uint32_t groups; /* multicast groups that it is attached to; engine's lock */
	bool blocks_own_mcast;
	struct channel_source events[FACE_QP_EVENTS];

	/* XRC_RECV only, else NULL */
	struct face_target *target;
	struct face_xrcd *xrcd;
	TAILQ_ENTRY(face_qp) target_link;
};

static inline struct face_device *face_device(struct ibv_device *ibv)
{
	return (struct face_device *)ibv;
}

static inline struct face_context *face_context(struct ibv_context *ibv)
{
	return (struct face_context *)((char *)ibv - offsetof(struct face_context, verbs.context));
}

static inline struct face_pd *face_pd(struct ibv_pd *ibv)
{
	return (struct face_pd *)ibv;
}

/* What a domain says of the queues that are made with it, or NULL. */
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
	return (struct face_qp *)ibv;
}

/* What a call that returns a pointer ends with when it failed. */
static inline void *face_null(int rc)
{
	errno = -rc;
	return NULL;
}

/* What a call that returns -1 ends with when it failed. */
static inline int face_minus_one(int rc)
{
	errno = -rc;
	return -1;
}

/* device.c */

/** Visit the devices that were handed out; their lock is held. */
void device_list_lock(void);
void device_list_unlock(void);
void device_list_visit(void (*visit)(struct face_device *face, void *arg), void *arg);

/** In a child, in the place of device_list_unlock: the devices are the parent's, and the list is empty. */
void device_list_forget(void);

/** The device in the place of one that a parent has: the list is started anew where it is not yet. MT-safe. NULL where
 * there is none. */
struct face_device *device_list_present(struct face_device *face);

/* fork.c */

/* How many forks lie between the first process that started devices and this one. */
extern uint32_t fork_generation;

/** Whether a context was opened by a parent of this process: nothing of it works here. */
static inline bool context_is_orphan(const struct ibv_context *ibv)
{
	const struct verbs_context *verbs =
		(const void *)((const char *)ibv - offsetof(struct verbs_context, context));

	return unlikely(((const struct face_context *)verbs)->generation != fork_generation);
}

/** Prepare for fork() from now on: devices were started. */
void fork_watch(void);

/* context.c */

/**
 * Stop the engine for a control call; context_unlock starts it again.
 *
 * @return
 *   0, or -ENODEV where it is a parent process's (see fork.c).
 */
int context_lock(struct face_context *context);
void context_unlock(struct face_context *context);

/**
 * Make a context.
 *
 * @param cmd_fd
 *   Its command descriptor, which becomes its own; -1 makes one.
 * @param root
 *   Whose objects it shares, or NULL.
 * @return
 *   0 or -errno; then cmd_fd is the caller's still.
 */
int context_create(struct face_device *face, int cmd_fd, struct face_context *root,
		   struct face_context **context);

/** A number for an object's `handle`, different from all others of the context, but for regions,
 * whose handles are their keys. MT-safe. */
uint32_t context_handle(struct face_context *context);

/** Keep a context for an object of it, and give it back. MT-safe. */
void context_get(struct face_context *context);
void context_put(struct face_context *context);

/* unsupported.c */

/* Every slot filled with a function that answers EOPNOTSUPP. */
extern const struct verbs_context unsupported_verbs;

/* query.c */

int query_port_sized(struct ibv_context *ibv, uint8_t port_num, struct ibv_port_attr *attr,
		     size_t attr_size);
int query_device_sized(struct ibv_context *ibv, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_size);
int query_clock_op(struct ibv_context *ibv, struct ibv_values_ex *values);
int query_port_legacy(struct ibv_context *ibv, uint8_t port_num,
		      struct _compat_ibv_port_attr *attr);

/* cq.c, cq_ex.c */

/* What only an extended queue can be asked for. */
struct cq_wants {
	struct ibv_pd *pd; /* a parent domain, or NULL */
	bool single_threaded;
	bool stamps;
};

/** Create a queue; `context`, `channel` belong together. 0, -EINVAL, -ENODEV, -ENOMEM. */
int cq_open(struct face_context *context, uint32_t cqe, void *cq_context,
	    struct ibv_comp_channel *channel, uint32_t comp_vector, const struct cq_wants *wants,
	    struct face_cq **cq);
int cq_poll_op(struct ibv_cq *ibv, int n, struct ibv_wc *wc);
int cq_arm_op(struct ibv_cq *ibv, int solicited_only);
int cq_modify_op(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr);
struct ibv_cq_ex *cq_ex_create_op(struct ibv_context *ibv, struct ibv_cq_init_attr_ex *attr);

/** In a child process: from now on its iterator finds nothing, and says ENODEV. */
void cq_ex_disable(struct face_cq *cq);

/* dm.c */

/** A handle of device memory, which the caller holds, for the application. NULL: out of memory. */
struct face_dm *dm_handle(struct ibv_context *ibv, struct dm *dm, uint32_t handle);
void dm_free_handle(struct face_dm *dm);

/* shared.c */

/** Make an object findable, with a first holder. MT-safe. 0 or -ENOMEM. */
int shared_add(struct face_context *context, enum shared_kind kind, uint32_t handle, void *object,
	       struct shared **shared);

/** Find an object and hold it: its memory stays until pd_release_hold or dm_release_hold, even when
 * it is destroyed. MT-safe. NULL where there is none. */
struct shared *shared_hold(struct face_context *context, enum shared_kind kind, uint32_t handle,
			   void **object);

/** Whether a domain is one of the context's. MT-safe. */
bool shared_has_pd(struct face_context *context, const struct pd *pd);

/** Destroy the object and give up the hold. MT-safe. 0; -EINVAL where another holder has destroyed
 * it; -EBUSY: nothing has changed. */
int shared_destroy(struct shared *shared);

/** Give up the hold; the object stays. MT-safe. */
void shared_release(struct shared *shared);

/** The last context goes: so do objects that nobody holds. */
void shared_end(struct face_context *root);

/* parent.c */

struct ibv_td *td_alloc_op(struct ibv_context *ibv, struct ibv_td_init_attr *attr);
int td_dealloc_op(struct ibv_td *ibv);
struct ibv_pd *parent_alloc_op(struct ibv_context *ibv, struct ibv_parent_domain_init_attr *attr);

/** End a parent domain. 0, or -EBUSY while objects made with it exist. */
int parent_dealloc(struct face_parent *parent);

/** Count an object that is made with a domain; NULL where that is no parent domain. MT-safe. */
struct face_parent *parent_get(struct ibv_pd *ibv);

/** Discount it; nothing with NULL. MT-safe. */
void parent_put(struct face_parent *parent);

/* mw.c */

struct ibv_mw *mw_alloc_op(struct ibv_pd *ibv, enum ibv_mw_type type);
int mw_bind_op(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int mw_dealloc_op(struct ibv_mw *ibv);

/* dm.c */

struct ibv_dm *dm_alloc_op(struct ibv_context *ibv, struct ibv_alloc_dm_attr *attr);
int dm_free_op(struct ibv_dm *ibv);

/* mr.c, advise.c */

struct ibv_mr *mr_alloc_null_op(struct ibv_pd *ibv);
struct ibv_mr *mr_reg_dm_op(struct ibv_pd *ibv, struct ibv_dm *dm, uint64_t dm_offset,
			    size_t length, unsigned int access);
int mr_advise_op(struct ibv_pd *ibv, enum ibv_advise_mr_advice advice, uint32_t flags,
		 struct ibv_sge *sge, uint32_t num_sge);

/* qp.c, qp_create.c, xrc.c, srq.c */

int qp_rate_limit_op(struct ibv_qp *ibv, struct ibv_qp_rate_limit_attr *attr);
struct ibv_qp *qp_ex_create_op(struct ibv_context *ibv, struct ibv_qp_init_attr_ex *attr);

/** A queue pair's public half, its events; 0 or -ENOMEM. */
int qp_alloc(struct face_context *context, struct ibv_qp_init_attr_ex *attr, struct face_qp **qp);
void qp_free(struct face_qp *qp);

/** Give the queue pair a number, make it and let the engine know it. 0 or -errno. */
int qp_start(struct face_qp *qp, struct ibv_qp_init_attr_ex *attr);

/** The queue pair of an XRC domain, with a first handle; attr is checked. 0 or -errno. */
int xrc_create_target(struct face_context *context, struct ibv_qp_init_attr_ex *attr,
		      struct face_qp **qp);

/** Its queue pair is made: the domain knows it. Engine's lock. */
void xrc_start_target(struct face_qp *qp);

/** A handle goes. Whether it was the last, with which the queue pair goes too. Engine's lock. */
bool xrc_leave_target(struct face_qp *qp);

struct ibv_xrcd *xrcd_open_op(struct ibv_context *ibv, struct ibv_xrcd_init_attr *attr);
int xrcd_close_op(struct ibv_xrcd *ibv);
struct ibv_qp *qp_open_op(struct ibv_context *ibv, struct ibv_qp_open_attr *attr);
struct ibv_srq *srq_ex_create_op(struct ibv_context *ibv, struct ibv_srq_init_attr_ex *attr);
int srq_number_op(struct ibv_srq *ibv, uint32_t *number);

/* wr.c */

/** Whether queue pairs of a type can send all this. 0, -EINVAL, -EOPNOTSUPP. */
int wr_check_flags(enum ibv_qp_type type, uint64_t send_ops_flags);
void wr_fill(struct face_qp *qp, uint64_t send_ops_flags);

/** In a child process: from now on its list of work requests leads nowhere. */
void wr_disable(struct face_qp *qp);

/* post.c, path.c */

int post_send_op(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int post_recv_op(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int post_srq_recv_op(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/**
 * Find the peer's link address and build the path to it. Blocks up to some seconds; the engine
 * runs.
 *
 * @return
 *   0, -EINVAL, or what engine_ops.resolve says.
 */
int path_resolve(struct device *device, const struct ibv_ah_attr *attr, uint32_t qpn,
		 uint32_t dest_qpn, struct path *path);

/* event.c */

/** Prepare the events of a new object. */
void event_init_qp(struct face_qp *qp);
void event_init_srq(struct face_srq *srq);
void event_init_cq(struct face_cq *cq);
void event_init_context(struct face_context *context);

/** Raise one; the engine's thread or a control call. */
void event_raise_qp(void *user, enum ibv_event_type type);
void event_raise_target(void *user, enum ibv_event_type type);
void event_raise_srq_limit(void *user);
void event_raise_cq(void *user);
void event_raise_device(void *user, enum ibv_event_type type);

/** Drop unread events, wait until those read are acknowledged. Nobody raises any more. */
void event_drain_qp(struct face_qp *qp);
void event_drain_srq(struct face_srq *srq);
void event_drain_cq(struct face_cq *cq);
void event_drop_context(struct face_context *context);

#endif
