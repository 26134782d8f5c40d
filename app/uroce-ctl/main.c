/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce-ctl: shows the devices of uroce's processes and what the host allows, captures, and changes
 * congestion control. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "ctl_capture.h"
#include "ctl_cdi.h"
#include "ctl_show.h"
#include "doctor.h"
#include "rdma.h"
#include "report/metrics.h"

static int fail(const char *error)
{
	fprintf(stderr, "uroce-ctl: %s\n", error);
	return EXIT_FAILURE;
}

static int show(const struct command *command, const struct report_devices *devices,
		const struct terminal *terminal)
{
	const struct report_filter *filter = &command->filter;
	struct output output;

	output_begin(&output, command->json, terminal);
	if (command->object == COMMAND_DEV)
		show_dev(devices, filter, &output);
	else if (command->object == COMMAND_LINK)
		show_link(devices, filter, &output);
	else if (command->object == COMMAND_CONGESTION)
		show_congestion(devices, filter, &output);
	else if (command->object == COMMAND_STATISTIC)
		show_statistic(devices, filter, &output);
	else if (command->kind < 0)
		show_summary(devices, filter, &output);
	else
		show_objects(devices, filter, (enum report_kind)command->kind, &output);
	return output_end(&output) ? 0 : -ENOMEM;
}

static int examine(const struct command *command, const struct terminal *terminal)
{
	struct doctor_host host;
	struct output output;

	doctor_ask_host(&host);
	output_begin(&output, command->json, terminal);
	doctor_show(&host, &output);
	return output_end(&output) ? 0 : -ENOMEM;
}

static int look(const struct command *command, const struct terminal *terminal, char *error,
		size_t error_size)
{
	const struct capture_want want = {
		.filter = command->filter,
		.qpn = command->qpn,
		.file = command->file,
		.packets = command->count,
	};
	struct report_devices devices;
	int rc;

	rc = devices_look(&devices);
	if (rc != 0)
		return rc;
	if (devices.left_out > 0)
		fprintf(stderr,
			"uroce-ctl: %u reports are left out: a process or user has too many, or "
			"they cannot be opened\n",
			devices.left_out);
	if (!show_is_there(&devices, &command->filter, error, error_size))
		rc = -ENOENT;
	else if (command->object == COMMAND_TOP)
		rc = top_run(&command->filter, terminal, command->ms, command->count);
	else if (command->object == COMMAND_CAPTURE)
		capture_run(&devices, &want, error, error_size);
	else if (command->change_count > 0)
		change_give(&devices, command, error, error_size);
	else if (command->object == COMMAND_METRICS)
		metrics_write(stdout, &devices, &command->filter, command->kind == REPORT_QP);
	else if (command->object == COMMAND_WHY)
		why_show(&devices, &command->filter);
	else
		rc = show(command, &devices, terminal);
	devices_release(&devices);
	return rc;
}

static int run(const struct command *command, char *error, size_t error_size)
{
	struct terminal terminal;

	terminal_look(&terminal, command->colour);
	if (command->object == COMMAND_MONITOR)
		return monitor_run(&command->filter, &terminal, command->ms, command->count);
	if (command->object == COMMAND_DOCTOR)
		return examine(command, &terminal);
	if (command->object == COMMAND_CDI) {
		cdi_run(command->socket, error, error_size);
		return 0;
	}
	return look(command, &terminal, error, error_size);
}

int main(int argc, char **argv)
{
	struct command command;
	char error[512] = "";
	int rc;

	if (strcmp(program_invocation_short_name, "rdma") == 0)
		return rdma_main(argc, argv);
	if (!command_parse(argc, argv, &command, error, sizeof(error)))
		return fail(error);
	if (command.object == COMMAND_HELP)
		return fputs(command_help, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	if (command.object == COMMAND_VERSION)
		return puts("uroce-ctl " UROCE_VERSION) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	rc = run(&command, error, sizeof(error));
	if (error[0] != '\0')
		return fail(error);
	if (rc != 0)
		return fail(strerror(-rc));
	return fflush(stdout) == 0 ? EXIT_SUCCESS : fail("cannot write");
}
