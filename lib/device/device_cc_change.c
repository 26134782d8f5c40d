/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes congestion control of a device's queue pairs. */
#include <errno.h>

#include "device/device.h"
#include "device_cc.h"

/* A change of all queue pairs. */
struct change {
	enum cc_kind kind;
	int rc;
	void (*each)(struct qp *qp, void *arg);
	void *arg;
};

static int change_one(struct qp *qp, const struct change *change)
{
	const struct cc_attr attr = device_cc_of(qp_home(qp), change->kind);
	const int rc = qp_change_cc(qp, &attr);

	if (rc == 0)
		change->each(qp, change->arg);
	return rc;
}

static void change_any(struct qp *qp, void *arg)
{
	struct change *change = arg;
	const int rc = change_one(qp, change);

	if (rc != 0 && rc != -EOPNOTSUPP)
		change->rc = rc;
}

static int change_all(struct device *device, struct change *change)
{
	__atomic_store_n(&device->config.cc, change->kind, __ATOMIC_RELEASE);
	device_each_qp(device, change_any, change);
	return change->rc;
}

int device_change_cc(struct device *device, uint32_t qpn, enum cc_kind kind,
		     void (*each)(struct qp *qp, void *arg), void *arg)
{
	struct change change = {.kind = kind, .each = each, .arg = arg};
	struct qp *qp;
	int rc;

	if (kind >= CC_KINDS)
		return -EINVAL;
	rc = device_prepare_cc(device, kind);
	if (rc != 0)
		return rc;
	if (qpn == 0)
		return change_all(device, &change);
	qp = device_find_qp(device, qpn);
	if (!qp)
		return -ENOENT;
	return change_one(qp, &change);
}
