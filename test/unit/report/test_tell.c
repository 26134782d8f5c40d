/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/report/tell.c. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "report/read.h"
#include "transport/cc.h"
#include "test.h"
#include "wire/cm_ip.h"
#include "wire/gid.h"

static char said[1024];

static void say_text(void *arg, const char *name, const char *value)
{
	const size_t len = strlen(said);

	(void)arg;
	snprintf(said + len, sizeof(said) - len, "%s=%s ", name, value);
}

static void say_number(void *arg, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	say_text(arg, name, text);
}

static const struct report_fields fields = {say_text, say_number, NULL};

static const char *record_said(const struct report_record *record)
{
	said[0] = '\0';
	report_tell_record(record, &fields);
	return said;
}

TEST(report_tell_record__each_kind)
{
	const struct report_record qp = {.kind = REPORT_QP,
					 .number = 17,
					 .qp = {.dest_qpn = 18,
						.type = IBV_QPT_RC,
						.state = IBV_QPS_RTS,
						.path_mtu = IBV_MTU_1024,
						.sq_psn = 5,
						.pd = 1,
						.send_cq = 2,
						.recv_cq = 3,
						.cc = CC_SWIFT,
						.dgid = {[10] = 0xff, 0xff, 10, 0, 0, 1}}};
	const struct report_record cq = {
		.kind = REPORT_CQ, .number = 2, .cq = {.cqe = 15, .users = 1, .waiting = 4}};
	const struct report_record mr = {
		.kind = REPORT_MR, .number = 0xabc, .mr = {.length = 64, .iova = 0x1000, .pd = 1}};
	const struct report_record pd = {.kind = REPORT_PD, .number = 1, .pd = {.users = 2}};

	assert_string_equal(record_said(&qp),
			    "lqpn=17 rqpn=18 dgid=::ffff:10.0.0.1 type=RC state=RTS rq-psn=0 "
			    "sq-psn=5 path-mig-state=MIGRATED path-mtu=1024 sends=0 receives=0 "
			    "pdn=1 send-cqn=2 recv-cqn=3 congestion-control=swift ");
	assert_string_equal(record_said(&cq), "cqn=2 cqe=15 users=1 waiting=4 ");
	assert_string_equal(record_said(&mr),
			    "mrn=2748 rkey=0xabc lkey=0xabc iova=0x1000 mrlen=64 mr-type=memory "
			    "access=0 pdn=1 ");
	assert_string_equal(record_said(&pd), "pdn=1 users=2 ");
}

TEST(report_tell_record__shared_receive_queues_and_contexts)
{
	struct report_record srq = {.kind = REPORT_SRQ,
				    .number = 3,
				    .srq = {.xrc_number = 9,
					    .max_wr = 16,
					    .limit = 2,
					    .receives = 5,
					    .users = 4,
					    .pd = 1,
					    .cq = 7}};
	const struct report_record ctx = {.kind = REPORT_CTX, .number = 8};

	assert_string_equal(record_said(&srq),
			    "srqn=3 type=BASIC max-wr=16 limit=2 receives=5 users=4 pdn=1 ");
	srq.srq.is_xrc = 1;
	assert_non_null(strstr(record_said(&srq), "type=XRC xrc-srqn=9 cqn=7 "));
	assert_string_equal(record_said(&ctx), "ctxn=8 ");
}

TEST(report_tell_record__connections)
{
	struct report_record id = {
		.kind = REPORT_CM_ID,
		.number = 6,
		.cm_id = {.service_id = cm_service_id(CM_PS_TCP, 7174), .state = "LISTEN"}};

	assert_string_equal(record_said(&id), "cm-idn=6 state=LISTEN ps=TCP src-addr=*:7174 ");
	id.cm_id.qpn = 5;
	strcpy(id.cm_id.state, "ESTABLISHED");
	gid_from_ipv4((const uint8_t[]){10, 0, 0, 1}, id.cm_id.local);
	id.cm_id.remote[0] = 0xfd;
	id.cm_id.remote[15] = 2;
	assert_string_equal(record_said(&id),
			    "cm-idn=6 lqpn=5 state=ESTABLISHED ps=TCP src-addr=10.0.0.1:7174 "
			    "dst-addr=fd00::2 ");
	id.cm_id.active = 1;
	assert_non_null(strstr(record_said(&id), "src-addr=10.0.0.1 dst-addr=[fd00::2]:7174 "));
	id.cm_id.service_id = 0;
	assert_non_null(strstr(record_said(&id), "ps=UNKNOWN "));
}

TEST(report_tell_record__whatever_is_there)
{
	struct report_record record;

	memset(&record, 0xff, sizeof(record));
	assert_string_equal(record_said(&record), "");
	record.kind = REPORT_QP;
	assert_non_null(strstr(record_said(&record), "type=UNKNOWN state=UNKNOWN"));
	record.kind = REPORT_MR;
	assert_non_null(strstr(record_said(&record), "mr-type=UNKNOWN"));
}

TEST(report_tell_link__state_and_port)
{
	struct report_facts facts = {.port = "eth1", .netdev = 1, .link_up = 1, .mtu_bytes = 1500};

	said[0] = '\0';
	report_tell_link(&facts, &fields);
	assert_non_null(strstr(said, "state=ACTIVE physical_state=LINK_UP netdev=eth1 "));
	facts.netdev = facts.link_up = 0;
	said[0] = '\0';
	report_tell_link(&facts, &fields);
	assert_non_null(strstr(said, "state=DOWN physical_state=DISABLED devargs=eth1 "));
}
