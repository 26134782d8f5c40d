/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens a port of the process's own by EAL, for the provider. */
#include "owning.h"

#include <string.h>

#include "base/log.h"
#include "config/settings.h"
#include "eal/runtime.h"
#include "embed.h"
#include "net/link.h"
#include "report/set.h"
#include "report/telemetry.h"
#include "report/write.h"
#include "secondary.h"

/* Start EAL with what a prepared port needs. */
static int owning_start_runtime(const struct settings *settings, const struct link *link)
{
	const struct runtime_config config = {
		.devices = &link->port.devargs,
		.device_count = link->port.devargs.bus == DEVARGS_VDEV ? 0 : 1,
		.memory_bytes = port_memory_bytes(&link->port),
		.telemetry = settings->telemetry,
		.eal = settings->eal[0] ? settings->eal : NULL,
		.file_prefix = settings->file_prefix[0] ? settings->file_prefix : NULL};

	return runtime_start(&config);
}

static int owning_open_link(const struct settings *settings, struct link *link)
{
	int rc;

	if (embed_settings())
		return embed_open_link(link);
	if (settings->secondary != 0)
		return secondary_open_link(settings, link);
	rc = link_prepare(link, settings);
	provider_size_pool(settings, link);
	if (rc == 0)
		rc = owning_start_runtime(settings, link);
	if (rc == 0)
		rc = link_open(link, settings);
	return rc;
}

/* Start telemetry, only if the user asked for it: its socket is a file, which remains when the
 * process is killed. */
static int owning_start_telemetry(struct report *report)
{
	static struct report_set set;
	int rc;

	report_set_init(&set);
	rc = report_set_add(&set, report->pid, 0, report);
	if (rc == 0)
		rc = report_telemetry_start(&set);
	if (rc != 0)
		log_error("cannot answer DPDK's telemetry: %s", strerror(-rc));
	return rc;
}

static const struct owning owning_table = {
	.attached_port = embed_settings,
	.open_link = owning_open_link,
	.start_runtime = owning_start_runtime,
	.start_telemetry = owning_start_telemetry,
	.settle = runtime_settle,
};

static void __attribute__((constructor)) owning_register(void)
{
	provider_set_owning(&owning_table);
}
