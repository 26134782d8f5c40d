/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of this room's files that other files of the room call, grouped by file. The objects
 * are in ibv_objects.h. Internal errors are -errno; the last line of a verbs call converts them
 * into what its manual page says. */
#ifndef VERBS_INTERNAL_H
#define VERBS_INTERNAL_H

#include <errno.h>
#include <stdlib.h>

#include <rte_branch_prediction.h>

#include "base/origin.h"
#include "base/reason.h"
#include "ibv_objects.h"
#include "like/like.h"

/* explain.c */

/** Tell the user why a call fails, if somebody has said it. `function` is ibv_X, later_X, or X_op
 * for a call by a context's table. MT-safe; keeps errno. */
void face_explain(int error, const char *function) __attribute__((cold));

/** Tell the user why the call that the thread is in fails (reason_enter), if it is the outermost
 * one. MT-safe; keeps errno. */
void face_explain_call(int error) __attribute__((cold));

/* explain_event.c */

/** Tell the user why an event was raised that the program takes. MT-safe; keeps errno. */
void face_explain_event(const struct face_context *context, const struct ibv_async_event *event)
	__attribute__((cold));

/*
 * Return the result of a call that returns an errno value. Also set errno, as a failed system call
 * of Linux's drivers does: programs check either.
 *
 * This is the only conversion of an internal error. It gives a program a positive value whatever
 * the sign of `rc` is: a negative one would mean nothing to the program.
 */
static inline int face_fail(int rc, const char *function)
{
	if (likely(rc == 0))
		return 0;
	errno = abs(rc);
	if (unlikely(reason_wanted))
		face_explain(abs(rc), function);
	return abs(rc);
}
#define face_errno(rc) face_fail(rc, __func__)

/* Return the result of a failed call that returns a pointer; `function` is the one that the program
 * has called. */
#define face_null_by(rc, function) (face_fail(rc, function), NULL)
#define face_null(rc)		   face_null_by(rc, __func__)

/* Return the result of a failed call that returns -1. */
#define face_minus_one(rc) (face_fail(rc, __func__), -1)

/* ibv_device.c */

/** ibv_get_device_list, called by the code at `caller`. MT-safe. */
struct ibv_device **get_device_list_op(const void *caller, int *num_devices);

/** Lock the list of devices that were returned to the program. */
void device_list_lock(void);
void device_list_unlock(void);
void device_list_visit(void (*visit)(struct face_device *face, void *arg), void *arg);

/** Make the list empty in a child, instead of device_list_unlock: the devices are the parent's. */
void device_list_forget(void);

/** Return the device that replaces a parent's; start the list if necessary. MT-safe. NULL if there
 * is none. */
struct face_device *device_list_present(struct face_device *face);

/* ibv_fork.c */

/* The number of forks between the first process that started devices and this one. */
extern uint32_t fork_generation;

/** Return true if a context is unusable here: a parent of this process opened it, or it was closed
 * while it had objects. */
static inline bool context_is_orphan(const struct ibv_context *ibv)
{
	const struct verbs_context *verbs =
		(const void *)((const char *)ibv - offsetof(struct verbs_context, context));

	return unlikely(((const struct face_context *)verbs)->generation != fork_generation);
}

/** Make every call of the data path fail with ENODEV. face->lock, or nobody calls. */
void context_disable(struct face_context *context);

/** Install the fork handlers, because devices were started. */
void fork_watch(void);

/* ibv_context.c */

/**
 * Stop the engine for a control call; context_unlock starts it again.
 *
 * @return
 *   0, or -ENODEV if it is a parent process's (see ibv_fork.c).
 */
int context_lock(struct face_context *context);
void context_unlock(struct face_context *context);

/**
 * Create a context.
 *
 * @param cmd_fd
 *   Its command descriptor, which it then owns; -1 opens one.
 * @param root
 *   The context whose objects it shares, or NULL.
 * @return
 *   0 or -errno; on failure the caller still owns cmd_fd.
 */
int context_create(struct face_device *face, int cmd_fd, struct face_context *root,
		   struct face_context **context);

/** Return a number for an object's `handle`, unique in the context. Regions use their keys as
 * handles instead. MT-safe. */
