/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/wire/cm_parse.c and cm_build.c: where each field stands, and what is refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/cm.h"
#include "test.h"

#define HEADER_LEN sizeof(struct mad_header)
#define TID	   0x0123456789abcdef
#define SEEDS	   200

/* A field of a message: its first byte behind the header, first bit in it from the left, and width,
 * as tables 106 to 120 tell them. */
static uint64_t field(const uint8_t *mad, size_t byte, unsigned int bit, unsigned int width)
{
	const size_t first = (HEADER_LEN + byte) * 8 + bit;
	uint64_t value = 0;

	for (size_t i = first; i < first + width; i++)
		value = value << 1 | (mad[i / 8] >> (7 - i % 8) & 1);
	return value;
}

static const uint8_t user[CM_PRIVATE_MAX] = "private";
static const uint8_t info[CM_INFO_MAX] = "information";

static struct cm_path a_path(uint8_t seed)
{
	struct cm_path path = {.local_lid = 0x1234,
			       .remote_lid = 0x5678,
			       .flow_label = 0x9344a,
			       .packet_rate = 0x25,
			       .tclass = 0xab,
			       .hop_limit = 0x40,
			       .sl = 0x9,
			       .subnet_local = true,
			       .ack_timeout = 0x13};

	memset(path.local_gid, seed, sizeof(path.local_gid));
	memset(path.remote_gid, seed + 1, sizeof(path.remote_gid));
	return path;
}

static struct cm_mad a_mad(enum cm_message message)
{
	struct cm_mad mad = {.message = message,
			     .tid = TID,
			     .local_id = 0xa1a2a3a4,
			     .private_data = user,
			     .private_len = cm_private_len(message)};

	if (message != CM_REQ && message != CM_SIDR_REQ && message != CM_SIDR_REP)
		mad.remote_id = 0xb1b2b3b4;
	return mad;
}

static struct cm_mad a_req(void)
{
	struct cm_mad mad = a_mad(CM_REQ);

	mad.req = (struct cm_req){.service_id = 0x1112131415161718,
				  .ca_guid = 0x2122232425262728,
				  .ece = {.vendor_id = 0x2a2b2c, .options = 0x2d2e2f30},
				  .qkey = 0x31323334,
				  .qpn = 0x414243,
				  .responder_resources = 0x51,
				  .initiator_depth = 0x52,
				  .local_eecn = 0x616263,
				  .remote_eecn = 0x717273,
				  .remote_response_timeout = 0x15,
				  .local_response_timeout = 0x1a,
				  .transport = CM_TRANSPORT_RD,
				  .flow_control = true,
				  .psn = {0x818283},
				  .retry_count = 5,
				  .pkey = 0x9192,
				  .mtu = 5,
				  .rdc_exists = true,
				  .rnr_retry_count = 6,
				  .max_cm_retries = 0xa,
				  .srq = true,
				  .extended_type = 3,
				  .sap_supported = true,
				  .primary = a_path(1),
				  .alternate = a_path(3)};
	return mad;
}

static void assert_header(const uint8_t *bytes, enum cm_message message)
{
	const uint8_t expected[HEADER_LEN] = {1,    0x07, 2,	3,    0,    0,
					      0,    0,	  0x01, 0x23, 0x45, 0x67,
					      0x89, 0xab, 0xcd, 0xef, 0,    (uint8_t)message};

	/* Compare up to the modifier, which differs between messages. */
	assert_memory_equal(bytes, expected, offsetof(struct mad_header, modifier));
}

static void assert_path(const uint8_t *bytes, size_t at, const struct cm_path *path)
{
	assert_int_equal(field(bytes, at, 0, 16), path->local_lid);
	assert_int_equal(field(bytes, at + 2, 0, 16), path->remote_lid);
	assert_memory_equal(bytes + HEADER_LEN + at + 4, path->local_gid, 16);
	assert_memory_equal(bytes + HEADER_LEN + at + 20, path->remote_gid, 16);
	assert_int_equal(field(bytes, at + 36, 0, 20), path->flow_label);
	assert_int_equal(field(bytes, at + 39, 2, 6), path->packet_rate);
	assert_int_equal(field(bytes, at + 40, 0, 8), path->tclass);
	assert_int_equal(field(bytes, at + 41, 0, 8), path->hop_limit);
	assert_int_equal(field(bytes, at + 42, 0, 4), path->sl);
	assert_int_equal(field(bytes, at + 42, 4, 1), path->subnet_local);
	assert_int_equal(field(bytes, at + 43, 0, 5), path->ack_timeout);
}

