/* SPDX-License-Identifier: BSD-3-Clause */
/* A completer whose peer has shown that it sends selective acknowledgements. */
#include "completer_sack_rig.h"

static uint32_t serial; /* of the newest selective acknowledgement */

int completer_sack_set_up(void **state)
{
	completer_rig_set_up(state);
	rig.loss.sack_use = SACK_ALWAYS;
	loss_init(&rig.loss, rig.loss.una);
	serial = 0;
	/* The first message shows who the peer is. */
	post(100, IBV_WR_SEND, 8);
	assert_int_equal(send_all(), 1);
	assert_int_equal(catcher_at(&rig.fixture.catcher, 0)->capability, BTH_SACK_REQUEST);
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, 0, .syndrome = ACK, .capability = CAPABILITY);
	expect_success(100);
	assert_int_equal(rig.loss.peer, LOSS_PEER_SACK);
	return 0;
}

static void tell_all(uint64_t now_ns, uint32_t number, uint32_t expected, uint64_t kept)
{
	uint8_t bytes[8];
	struct packet_fields fields = {.opcode = OPCODE_SACK,
				       .psn = expected + FIRST_PSN,
				       .capability = CAPABILITY,
				       .serial = number,
				       .payload = bytes,
				       .len = sizeof(bytes)};

	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(kept >> 1 >> 8 * i);
	assert_int_equal(
		completer_sack(&rig.completer, fixture_packet(&rig.fixture, &fields), now_ns),
		FAULT_NONE);
}

void tell_at(uint64_t now_ns, uint32_t expected, uint64_t kept)
{
	tell_all(now_ns, ++serial, expected, kept);
}

void tell_as(uint32_t number, uint32_t expected, uint64_t kept)
{
	tell_all(NOW_NS, number, expected, kept);
}

void tell(uint32_t expected, uint64_t kept)
{
	tell_at(NOW_NS, expected, kept);
}

void refuse_once(uint32_t psn)
{
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, psn, .syndrome = AETH_RNR_NAK | RNR_CODE,
		     .capability = CAPABILITY);
	assert_true(loss_waits_for_peer(&rig.loss));
	assert_int_equal(completer_timeout(&rig.completer, false, NOW_NS + RNR_NS), FAULT_NONE);
}

void send_write(uint64_t wr_id, unsigned int packets)
{
	post(wr_id, IBV_WR_RDMA_WRITE, packets * MTU);
	assert_int_equal(send_all(), packets);
}

void expect_sent(const uint32_t *psns, unsigned int count)
{
	assert_int_equal(send_all(), count);
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(catcher_at(&rig.fixture.catcher, i)->psn.v,
				 psn_make(FIRST_PSN + psns[i]).v);
}

void expect_ack_byte(unsigned int i, uint8_t byte)
{
	assert_int_equal(catcher_at(&rig.fixture.catcher, i)->ack_byte, byte);
}