uint32_t context_handle(struct face_context *context);

/** Get and put a reference to a context. MT-safe. */
void context_get(struct face_context *context);
void context_put(struct face_context *context);

/** Get and put a reference to a context for an object of it, which ibv_close_device will end.
 * MT-safe. */
void context_add(struct face_context *context, enum face_kind kind, struct face_object *object);
void context_remove(struct face_context *context, struct face_object *object);

/* close.c */

/** End every object of the contexts that share one file. None of them is open any more. Their
 * memory stays, because the program may still have pointers to them. */
void close_contexts(struct face_context *root);

/*
 * Each of these functions ends an object of one kind when its device is closed. It releases
 * everything that the object has, except the memory of the handle. It waits for nobody, except that
 * mr_end may wait for a page of its region (advise_wait). It does not use other objects, because
 * those may have ended before. These functions are in the files of the objects.
 */
void qp_end(struct face_object *object);
void comp_cntr_end(struct face_object *object);
void mw_end(struct face_object *object);
void mr_end(struct face_object *object);
void srq_end(struct face_object *object);
void cq_end(struct face_object *object);
void channel_end(struct face_object *object);
void ah_end(struct face_object *object);
void xrcd_end(struct face_object *object);
void parent_end(struct face_object *object);
void dm_end(struct face_object *object);
void pd_end(struct face_object *object);

/* handles.c */

/** Register a handle of the application: a pointer to the public part of an object. MT-safe. */
void handles_add(const void *handle);

/**
 * Take a handle that the application ends, so that no other thread can end it. If the object cannot
 * be ended, handles_add registers it again. MT-safe.
 *
 * @return
 *   False if the pointer is not a handle of the application: its object has ended, or it never was
 *   a handle.
 */
bool handles_take(const void *handle);

/** End a handle by `end` (0 or -errno). Return an errno value; EINVAL for a pointer that is not a
 * handle. */
int handles_end_by(void *handle, int (*end)(void *handle), const char *function);
#define handles_end(handle, end) handles_end_by(handle, end, __func__)

/** Lock the table of handles around fork(), so that the child finds it complete. */
void handles_lock(void);
void handles_unlock(void);

/* like.c */

/** Put the functions by which the device of --like refuses into a new context's table. */
void like_operations(struct verbs_context *verbs);

/* Return 0, or the negative errno value by which the device of --like refuses rights for FLUSH. */
int like_check_access(unsigned int access);

/* Lower what a queue pair has to what the device of --like grants. */
void qp_limit_cap(enum ibv_qp_type type, struct ibv_qp_cap *cap);

/* unsupported.c */

/* A table with a function that returns EOPNOTSUPP in every slot. */
extern const struct verbs_context unsupported_verbs;

/* ibv_query.c */

int query_port_op(struct ibv_context *ibv, uint8_t port_num, struct ibv_port_attr *attr,
		  size_t attr_size);
int query_device_ex_op(struct ibv_context *ibv, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_size);
int query_rt_values_ex_op(struct ibv_context *ibv, struct ibv_values_ex *values);
int query_port_legacy(struct ibv_context *ibv, uint8_t port_num,
		      struct _compat_ibv_port_attr *attr);

/* ibv_cq.c, ibv_cq_ex.c */

/* Attributes that only an extended queue has. */
struct cq_wants {
	struct ibv_pd *pd; /* a parent domain, or NULL */
	bool single_threaded;
	bool stamps;
};

/** Create a queue; `channel` must be of `context`. Return 0, -EINVAL, -ENODEV or -ENOMEM. */
int cq_open(struct face_context *context, uint32_t cqe, void *cq_context,
	    struct ibv_comp_channel *channel, uint32_t comp_vector, const struct cq_wants *wants,
	    struct face_cq **cq);
int poll_cq_op(struct ibv_cq *ibv, int n, struct ibv_wc *wc);
int req_notify_cq_op(struct ibv_cq *ibv, int solicited_only);
int modify_cq_op(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr);
struct ibv_cq_ex *create_cq_ex_op(struct ibv_context *ibv, struct ibv_cq_init_attr_ex *attr);