/* Build, and parse what was built into the same struct again. */
static void build(const struct cm_mad *mad, uint8_t *bytes)
{
	uint8_t again[MAD_LEN];
	struct cm_mad parsed;

	assert_int_equal(cm_mad_build(mad, bytes), 0);
	assert_header(bytes, mad->message);
	assert_int_equal(cm_mad_parse(bytes, MAD_LEN, &parsed), CM_MAD_OK);
	assert_int_equal(parsed.message, mad->message);
	assert_int_equal(parsed.tid, mad->tid);
	assert_int_equal(parsed.local_id, mad->local_id);
	assert_int_equal(parsed.remote_id, mad->remote_id);
	assert_int_equal(parsed.private_len, mad->private_len);
	assert_memory_equal(parsed.private_data, mad->private_data, mad->private_len);
	assert_int_equal(cm_mad_build(&parsed, again), 0);
	assert_memory_equal(again, bytes, MAD_LEN);
}

static void assert_ids(const uint8_t *bytes, const struct cm_mad *mad)
{
	assert_int_equal(field(bytes, 0, 0, 32), mad->local_id);
	assert_int_equal(field(bytes, 4, 0, 32), mad->remote_id);
}

static void assert_private(const uint8_t *bytes, size_t at, size_t len)
{
	assert_int_equal(HEADER_LEN + at + len, MAD_LEN);
	assert_memory_equal(bytes + HEADER_LEN + at, user, len);
}

/* The last word of the header, where options of a vendor stand. */
static void assert_modifier(const uint8_t *bytes, uint32_t modifier)
{
	struct mad_header header;

	memcpy(&header, bytes, sizeof(header));
	assert_int_equal(rte_be_to_cpu_32(header.modifier), modifier);
}

TEST(build__req)
{
	const struct cm_mad mad = a_req();
	uint8_t bytes[MAD_LEN];

	build(&mad, bytes);
	assert_int_equal(field(bytes, 0, 0, 32), mad.local_id);
	assert_int_equal(field(bytes, 4, 0, 8), 0);
	assert_int_equal(field(bytes, 5, 0, 24), mad.req.ece.vendor_id);
	assert_modifier(bytes, mad.req.ece.options);
	assert_int_equal(field(bytes, 8, 0, 64), mad.req.service_id);
	assert_int_equal(field(bytes, 16, 0, 64), mad.req.ca_guid);
	assert_int_equal(field(bytes, 28, 0, 32), mad.req.qkey);
	assert_int_equal(field(bytes, 32, 0, 24), mad.req.qpn);
	assert_int_equal(field(bytes, 35, 0, 8), mad.req.responder_resources);
	assert_int_equal(field(bytes, 36, 0, 24), mad.req.local_eecn);
	assert_int_equal(field(bytes, 39, 0, 8), mad.req.initiator_depth);
	assert_int_equal(field(bytes, 40, 0, 24), mad.req.remote_eecn);
	assert_int_equal(field(bytes, 43, 0, 5), mad.req.remote_response_timeout);
	assert_int_equal(field(bytes, 43, 5, 2), mad.req.transport);
	assert_int_equal(field(bytes, 43, 7, 1), mad.req.flow_control);
	assert_int_equal(field(bytes, 44, 0, 24), mad.req.psn.v);
	assert_int_equal(field(bytes, 47, 0, 5), mad.req.local_response_timeout);
	assert_int_equal(field(bytes, 47, 5, 3), mad.req.retry_count);
	assert_int_equal(field(bytes, 48, 0, 16), mad.req.pkey);
	assert_int_equal(field(bytes, 50, 0, 4), mad.req.mtu);
	assert_int_equal(field(bytes, 50, 4, 1), mad.req.rdc_exists);
	assert_int_equal(field(bytes, 50, 5, 3), mad.req.rnr_retry_count);
	assert_int_equal(field(bytes, 51, 0, 4), mad.req.max_cm_retries);
	assert_int_equal(field(bytes, 51, 4, 1), mad.req.srq);
	assert_int_equal(field(bytes, 51, 5, 3), mad.req.extended_type);
	assert_path(bytes, 52, &mad.req.primary);
	assert_path(bytes, 96, &mad.req.alternate);
	assert_int_equal(field(bytes, 139, 5, 1), mad.req.sap_supported);
	assert_private(bytes, 140, 92);
}

