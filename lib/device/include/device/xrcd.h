/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains: which queue pairs may receive into which shared receive queues (annex A14). */
#ifndef DEVICE_XRCD_H
#define DEVICE_XRCD_H

#include <stdint.h>
#include <sys/queue.h>

struct device;
struct pd;
struct qp;
struct srq;
struct xrcd;

/* A queue pair that receives for a domain; whoever made it owns this. */
struct xrcd_member {
	LIST_ENTRY(xrcd_member) link;
	struct qp *qp;
};

/**
 * Open a domain: that of the file `fd`, shared by all who open it, or one of the caller's own for
 * fd -1. MT-safe.
 *
 * @param oflags
 *   O_CREAT: make it where the file has none. With O_EXCL: only that.
 * @return
 *   0; -EAGAIN where it would have to be made, -EINVAL where it may not be there, -ENOMEM, or
 * -errno of fstat(2).
 */
int xrcd_open(struct device *device, int fd, int oflags, struct xrcd **xrcd);

/** Give back what xrcd_open gave; the last ends the domain, which then has no queues left. MT-safe.
 */
void xrcd_close(struct xrcd *xrcd);

/** The protection domain that its queue pairs are of: no key is. */
struct pd *xrcd_pd(const struct xrcd *xrcd);

/** Give a shared receive queue the number by which peers find it in the domain. Engine's lock. 0 or
 * -ENOSPC. */
int xrcd_add_srq(struct xrcd *xrcd, struct srq *srq);

/** Its number finds it no more, and the domain's queue pairs forget it. Engine's lock. */
void xrcd_remove_srq(struct xrcd *xrcd, struct srq *srq);

/** Make a queue pair one of the domain's, and let it go. Engine's lock. */
void xrcd_add_qp(struct xrcd *xrcd, struct xrcd_member *member);
void xrcd_remove_qp(struct xrcd_member *member);

/**
 * Drop what a queue pair of the domain completed and nobody has polled. It may be in any completion
 * queue: its shared receive queues may have gone since. Engine's lock.
 */
void xrcd_forget_qp(const struct xrcd *xrcd, uint32_t qpn);

/** The queue of a number in the domain (a struct xrcd), or NULL. Engine's thread. */
struct srq *xrcd_find_srq(void *xrcd, uint32_t number);

#endif
