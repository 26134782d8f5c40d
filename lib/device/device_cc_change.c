/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes congestion control of a device's queue pairs. */
#include <errno.h>

#include "device/device.h"
#include "device_cc.h"

/* A change of all queue pairs. */
struct change {
	struct cc_attr attr;
	int rc;
	void (*each)(struct qp *qp, void *arg);
	void *arg;
};

static void change_one(struct qp *qp, void *arg)
{
	struct change *change = arg;
	const int rc = qp_change_cc(qp, &change->attr);

	if (rc == 0)
		change->each(qp, change->arg);
	else if (rc != -EOPNOTSUPP)
		change->rc = rc;
}

static int change_all(struct device *device, struct change *change)
{
	__atomic_store_n(&device->config.cc, change->attr.kind, __ATOMIC_RELEASE);
	device_each_qp(device, change_one, change);
	return change->rc;
}

int device_change_cc(struct device *device, uint32_t qpn, enum cc_kind kind,
		     void (*each)(struct qp *qp, void *arg), void *arg)
{
	struct change change = {.each = each, .arg = arg};
	struct qp *qp;
	int rc;

	if (kind >= CC_KINDS)
		return -EINVAL;
	rc = device_prepare_cc(device, kind);
	if (rc != 0)
		return rc;
	change.attr = device_cc_of(device, kind);
	if (qpn == 0)
		return change_all(device, &change);
	qp = device_find_qp(device, qpn);
	if (!qp)
		return -ENOENT;
	rc = qp_change_cc(qp, &change.attr);
	if (rc == 0)
		each(qp, arg);
	return rc;
}
