/* SPDX-License-Identifier: BSD-3-Clause */
/* Executes an order of the report: another process wrote it, so each value is checked. */
#include "obey.h"

#include <errno.h>

#include "device/device.h"
#include "engine/crossing.h"
#include "engine/engine.h"
#include "report/order.h"

/* Packets that congestion control held may be allowed now. */
static void run_changed(struct qp *qp, void *arg __rte_unused)
{
	engine_mark_ready(qp_home(qp)->driver, qp);
}

static int execute(struct engine *engine, const struct report_order *order)
{
	struct device *device = engine->device;

	switch (order->kind) {
	case ORDER_PARAM:
		return cc_param_set(&device->cc_params, order->index, order->value);
	case ORDER_ALGORITHM:
		return device_change_cc(device, order->value, (enum cc_kind)order->index,
					run_changed, NULL);
	case ORDER_KINDS:
		break;
	}
	return -EINVAL;
}

void obey(struct engine *engine)
{
	struct report_order order;
	int rc;

	if (!engine->report || !order_take(engine->report, &order))
		return;
	crossing_stop_others(engine->crossing);
	rc = execute(engine, &order);
	crossing_start_others(engine->crossing);
	order_answer(engine->report, &order, rc);
}