TEST(build__mra)
{
	struct cm_mad mad = a_mad(CM_MRA);
	uint8_t bytes[MAD_LEN];

	mad.mra = (struct cm_mra){.about = CM_ABOUT_OTHER, .service_timeout = 0x15};
	build(&mad, bytes);
	assert_ids(bytes, &mad);
	assert_int_equal(field(bytes, 8, 0, 2), CM_ABOUT_OTHER);
	assert_int_equal(field(bytes, 9, 0, 5), 0x15);
	assert_private(bytes, 10, 222);
}

TEST(build__rej_of_every_reason)
{
	struct cm_mad mad = a_mad(CM_REJ);
	uint8_t bytes[MAD_LEN];

	for (uint16_t reason = 1; reason <= CM_REJ_INVALID_ALT_FLOW_LABEL; reason++) {
		mad.rej = (struct cm_rej){.about = CM_ABOUT_REP,
					  .reason = reason,
					  .info = info,
					  .info_len = CM_INFO_MAX};
		build(&mad, bytes);
		assert_ids(bytes, &mad);
		assert_int_equal(field(bytes, 8, 0, 2), CM_ABOUT_REP);
		assert_int_equal(field(bytes, 9, 0, 7), CM_INFO_MAX);
		assert_int_equal(field(bytes, 10, 0, 16), reason);
		assert_memory_equal(bytes + HEADER_LEN + 12, info, CM_INFO_MAX);
		assert_private(bytes, 84, 148);
	}
}

TEST(build__rep)
{
	struct cm_mad mad = a_mad(CM_REP);
	uint8_t bytes[MAD_LEN];

	mad.rep = (struct cm_rep){.qkey = 0x31323334,
				  .qpn = 0x414243,
				  .eecn = 0x515253,
				  .ece = {.vendor_id = 0x919293, .options = 0xa1a2a3a4},
				  .psn = {0x616263},
				  .responder_resources = 0x71,
				  .initiator_depth = 0x72,
				  .target_ack_delay = 0x0f,
				  .failover = 2,
				  .flow_control = true,
				  .rnr_retry_count = 5,
				  .srq = true,
				  .ca_guid = 0x8182838485868788};
	build(&mad, bytes);
	assert_ids(bytes, &mad);
	assert_int_equal(field(bytes, 8, 0, 32), mad.rep.qkey);
	assert_int_equal(field(bytes, 12, 0, 24), mad.rep.qpn);
	assert_int_equal(field(bytes, 15, 0, 8), 0x91);
	assert_int_equal(field(bytes, 16, 0, 24), mad.rep.eecn);
	assert_int_equal(field(bytes, 19, 0, 8), 0x92);
	assert_int_equal(field(bytes, 20, 0, 24), mad.rep.psn.v);
	assert_int_equal(field(bytes, 23, 0, 8), 0x93);
	assert_modifier(bytes, 0xa1a2a3a4);
	assert_int_equal(field(bytes, 24, 0, 8), mad.rep.responder_resources);
	assert_int_equal(field(bytes, 25, 0, 8), mad.rep.initiator_depth);
	assert_int_equal(field(bytes, 26, 0, 5), mad.rep.target_ack_delay);
	assert_int_equal(field(bytes, 26, 5, 2), mad.rep.failover);
	assert_int_equal(field(bytes, 26, 7, 1), mad.rep.flow_control);
	assert_int_equal(field(bytes, 27, 0, 3), mad.rep.rnr_retry_count);
	assert_int_equal(field(bytes, 27, 3, 1), mad.rep.srq);
	assert_int_equal(field(bytes, 28, 0, 64), mad.rep.ca_guid);
	assert_private(bytes, 36, 196);
}

TEST(build__rtu_dreq_drep)
{
	struct cm_mad mad = a_mad(CM_RTU);
	uint8_t bytes[MAD_LEN];

	build(&mad, bytes);
	assert_ids(bytes, &mad);
	assert_private(bytes, 8, 224);
	mad = a_mad(CM_DREQ);
	mad.dreq_qpn = 0x414243;
	build(&mad, bytes);
	assert_ids(bytes, &mad);
	assert_int_equal(field(bytes, 8, 0, 24), 0x414243);
	assert_private(bytes, 12, 220);
	mad = a_mad(CM_DREP);
	build(&mad, bytes);
	assert_ids(bytes, &mad);
	assert_private(bytes, 8, 224);
}

