/* SPDX-License-Identifier: BSD-3-Clause */
/* Executes a command of the report: another process wrote it, so each value is checked. */
#include "commands.h"

#include <errno.h>

#include "device/device.h"
#include "engine/engines.h"
#include "engine/engine.h"
#include "report/report_command.h"

/* Packets that congestion control held may be allowed now. */
static void run_changed(struct qp *qp, void *arg __rte_unused)
{
	engine_mark_ready(qp_home(qp)->driver, qp);
}

static int execute(struct engine *engine, const struct report_command *command)
{
	struct device *device = engine->device;

	switch (command->kind) {
	case REPORT_COMMAND_PARAM:
		return cc_param_set(&device->cc_params, command->index, command->value);
	case REPORT_COMMAND_ALGORITHM:
		return device_change_cc(device, command->value, (enum cc_kind)command->index,
					run_changed, NULL);
	case REPORT_COMMAND_LOG_LEVEL:
		return report_command_log_level(command);
	case REPORT_COMMAND_KINDS:
		break;
	}
	return -EINVAL;
}

void commands_execute(struct engine *engine)
{
	struct report_command command;
	int rc;

	if (!engine->report || !report_command_take(engine->report, &command))
		return;
	engines_stop_others(engine->engines);
	rc = execute(engine, &command);
	engines_start_others(engine->engines);
	report_command_answer(engine->report, &command, rc);
}