/** Make the queue's iterator find nothing and return ENODEV, because this is a child process. */
void cq_ex_disable(struct face_cq *cq);

/* home.c */

/** Return a number for a new thread domain. MT-safe. */
uint32_t home_next_number(void);

/** Return the engine of a new completion queue that was created with a parent domain, or NULL.
 * MT-safe. */
struct device_engine *home_of_cq(const struct device *device, uint32_t comp_vector,
				 const struct face_parent *parent);

/** Let a new completion queue take completions of its home, or an ended one of no engine. The
 * caller is the only user of the queue. */
void home_begin_cq(struct face_cq *cq);
void home_end_cq(struct face_cq *cq);

/** Let the queues of a new queue pair, which counts as their user, serve its engine. Device's lock.
 */
void home_join(struct face_qp *qp);

/** Let a completion queue take completions of a shared receive queue of an XRC domain. Device's
 * lock. */
void home_join_xrc(struct face_cq *cq);

/** The application is about to sleep until the completion queue raises an event: let other threads
 * run the engines that add completions to it. MT-safe. */
void home_wait_cq(const struct face_cq *cq);

/** The same for all completion queues of a channel. Engines whose events do not come out of this
 * channel are not accessed. MT-safe. */
void home_wait_channel(const struct face_channel *channel);

/* ibv_dm.c */

/** Allocate a handle of device memory, which the caller holds. NULL if there is no memory. */
struct face_dm *dm_handle(struct ibv_context *ibv, struct dm *dm, uint32_t handle);
void dm_free_handle(struct face_dm *dm);

/* shared.c */

/** Register an object by its handle, with a first holder. MT-safe. 0 or -ENOMEM. */
int shared_add(struct face_context *context, enum shared_kind kind, uint32_t handle, void *object,
	       struct shared **shared);

/** Find an object and hold it: its memory stays until pd_release_hold or dm_release_hold, even if
 * it is destroyed. MT-safe. NULL if there is none. */
struct shared *shared_hold(struct face_context *context, enum shared_kind kind, uint32_t handle,
			   void **object);

/** Return true if a domain is one of the context's. MT-safe. */
bool shared_has_pd(struct face_context *context, const struct pd *pd);

/** Destroy the object and release the hold. MT-safe. 0; -EINVAL if another holder has destroyed it;
 * -EBUSY: nothing has changed. */
int shared_destroy(struct shared *shared);

/** Release the hold; the object stays. MT-safe. */
void shared_release(struct shared *shared);

/** Destroy the objects that nobody holds, because the last context ends. */
void shared_end(struct face_context *root);

/* ibv_pd.c */

struct ibv_td *alloc_td_op(struct ibv_context *ibv, struct ibv_td_init_attr *attr);
int dealloc_td_op(struct ibv_td *ibv);
struct ibv_pd *alloc_parent_domain_op(struct ibv_context *ibv,
				      struct ibv_parent_domain_init_attr *attr);

/** End a parent domain. 0, or -EBUSY while objects that were created with it exist. */
int parent_dealloc(struct face_parent *parent);

/** Add a user to a parent domain. Return NULL if the domain is not a parent domain. MT-safe. */
struct face_parent *parent_get(struct ibv_pd *ibv);

/** Remove a user; does nothing for NULL. MT-safe. */
void parent_put(struct face_parent *parent);

/* ibv_mw.c */

