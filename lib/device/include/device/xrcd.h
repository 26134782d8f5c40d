/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains (annex A14): each queue pair of a domain may receive into each shared receive queue
 * of the domain. */
#ifndef DEVICE_XRCD_H
#define DEVICE_XRCD_H

#include <stdint.h>
#include <sys/queue.h>

struct device;
struct pd;
struct qp;
struct srq;
struct xrc_link;
struct xrcd;

/* A queue pair that receives for a domain; its creator owns this struct. */
struct xrcd_member {
	LIST_ENTRY(xrcd_member) link;
	struct qp *qp;
	struct xrcd *xrcd;
	LIST_HEAD(, xrc_link) links; /* of a target, to other processes (xrc_share.h) */
};

/**
 * Open a domain. If `fd` is a file, it is the domain of that file, which all callers that open it
 * share, in all processes that share the port. If `fd` is -1, it is a new domain of the caller's
 * own. MT-safe; it may ask the owner of the port, and so not under the device's lock.
 *
 * @param oflags
 *   O_CREAT: create the domain if the file has none. With O_EXCL: fail if it has one.
 * @return
 *   0; -EAGAIN if the domain does not exist and O_CREAT is missing, -EINVAL if it exists and O_EXCL
 *   is set, -ENOMEM, or -errno of fstat(2).
 */
int xrcd_open(struct device *device, int fd, int oflags, struct xrcd **xrcd);

/** Release what xrcd_open returned. The last release ends the domain, which has no queues then.
 * MT-safe. */
void xrcd_close(struct xrcd *xrcd);

/** Return the protection domain of the XRC domain's queue pairs. It contains no keys. */
struct pd *xrcd_pd(const struct xrcd *xrcd);

/** Give a shared receive queue the number by which peers name it in the domain. Engine's lock.
 * Return 0 or -ENOSPC. */
int xrcd_add_srq(struct xrcd *xrcd, struct srq *srq);

/** Invalidate its number, and make the domain's queue pairs forget the queue. Engine's lock. */
void xrcd_remove_srq(struct xrcd *xrcd, struct srq *srq);

/** Tell the owner of the port of a target, so that other processes find it. MT-safe; not under the
 * device's lock. 0 or -errno. xrcd_remove_qp tells of its end. */
int xrcd_announce(struct xrcd *xrcd, uint32_t qpn);

/** Return 0 if a queue pair of another process is a target of the domain, or -EINVAL. As
 * xrcd_announce. */
int xrcd_find_target(struct xrcd *xrcd, uint32_t qpn);

/** Add a queue pair to the domain, and remove it. Engine's lock. */
void xrcd_add_qp(struct xrcd *xrcd, struct xrcd_member *member);
void xrcd_remove_qp(struct xrcd_member *member);

/**
 * Drop completions of a queue pair of the domain that nobody has polled. They may be in any
 * completion queue, because its shared receive queues may have been destroyed. Engine's lock.
 */
void xrcd_forget_qp(const struct xrcd *xrcd, uint32_t qpn);

/** Return the shared receive queue with this number in the domain (a struct xrcd), or NULL.
 * Engine's thread. */
struct srq *xrcd_find_srq(void *xrcd, uint32_t number);

#endif