TEST(build__sidr_req_and_rep)
{
	struct cm_mad mad = a_mad(CM_SIDR_REQ);
	uint8_t bytes[MAD_LEN];

	mad.sidr_req = (struct cm_sidr_req){.pkey = 0x9192, .service_id = 0x1112131415161718};
	build(&mad, bytes);
	assert_int_equal(field(bytes, 0, 0, 32), mad.local_id);
	assert_int_equal(field(bytes, 4, 0, 16), 0x9192);
	assert_int_equal(field(bytes, 8, 0, 64), 0x1112131415161718);
	assert_private(bytes, 16, 216);
	mad = a_mad(CM_SIDR_REP);
	mad.sidr_rep = (struct cm_sidr_rep){.status = CM_SIDR_REDIRECT,
					    .qpn = 0x414243,
					    .service_id = 0x1112131415161718,
					    .qkey = 0x31323334,
					    .info = info,
					    .info_len = CM_INFO_MAX};
	build(&mad, bytes);
	assert_int_equal(field(bytes, 0, 0, 32), mad.local_id);
	assert_int_equal(field(bytes, 4, 0, 8), CM_SIDR_REDIRECT);
	assert_int_equal(field(bytes, 5, 0, 8), CM_INFO_MAX);
	assert_int_equal(field(bytes, 8, 0, 24), 0x414243);
	assert_int_equal(field(bytes, 12, 0, 64), 0x1112131415161718);
	assert_int_equal(field(bytes, 20, 0, 32), 0x31323334);
	assert_memory_equal(bytes + HEADER_LEN + 24, info, CM_INFO_MAX);
	assert_private(bytes, 96, 136);
}

TEST(build__lap_and_apr)
{
	struct cm_mad mad = a_mad(CM_LAP);
	uint8_t bytes[MAD_LEN];

	mad.lap = (struct cm_lap){
		.remote_qpn = 0x414243, .remote_response_timeout = 0x15, .path = a_path(5)};
	build(&mad, bytes);
	assert_ids(bytes, &mad);
	assert_int_equal(field(bytes, 12, 0, 24), 0x414243);
	assert_int_equal(field(bytes, 15, 0, 5), 0x15);
	assert_int_equal(field(bytes, 20, 0, 16), mad.lap.path.local_lid);
	assert_int_equal(field(bytes, 22, 0, 16), mad.lap.path.remote_lid);
	assert_memory_equal(bytes + HEADER_LEN + 24, mad.lap.path.local_gid, 16);
	assert_memory_equal(bytes + HEADER_LEN + 40, mad.lap.path.remote_gid, 16);
	assert_int_equal(field(bytes, 56, 0, 20), mad.lap.path.flow_label);
	assert_int_equal(field(bytes, 59, 0, 8), mad.lap.path.tclass);
	assert_int_equal(field(bytes, 60, 0, 8), mad.lap.path.hop_limit);
	assert_int_equal(field(bytes, 61, 2, 6), mad.lap.path.packet_rate);
	assert_int_equal(field(bytes, 62, 0, 4), mad.lap.path.sl);
	assert_int_equal(field(bytes, 62, 4, 1), 1);
	assert_int_equal(field(bytes, 63, 0, 5), mad.lap.path.ack_timeout);
	assert_private(bytes, 64, 168);
	mad = a_mad(CM_APR);
	mad.apr = (struct cm_apr){.status = 4, .info = info, .info_len = CM_INFO_MAX};
	build(&mad, bytes);
	assert_ids(bytes, &mad);
	assert_int_equal(field(bytes, 8, 0, 8), CM_INFO_MAX);
	assert_int_equal(field(bytes, 9, 0, 8), 4);
	assert_memory_equal(bytes + HEADER_LEN + 12, info, CM_INFO_MAX);
	assert_private(bytes, 84, 148);
}

TEST(build__short_private_data_is_followed_by_zeros)
{
	const uint8_t zeros[CM_RTU_PRIVATE] = {0};
	struct cm_mad mad = a_mad(CM_RTU);
	uint8_t bytes[MAD_LEN];

	mad.private_len = 3;
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(cm_mad_build(&mad, bytes), 0);
	assert_memory_equal(bytes + HEADER_LEN + 8, "pri", 3);
	assert_memory_equal(bytes + HEADER_LEN + 11, zeros, CM_RTU_PRIVATE - 3);
}

