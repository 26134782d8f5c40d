/* SPDX-License-Identifier: BSD-3-Clause */
/* QP 1: checks received datagrams and passes them to the receiver of MADs, and sends MADs as
 * datagrams. */
#include "device/gsi.h"

#include <errno.h>
#include <string.h>

#include "base/cancel.h"
#include "device/device.h"
#include "transport/sink.h"
#include "wire/gid.h"
#include "wire/headers.h"
#include "wire/mad.h"
#include "wire/opcode.h"
#include "wire/packet.h"

enum gsi_taken gsi_receive(struct device *device, const struct packet *packet, uint64_t now_ns)
{
	struct gsi_address from = {
		.vlan_id = packet->vlan_id,
		.mac_known = true,
	};
	int cancel_state;

	if (!device->gsi)
		return GSI_NOBODY;
	if (packet->opcode != (OPCODE_UD | OPCODE_SEND_ONLY))
		return GSI_NO_MAD;
	/* The source must be QP 1: we never redirect a sender to another queue pair (13.5). */
	if (packet->qkey != GSI_QKEY || packet->src_qpn != GSI_QPN)
		return GSI_WRONG_KEY;
	memcpy(from.local, packet->dgid, sizeof(from.local));
	memcpy(from.remote, packet->sgid, sizeof(from.remote));
	memcpy(from.mac, packet->src_mac, sizeof(from.mac));
	cancel_state = cancel_disable();
	if (device->net && device->net->learn)
		device->net->learn(device->net_user, from.vlan_id, from.remote, from.mac);
	device->gsi->receive(device->gsi_user, &from, packet->payload, packet->payload_len, now_ns);
	cancel_restore(cancel_state);
	return GSI_TAKEN;
}

uint64_t gsi_deadline_ns(const struct device *device)
{
	return device->gsi && device->gsi->deadline_ns ? device->gsi->deadline_ns(device->gsi_user)
						       : UINT64_MAX;
}

void gsi_each_conn(struct device *device, gsi_tell_conn *tell, void *arg)
{
	if (device->gsi && device->gsi->each_conn)
		device->gsi->each_conn(device->gsi_user, tell, arg);
}

unsigned int gsi_end(struct device *device, uint64_t now_ns)
{
	return device->gsi && device->gsi->end ? device->gsi->end(device->gsi_user, now_ns) : 0;
}

unsigned int gsi_run(struct device *device, uint64_t now_ns, struct packet_sink *sink)
{
	unsigned int work;
	int cancel_state;

	if (gsi_deadline_ns(device) > now_ns || !device->gsi->run)
		return 0;
	cancel_state = cancel_disable();
	work = device->gsi->run(device->gsi_user, now_ns, sink);
	cancel_restore(cancel_state);
	return work;
}

void gsi_tell(struct device *device, uint64_t now_ns)
{
	const int cancel_state = cancel_disable();

	device->gsi_untold = false;
	if (device->gsi && device->gsi->tell)
		device->gsi->tell(device->gsi_user, now_ns);
	cancel_restore(cancel_state);
}

static int make_path(const struct device *device, const struct gsi_address *to, struct path *path)
{
	struct path_attr attr = {
		.vlan_tci = to->vlan_id,
		.hop_limit = WIRE_HOP_LIMIT,
		.udp_sport = WIRE_UDP_SPORT_MIN,
	};

	memcpy(attr.src_mac, device->config.mac, sizeof(attr.src_mac));
	memcpy(attr.dst_mac, to->mac, sizeof(attr.dst_mac));
	memcpy(attr.sgid, to->local, sizeof(attr.sgid));
	memcpy(attr.dgid, to->remote, sizeof(attr.dgid));
	return path_init(path, &attr);
}

int gsi_send(struct device *device, const struct gsi_address *to, const uint8_t *mad,
	     struct packet_sink *sink)
{
	struct packet_out *out;
	struct path path;

	if (!to->mac_known)
		return -EDESTADDRREQ;
	if (device_find_gid(device, to->local, to->vlan_id) < 0 ||
	    make_path(device, to, &path) != 0)
		return -EADDRNOTAVAIL;
	out = sink->get(sink);
	if (!out)
		return -EAGAIN;
	mad_put(out, &path, device->gsi_psn, mad);
	device->gsi_psn = psn_add(device->gsi_psn, 1);
	return sink->put(sink, out);
}
