/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce-ctl: shows the devices of uroce's processes, their objects and counters. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "top.h"

static int fail(const char *error)
{
	fprintf(stderr, "uroce-ctl: %s\n", error);
	return EXIT_FAILURE;
}

static int show(const struct command *command, const struct ctl_devices *devices)
{
	const struct show_filter *filter = &command->filter;
	struct output output;

	output_begin(&output, command->json);
	if (command->object == COMMAND_DEV)
		show_dev(devices, filter, &output);
	else if (command->object == COMMAND_LINK)
		show_link(devices, filter, &output);
	else if (command->object == COMMAND_STATISTIC)
		show_statistic(devices, filter, &output);
	else if (command->kind < 0)
		show_summary(devices, filter, &output);
	else
		show_objects(devices, filter, (enum report_kind)command->kind, &output);
	return output_end(&output) ? 0 : -ENOMEM;
}

static int run(const struct command *command)
{
	struct ctl_devices devices;
	int rc;

	if (command->object == COMMAND_TOP)
		return top_run(&command->filter, command->ms, command->rounds);
	rc = devices_look(&devices);
	if (rc != 0)
		return rc;
	rc = show(command, &devices);
	if (devices.left_out > 0)
		fprintf(stderr,
			"uroce-ctl: %u reports are left out: a process or user has too many, or "
			"they cannot be opened\n",
			devices.left_out);
	devices_release(&devices);
	return rc;
}

int main(int argc, char **argv)
{
	struct command command;
	char error[256] = "";
	int rc;

	if (!command_parse(argc, argv, &command, error, sizeof(error)))
		return fail(error);
	if (command.object == COMMAND_HELP)
		return fputs(command_help, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	if (command.object == COMMAND_VERSION)
		return puts("uroce-ctl " UROCE_VERSION) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	rc = run(&command);
	if (rc != 0)
		return fail(strerror(-rc));
	return fflush(stdout) == 0 ? EXIT_SUCCESS : fail("cannot write");
}