TEST(build__too_much_is_refused)
{
	struct cm_mad mad = a_req();
	uint8_t bytes[MAD_LEN];

	mad.private_len = CM_REQ_PRIVATE + 1;
	assert_int_equal(cm_mad_build(&mad, bytes), -EINVAL);
	mad = a_mad(CM_REJ);
	mad.rej = (struct cm_rej){.reason = 1, .info = info, .info_len = CM_INFO_MAX + 1};
	assert_int_equal(cm_mad_build(&mad, bytes), -EINVAL);
	mad = a_mad(CM_SIDR_REP);
	mad.sidr_rep = (struct cm_sidr_rep){.info = info, .info_len = CM_INFO_MAX + 1};
	assert_int_equal(cm_mad_build(&mad, bytes), -EINVAL);
	mad = a_mad(CM_APR);
	mad.apr = (struct cm_apr){.info = info, .info_len = CM_INFO_MAX + 1};
	assert_int_equal(cm_mad_build(&mad, bytes), -EINVAL);
}

/* Parse a good REQ with a byte changed. */
static enum cm_mad_status parse_with(size_t at, uint8_t value)
{
	const struct cm_mad mad = a_req();
	uint8_t bytes[MAD_LEN];
	struct cm_mad parsed;

	assert_int_equal(cm_mad_build(&mad, bytes), 0);
	bytes[at] = value;
	return cm_mad_parse(bytes, MAD_LEN, &parsed);
}

TEST(parse__header_is_checked_field_by_field)
{
	uint8_t bytes[MAD_LEN + 1] = {0};
	struct cm_mad mad;

	assert_int_equal(cm_mad_parse(bytes, MAD_LEN - 1, &mad), CM_MAD_BAD_LENGTH);
	assert_int_equal(cm_mad_parse(bytes, MAD_LEN + 1, &mad), CM_MAD_BAD_LENGTH);
	assert_int_equal(parse_with(0, 2), CM_MAD_BAD_BASE_VERSION);
	assert_int_equal(parse_with(1, 0x03), CM_MAD_BAD_CLASS);
	assert_int_equal(parse_with(2, 1), CM_MAD_BAD_CLASS_VERSION);
	assert_int_equal(parse_with(3, MAD_GET), CM_MAD_BAD_METHOD);
	assert_int_equal(parse_with(17, 0x0f), CM_MAD_BAD_ATTRIBUTE);
	assert_int_equal(parse_with(17, 0x1b), CM_MAD_BAD_ATTRIBUTE);
	assert_int_equal(parse_with(16, 0x01), CM_MAD_BAD_ATTRIBUTE);
}

static void assert_bad(struct cm_mad *mad)
{
	uint8_t bytes[MAD_LEN];
	struct cm_mad parsed;

	assert_int_equal(cm_mad_build(mad, bytes), 0);
	assert_int_equal(cm_mad_parse(bytes, MAD_LEN, &parsed), CM_MAD_BAD_FIELD);
}

TEST(parse__queue_pairs_of_nobody_are_refused)
{
	static const uint32_t qpns[] = {0, 1, 0xffffff};

	for (size_t i = 0; i < 3; i++) {
		struct cm_mad mad = a_req();

		mad.req.qpn = qpns[i];
		assert_bad(&mad);
		mad = a_mad(CM_REP);
		mad.rep.qpn = qpns[i];
		assert_bad(&mad);
		mad = a_mad(CM_DREQ);
		mad.dreq_qpn = qpns[i];
		assert_bad(&mad);
		mad = a_mad(CM_LAP);
		mad.lap.remote_qpn = qpns[i];
		assert_bad(&mad);
		mad = a_mad(CM_SIDR_REP);
		mad.sidr_rep.qpn = qpns[i];
		assert_bad(&mad);
	}
}

/* A REP of XRC has its queue pair where others have their EE context. */
TEST(parse__rep_of_xrc)
{
	struct cm_mad mad = a_mad(CM_REP), parsed;
	uint8_t bytes[MAD_LEN];

	mad.rep.eecn = 0x515253;
	build(&mad, bytes);
	assert_int_equal(cm_mad_parse(bytes, sizeof(bytes), &parsed), CM_MAD_OK);
	assert_int_equal(cm_rep_qpn(&parsed.rep), 0x515253);
	mad.rep.eecn = 1;
	assert_bad(&mad);
	mad.rep.qpn = 0x414243;
	assert_int_equal(cm_rep_qpn(&mad.rep), 0x414243);
}

