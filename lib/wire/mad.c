/* SPDX-License-Identifier: BSD-3-Clause */
/* Responses to MADs, and packets that carry MADs. */
#include "wire/mad.h"

#include <string.h>

#include "wire/opcode.h"

bool mad_respond(const uint8_t *mad, uint16_t status, uint8_t *response)
{
	struct mad_header header;

	memcpy(&header, mad, sizeof(header));
	if (header.method != MAD_GET && header.method != MAD_SET)
		return false;
	header.base_version = MAD_BASE_VERSION;
	header.method = MAD_GET_RESPONSE;
	header.status = rte_cpu_to_be_16(status);
	memset(response, 0, MAD_LEN);
	memcpy(response, &header, sizeof(header));
	return true;
}

void mad_put(struct packet_out *out, const struct path *path, struct psn psn, const uint8_t *mad)
{
	const struct bth_fields bth = {
		.opcode = OPCODE_UD | OPCODE_SEND_ONLY,
		.pkey = WIRE_PKEY_DEFAULT,
		.dest_qpn = GSI_QPN,
		.psn = psn,
	};
	struct deth *deth;

	packet_begin(out, path, &bth);
	deth = packet_extend(out, sizeof(*deth));
	deth->qkey = rte_cpu_to_be_32(GSI_QKEY);
	deth->reserved = 0;
	wire_put24(deth->src_qpn, GSI_QPN);
	packet_payload(out, FRAG_OWN, mad, MAD_LEN);
}
