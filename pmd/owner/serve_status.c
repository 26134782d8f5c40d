/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of an owner and its processes, as structs and as JSON. */
#include "serve_status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <rte_mempool.h>

#include "config/settings.h"
#include "device/device.h"
#include "lanes.h"
#include "owner/arbiter.h"
#include "report/set.h"
#include "report/write.h"
#include "server.h"

void serve_totals(const struct server *server, struct serve_totals *totals)
{
	*totals = server->totals;
	totals->buffers = server->arena.ownership.buffers;
	totals->buffers_free = rte_mempool_avail_count(server->uplink.link.port.pool);
	totals->blocks_used = server->slots.blocks.used;
	totals->psocks = server->psocks.count;
	totals->cm_ports = server->gsi.arbiter->spaces.count;
	totals->buffers_held = server->arena.ownership.aside;
	totals->lane_packets = lanes_packets(server);
	for (int i = 0; i < SERVE_SLOTS_MAX; i++) {
		totals->buffers_held += server->arena.ownership.held[i];
		totals->processes +=
			server->slots.all[i].state != SLOT_FREE && !server->slots.all[i].is_further;
	}
}

bool serve_next_slot(const struct server *server, uint16_t number, struct serve_slot *status)
{
	const struct slot *slot;

	while (number < SERVE_SLOTS_MAX && server->slots.all[number].state == SLOT_FREE)
		number++;
	if (number >= SERVE_SLOTS_MAX)
		return false;
	slot = &server->slots.all[number];
	*status = (struct serve_slot){
		.slot = number,
		.generation = slot->generation,
		.pid = slot->pid,
		.uid = slot->uid,
		.qpn_first = slot->qpn_first,
		.qpn_count = slot->qpn_count,
		.held = server->arena.ownership.held[number],
		.tx_packets = slot->tx_packets,
		.rx_packets = slot->rx_packets,
		.rx_dropped = slot->rx_dropped,
		.isolated = slot->isolated != NULL,
		.has_psock = slot->has_psock,
		.attached = slot->state == SLOT_LIVE,
		.engine = slot->engine,
	};
	return true;
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

static void add_slot(struct text *text, const struct serve_slot *slot)
{
	add(text,
	    "{\"slot\": %u, \"generation\": %" PRIu32
	    ", \"pid\": %d, \"uid\": %u, \"qpn_first\": %" PRIu32 ", \"qpn_count\": %" PRIu32
	    ", \"held\": %" PRIu32 ", \"tx_packets\": %" PRIu64 ", \"rx_packets\": %" PRIu64
	    ", \"rx_dropped\": %" PRIu64
	    ", \"uplink\": \"%s\", \"attached\": %s, \"isolated\": %s, \"engine\": %" PRIu32 "}",
	    slot->slot, slot->generation, slot->pid, slot->uid, slot->qpn_first, slot->qpn_count,
	    slot->held, slot->tx_packets, slot->rx_packets, slot->rx_dropped,
	    slot->isolated    ? "memif"
	    : slot->has_psock ? "socket"
			      : "ring",
	    slot->attached ? "true" : "false", slot->isolated ? "true" : "false", slot->engine);
}

/* Add the damage that the port does on purpose. */
static void add_damage(struct text *text, const struct impair_counts *counts)
{
	for (int kind = 0; kind < IMPAIR_KINDS; kind++)
		add(text, ", \"%s\": %" PRIu64, impair_count_name((enum impair_kind)kind),
		    counts->of[kind]);
}

int serve_status(const struct server *server, char *at, size_t size)
{
	struct text text = {.at = at, .size = size};
	struct serve_totals totals;
	struct serve_slot slot;

	serve_totals(server, &totals);
	add(&text,
	    "{\"buffers\": %" PRIu32 ", \"buffers_held\": %" PRIu32 ", \"buffers_free\": %" PRIu32
	    ", \"blocks_used\": %" PRIu32 ", \"groups\": %" PRIu32 ", \"processes\": %" PRIu32
	    ", \"packet_sockets\": %" PRIu32 ", \"attached\": %" PRIu64 ", \"ended\": %" PRIu64,
	    totals.buffers, totals.buffers_held, totals.buffers_free, totals.blocks_used,
	    totals.groups, totals.processes, totals.psocks, totals.attached, totals.ended);
	add(&text,
	    ", \"rx_packets\": %" PRIu64 ", \"tx_packets\": %" PRIu64 ", \"handed_over\": %" PRIu64
	    ", \"kernel_rx_packets\": %" PRIu64 ", \"kernel_tx_packets\": %" PRIu64
	    ", \"kernel_dropped\": %" PRIu64 ", \"lanes\": %" PRIu64 ", \"lane_packets\": %" PRIu64
	    ", \"direct_memifs\": %" PRIu64 ", \"unknown_qpn\": %" PRIu64
	    ", \"tx_dropped\": %" PRIu64 ", \"refused\": %" PRIu64,
	    totals.rx_packets, totals.tx_packets, totals.handed_over, totals.kernel_rx_packets,
	    totals.kernel_tx_packets, totals.kernel_dropped, totals.lanes, totals.lane_packets,
	    totals.directs, totals.unknown_qpn, totals.tx_dropped, totals.refused);
	add(&text,
	    ", \"rx_dropped\": %" PRIu64 ", \"unknown_group\": %" PRIu64
	    ", \"own_source\": %" PRIu64 ", \"no_buffer\": %" PRIu64 ", \"own_dropped\": %" PRIu64,
	    totals.rx_dropped, totals.unknown_group, totals.own_source, totals.no_buffer,
	    totals.own_dropped);
	if (server->uplink.link.port.impaired)
		add_damage(&text, server->uplink.link.port.impaired);
	add(&text,
	    ", \"cm_ports\": %" PRIu32 ", \"mads\": %" PRIu64 ", \"mads_answered\": %" PRIu64
	    ", \"mads_dropped\": %" PRIu64 ", \"mads_farewell\": %" PRIu64 ", \"slots\": [",
	    totals.cm_ports, totals.mads, totals.mads_answered, totals.mads_dropped,
	    totals.mads_farewell);
	for (bool more = serve_next_slot(server, 0, &slot); more;) {
		add_slot(&text, &slot);
		more = serve_next_slot(server, (uint16_t)(slot.slot + 1), &slot);
		add(&text, "%s", more ? ", " : "");
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

	serve_totals(server, &totals);
	report_begin(report);
	report->facts.link_up = server->uplink.connected;
	report_add_stat(report, "rx_packets", totals.rx_packets);
	report_add_stat(report, "tx_packets", totals.tx_packets);
	report_add_stat(report, "handed_over", totals.handed_over);
	report_add_stat(report, "rx_dropped", totals.rx_dropped);
	report_add_stat(report, "unknown_qpn", totals.unknown_qpn);
	report_add_stat(report, "unknown_group", totals.unknown_group);
	report_add_stat(report, "own_source", totals.own_source);
	report_add_stat(report, "no_buffer", totals.no_buffer);
	report_add_stat(report, "own_dropped", totals.own_dropped);
	report_add_stat(report, "cm_ports", totals.cm_ports);
	report_add_stat(report, "mads", totals.mads);
	report_add_stat(report, "mads_answered", totals.mads_answered);
	report_add_stat(report, "mads_dropped", totals.mads_dropped);
	report_add_stat(report, "mads_farewell", totals.mads_farewell);
	report_add_stat(report, "tx_dropped", totals.tx_dropped);
	if (server->kernel.is_open) {
		report_add_stat(report, "kernel_rx_packets", totals.kernel_rx_packets);
		report_add_stat(report, "kernel_tx_packets", totals.kernel_tx_packets);
		report_add_stat(report, "kernel_dropped", totals.kernel_dropped);
	}
	if (server->uplink.link.port.impaired)
		status_report_damage(report, server->uplink.link.port.impaired);
	report_add_stat(report, "refused", totals.refused);
	report_add_stat(report, "processes", totals.processes);
	report_add_stat(report, "attached", totals.attached);
	report_add_stat(report, "ended", totals.ended);
	report_add_stat(report, "packet_sockets", totals.psocks);
	report_add_stat(report, "groups", totals.groups);
	report_add_stat(report, "buffers", totals.buffers);
	report_add_stat(report, "buffers_held", totals.buffers_held);
	report_add_stat(report, "buffers_free", totals.buffers_free);
	report_add_stat(report, "blocks_used", totals.blocks_used);
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

void status_answer_report(struct server *server)
{
	if (report_is_wanted(server->status.report))
		status_write_report(server);
}
