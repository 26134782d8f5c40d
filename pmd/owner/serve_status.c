/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of an owner and its processes, as structs and as JSON. */
#include "server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <rte_mempool.h>

#include "config/settings.h"
#include "device/device.h"
#include "direct.h"
#include "owner/arbiter.h"
#include "report/report_command.h"
#include "report/set.h"
#include "report/write.h"

/* Get the owner's figures. */
static void get_totals(const struct server *server, struct serve_totals *totals)
{
	*totals = server->totals;
	totals->buffers = server->arena.ownership.buffers;
	totals->buffers_free = rte_mempool_avail_count(server->uplink.link.port.pool);
	totals->blocks_used = server->slots.blocks.used;
	totals->packet_sockets = server->psocks.count;
	totals->cm_ports = server->gsi.arbiter->spaces.count;
	totals->direct_packets = directs_packets(server);
	for (int i = 0; i < SERVE_SLOTS_MAX; i++) {
		totals->buffers_held += server->arena.ownership.held[i];
		totals->processes +=
			server->slots.all[i].state != SLOT_FREE && !server->slots.all[i].is_further;
	}
}

/* A text that is being written. Characters that do not fit are counted in `len`, but not
 * written. */
struct text {
	char *at;
	size_t size, len;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *text, const char *format, ...)
{
	const size_t used = RTE_MIN(text->len, text->size);
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text->at + used, text->size - used, format, args);
	va_end(args);
	if (len > 0)
		text->len += (size_t)len;
}

/* Add the state of a slot. */
static void add_slot(struct text *text, const struct server *server, uint16_t number)
{
	const struct slot *slot = &server->slots.all[number];
	const bool isolated = slot->isolated != NULL;

	add(text,
	    "{\"slot\": %u, \"generation\": %" PRIu32
	    ", \"pid\": %d, \"uid\": %u, \"qpn_first\": %" PRIu32 ", \"qpn_count\": %" PRIu32
	    ", \"held\": %" PRIu32 ", \"tx_packets\": %" PRIu64 ", \"rx_packets\": %" PRIu64
	    ", \"rx_dropped\": %" PRIu64
	    ", \"uplink\": \"%s\", \"attached\": %s, \"isolated\": %s, \"engine\": %" PRIu32 "}",
	    number, slot->generation, slot->pid, slot->uid, slot->qpn_first, slot->qpn_count,
	    server->arena.ownership.held[number], slot->tx_packets, slot->rx_packets,
	    slot->rx_dropped,
	    isolated	      ? "memif"
	    : slot->has_psock ? "socket"
			      : "ring",
	    slot->state == SLOT_LIVE ? "true" : "false", isolated ? "true" : "false", slot->engine);
}

/* Add the damage that the port does on purpose. */
static void add_damage(struct text *text, const struct impair_counts *counts)
{
	for (int kind = 0; kind < IMPAIR_KINDS; kind++)
		add(text, "\"%s\": %" PRIu64 ", ", impair_count_name((enum impair_kind)kind),
		    counts->of[kind]);
}

int serve_status(const struct server *server, char *at, size_t size)
{
	struct text text = {.at = at, .size = size};
	struct serve_totals totals;
	const char *comma = "";

	get_totals(server, &totals);
	add(&text, "{");
#define OWNER_STAT(name, metric, kind, meaning) \
	add(&text, "\"" #name "\": %" PRIu64 ", ", totals.name);
#include "report/owner_stats.def"
#undef OWNER_STAT
	if (server->uplink.link.port.impaired)
		add_damage(&text, server->uplink.link.port.impaired);
	add(&text, "\"slots\": [");
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++) {
		if (server->slots.all[i].state == SLOT_FREE)
			continue;
		add(&text, "%s", comma);
		add_slot(&text, server, i);
		comma = ", ";
	}
	add(&text, "]}\n");
	return text.len < size ? (int)text.len : -ENOSPC;
}

static void status_fill_facts(const struct server *server, const struct settings *settings,
			      struct report_facts *facts)
{
	const struct port *port = &server->uplink.link.port;
	struct device_config config = {.mac_is_random = port->mac_is_random,
				       .unique = server->unique};

	memcpy(config.mac, port->mac, sizeof(config.mac));
	facts->role = REPORT_OWNER;
	snprintf(facts->device, sizeof(facts->device), "%s", settings->name);
	snprintf(facts->port, sizeof(facts->port), "%s", server->unique);
	facts->guid_be = device_guid(&config);
	facts->link_mbps = port->link_mbps;
	facts->mtu_bytes = port->mtu_bytes;
	facts->path_mtu = device_path_mtu(port->mtu_bytes);
	facts->netdev = settings->netdev[0] != '\0';
	facts->udp = settings->udp;
	memcpy(facts->mac, port->mac, sizeof(facts->mac));
}

static void status_report_damage(struct report *report, const struct impair_counts *counts)
{
	for (int kind = 0; kind < IMPAIR_KINDS; kind++)
		report_add_stat(report, impair_count_name((enum impair_kind)kind),
				counts->of[kind]);
}

static void status_write_report(struct server *server)
{
	struct report *report = server->status.report;
	struct serve_totals totals;

	get_totals(server, &totals);
	report_begin(report);
	report->facts.link_up = server->uplink.connected;
#define OWNER_STAT(name, metric, kind, meaning) report_add_stat(report, #name, totals.name);
#include "report/owner_stats.def"
#undef OWNER_STAT
	if (server->uplink.link.port.impaired)
		status_report_damage(report, server->uplink.link.port.impaired);
	for (int i = 0; i < SERVE_SLOTS_MAX; i++) {
		if (server->slots.all[i].state != SLOT_FREE && !server->slots.all[i].is_further)
			report_add_attached(report, server->slots.all[i].pid);
	}
	report_end(report);
}

int status_open_report(struct server *server, const struct settings *settings)
{
	int rc = report_create(&server->status.report_fd, &server->status.report);

	if (rc != 0)
		return rc;
	status_fill_facts(server, settings, &server->status.report->facts);
	status_write_report(server);
	rc = report_set_add(server->status.reports, server->status.report->pid, 0,
			    server->status.report);
	if (rc == 0)
		return 0;
	report_unmap(server->status.report);
	server->status.report = NULL;
	return rc;
}

/* An owner has no queue pairs, so only one command has a meaning. */
static void status_execute_command(struct report *report)
{
	struct report_command command;

	if (!report_command_take(report, &command))
		return;
	report_command_answer(report, &command,
			      command.kind == REPORT_COMMAND_LOG_LEVEL
				      ? report_command_log_level(&command)
				      : -EOPNOTSUPP);
}

void status_answer_report(struct server *server)
{
	status_execute_command(server->status.report);
	if (report_is_wanted(server->status.report))
		status_write_report(server);
}