struct ibv_mw *alloc_mw_op(struct ibv_pd *ibv, enum ibv_mw_type type);
int bind_mw_op(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int dealloc_mw_op(struct ibv_mw *ibv);

/* ibv_dm.c */

struct ibv_dm *alloc_dm_op(struct ibv_context *ibv, struct ibv_alloc_dm_attr *attr);
int free_dm_op(struct ibv_dm *ibv);

/* ibv_mr.c */

/** Register memory for the call of this name. */
struct ibv_mr *mr_reg(struct ibv_pd *ibv, void *addr, size_t length, uint64_t iova,
		      unsigned int access, const char *function);
struct ibv_mr *alloc_null_mr_op(struct ibv_pd *ibv);
struct ibv_mr *reg_dm_mr_op(struct ibv_pd *ibv, struct ibv_dm *dm, uint64_t dm_offset,
			    size_t length, unsigned int access);
int advise_mr_op(struct ibv_pd *ibv, enum ibv_advise_mr_advice advice, uint32_t flags,
		 struct ibv_sge *sge, uint32_t num_sge);

/* ibv_qp.c, ibv_qp_create.c, ibv_xrc.c, ibv_srq.c */

int modify_qp_rate_limit_op(struct ibv_qp *ibv, struct ibv_qp_rate_limit_attr *attr);
struct ibv_qp *create_qp_ex_op(struct ibv_context *ibv, struct ibv_qp_init_attr_ex *attr);

/** Allocate a queue pair's public part and its events; 0 or -ENOMEM. */
int qp_alloc(struct face_context *context, struct ibv_qp_init_attr_ex *attr, struct face_qp **qp);
void qp_free(struct face_qp *qp);

/** Remove a queue pair from the list of those that have ibv_wr_* calls. */
void qp_unlist(struct face_qp *qp);

/** Allocate a number for the queue pair, create it, and add it to the engine. 0 or -errno. */
int qp_start(struct face_qp *qp, struct ibv_qp_init_attr_ex *attr);

/** Create a queue pair of an XRC domain with a first handle; attr is checked. 0 or -errno. */
int xrc_create_target(struct face_context *context, struct ibv_qp_init_attr_ex *attr,
		      struct face_qp **qp);

/** Add the new queue pair to the domain. Engine's lock. */
void xrc_start_target(struct face_qp *qp);

/** Remove a handle. Return true if it was the last one: the queue pair ends too. Engine's lock. */
bool xrc_leave_target(struct face_qp *qp);

struct ibv_xrcd *open_xrcd_op(struct ibv_context *ibv, struct ibv_xrcd_init_attr *attr);
int close_xrcd_op(struct ibv_xrcd *ibv);
struct ibv_qp *open_qp_op(struct ibv_context *ibv, struct ibv_qp_open_attr *attr);
struct ibv_srq *create_srq_ex_op(struct ibv_context *ibv, struct ibv_srq_init_attr_ex *attr);
int get_srq_num_op(struct ibv_srq *ibv, uint32_t *number);

/* ibv_comp_cntr.c */

/** Let the queue pair, which has ended, count no more. */
void comp_cntr_detach(struct face_qp *qp);

/* ibv_wr.c */

/** Check that queue pairs of a type can send all of this. 0, -EINVAL, -EOPNOTSUPP. */
int wr_check_flags(enum ibv_qp_type type, uint64_t send_ops_flags);
void wr_fill(struct face_qp *qp, uint64_t send_ops_flags);

/** Make the queue pair's ibv_wr_* calls do nothing, because this is a child process. */
void wr_disable(struct face_qp *qp);

/* ibv_wr.c, ibv_ah.c */

int post_send_op(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int post_recv_op(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int post_srq_recv_op(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/**
 * Find the peer's link address and build the path to it. Blocks up to some seconds; the engine
 * runs.
 *
 * @return
 *   0, -EINVAL, or the error of device_net_ops.resolve.
 */
int path_resolve(struct device *device, const struct ibv_ah_attr *attr, uint32_t qpn,
		 uint32_t dest_qpn, struct path *path);

/* ibv_event.c */

/** Prepare the events of a new object. */
void event_init_qp(struct face_qp *qp);
void event_init_srq(struct face_srq *srq);
void event_init_cq(struct face_cq *cq);
void event_init_context(struct face_context *context);

/** Raise an event; called by the engine's thread or a control call. */
void event_raise_qp(void *user, enum ibv_event_type type);
void event_raise_target(void *user, enum ibv_event_type type);
void event_raise_srq_limit(void *user);
void event_raise_cq(void *user);
void event_raise_device(void *user, enum ibv_event_type type);

/** Drop unread events, and wait until read ones are acknowledged. Nobody raises events any more. */
void event_drain_qp(struct face_qp *qp);
void event_drain_srq(struct face_srq *srq);
void event_drain_cq(struct face_cq *cq);
void event_drop_context(struct face_context *context);

#endif