TEST(parse__information_longer_than_its_field_is_refused)
{
	struct cm_mad mad = a_mad(CM_REJ), parsed;
	uint8_t bytes[MAD_LEN];

	assert_int_equal(cm_mad_build(&mad, bytes), 0);
	bytes[HEADER_LEN + 9] = (CM_INFO_MAX + 1) << 1;
	assert_int_equal(cm_mad_parse(bytes, MAD_LEN, &parsed), CM_MAD_BAD_FIELD);
	mad = a_mad(CM_APR);
	assert_int_equal(cm_mad_build(&mad, bytes), 0);
	bytes[HEADER_LEN + 8] = CM_INFO_MAX + 1;
	assert_int_equal(cm_mad_parse(bytes, MAD_LEN, &parsed), CM_MAD_BAD_FIELD);
	mad = a_mad(CM_SIDR_REP);
	mad.sidr_rep.qpn = 2;
	assert_int_equal(cm_mad_build(&mad, bytes), 0);
	bytes[HEADER_LEN + 5] = CM_INFO_MAX + 1;
	assert_int_equal(cm_mad_parse(bytes, MAD_LEN, &parsed), CM_MAD_BAD_FIELD);
}

TEST(parse__about_has_three_values)
{
	struct cm_mad mad = a_mad(CM_MRA);

	mad.mra.about = 3;
	assert_bad(&mad);
	mad = a_mad(CM_REJ);
	mad.rej.about = 3;
	assert_bad(&mad);
}

/* Bytes that parse are built into a MAD that parses and builds the same again. */
TEST(parse__any_bytes)
{
	uint8_t *bytes = malloc(MAD_LEN); /* the address sanitizer sees a read beyond */
	uint8_t built[MAD_LEN], again[MAD_LEN];
	struct cm_mad mad;

	srandom(1);
	for (unsigned int message = CM_FIRST_MESSAGE; message <= CM_LAST_MESSAGE; message++) {
		for (int i = 0; i < SEEDS; i++) {
			const uint8_t header[18] = {1, 7, 2, 3, [17] = (uint8_t)message};

			for (size_t at = 0; at < MAD_LEN; at++)
				bytes[at] = (uint8_t)random();
			memcpy(bytes, header, sizeof(header));
			if (cm_mad_parse(bytes, MAD_LEN, &mad) != CM_MAD_OK)
				continue;
			assert_int_equal(cm_mad_build(&mad, built), 0);
			assert_int_equal(cm_mad_parse(built, MAD_LEN, &mad), CM_MAD_OK);
			assert_int_equal(cm_mad_build(&mad, again), 0);
			assert_memory_equal(again, built, MAD_LEN);
		}
	}
	free(bytes);
}

TEST(names__are_those_of_the_standard)
{
	assert_string_equal(cm_message_name(CM_SIDR_REP), "SIDR_REP");
	assert_null(cm_message_name(CM_FIRST_MESSAGE - 1));
	assert_null(cm_message_name(CM_LAST_MESSAGE + 1));
	assert_int_equal(cm_private_len(CM_LAST_MESSAGE + 1), 0);
}

TEST(time__is_a_power_of_two)
{
	assert_int_equal(cm_time_ns(0), 4096);
	assert_int_equal(cm_time_ns(20), UINT64_C(4096) << 20);
	assert_int_equal(cm_time_ns(31), UINT64_C(4096) << 31);
}

TEST(ack_timeout__is_the_longer_one)
{
	/* A round trip takes twice the life of a packet, which is one more in the exponent. */
	assert_int_equal(cm_ack_timeout(0, 16), 17);
	assert_int_equal(cm_ack_timeout(15, 16), 17);
	/* About as long: one more. */
	assert_int_equal(cm_ack_timeout(16, 16), 18);
	assert_int_equal(cm_ack_timeout(17, 16), 18);
	assert_int_equal(cm_ack_timeout(18, 16), 19);
	assert_int_equal(cm_ack_timeout(19, 16), 19);
	assert_int_equal(cm_ack_timeout(31, 16), 31);
	assert_int_equal(cm_ack_timeout(31, 31), 31);
}
