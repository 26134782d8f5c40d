/* SPDX-License-Identifier: BSD-3-Clause */
/* Every MAD that Linux's connection manager sent: parse it and build it again byte for byte. */
#include <stdio.h>
#include <string.h>

#include "pcap.h"
#include "wire/cm.h"
#include "wire/cm_ip.h"
#include "wire/packet.h"
#include "test.h"

/* MADs by message, by another program's count. */
static const struct capture {
	const char *name;
	unsigned int req, rej, rep, rtu, dreq, drep, sidr_req, sidr_rep;
} captures[] = {
	{.name = "cm_rej", .req = 1, .rej = 1},
	{.name = "cm_rping", .req = 1, .rep = 1, .rtu = 1, .dreq = 1, .drep = 1},
	{.name = "cm_ucmatose", .req = 1, .rep = 1, .rtu = 1, .dreq = 1, .drep = 1},
	{.name = "cm_sidr", .sidr_req = 1, .sidr_rep = 1},
	{.name = "loss_cm", .req = 2, .rep = 2, .rtu = 2, .dreq = 1, .drep = 1},
	{.name = "loss_cm_rep", .req = 2, .rep = 1, .rtu = 1, .dreq = 1, .drep = 1},
};

static void check(const uint8_t *bytes, size_t len, unsigned int *counts)
{
	uint8_t built[MAD_LEN];
	struct cm_mad mad;

	assert_int_equal(cm_mad_parse(bytes, len, &mad), CM_MAD_OK);
	counts[mad.message]++;
	memset(built, 0xa5, sizeof(built));
	assert_int_equal(cm_mad_build(&mad, built), 0);
	assert_memory_equal(built, bytes, MAD_LEN);
}

/* Linux's IP header, too. */
static void check_ip(const uint8_t *bytes, size_t len)
{
	uint8_t built[CM_IP_LEN];
	struct cm_mad mad;
	struct cm_ip ip;

	assert_int_equal(cm_mad_parse(bytes, len, &mad), CM_MAD_OK);
	if (mad.message != CM_REQ && mad.message != CM_SIDR_REQ)
		return;
	assert_int_equal(cm_ip_parse(mad.private_data, mad.private_len, &ip), 0);
	assert_int_equal(ip.version, 4);
	assert_int_equal(cm_ip_build(&ip, built), 0);
	assert_memory_equal(built, mad.private_data, sizeof(built));
}

static void check_capture(const struct capture *capture, unsigned int *counts)
{
	struct pcap_frame frame;
	struct packet packet;
	struct pcap pcap;
	char path[512];

	snprintf(path, sizeof(path), "%s/wire/%s.pcap", TEST_DATA, capture->name);
	assert_int_equal(pcap_open(&pcap, path), 0);
	while (pcap_next(&pcap, &frame) > 0) {
		assert_int_equal(packet_parse(frame.data, frame.len, false, &packet), PACKET_OK);
		if (packet.dest_qpn != GSI_QPN)
			continue;
		assert_int_equal(packet.qkey, GSI_QKEY);
		assert_int_equal(packet.src_qpn, GSI_QPN);
		check(packet.payload, packet.payload_len, counts);
		check_ip(packet.payload, packet.payload_len);
	}
	pcap_close(&pcap);
}

TEST(captures__every_mad_is_built_again_byte_for_byte)
{
	for (size_t i = 0; i < sizeof(captures) / sizeof(captures[0]); i++) {
		const struct capture *capture = &captures[i];
		unsigned int counts[CM_LAST_MESSAGE + 1] = {0};

		check_capture(capture, counts);
		assert_int_equal(counts[CM_REQ], capture->req);
		assert_int_equal(counts[CM_REJ], capture->rej);
		assert_int_equal(counts[CM_REP], capture->rep);
		assert_int_equal(counts[CM_RTU], capture->rtu);
		assert_int_equal(counts[CM_DREQ], capture->dreq);
		assert_int_equal(counts[CM_DREP], capture->drep);
		assert_int_equal(counts[CM_SIDR_REQ], capture->sidr_req);
		assert_int_equal(counts[CM_SIDR_REP], capture->sidr_rep);
	}
}
