/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/psock/split.c. */
#include <linux/virtio_net.h>
#include <stdint.h>
#include <string.h>

#include "frames.h"
#include "offload.h"
#include "psock/packet_run.h"
#include "psock/split.h"
#include "test.h"

#define PACKETS 5

static uint8_t frames[PACKETS][FRAME_MAX], whole[PACKETS * FRAME_MAX];
static uint32_t lens[PACKETS], whole_len;
static struct virtio_net_hdr offload;
static struct split split;

/* Join packets into what the kernel holds of a run, whether sent as one or joined by itself. */
static void join(struct frame frame, uint16_t id_step)
{
	struct run run;

	for (uint32_t i = 0; i < PACKETS; i++) {
		frame.psn = i;
		frame.fill = (uint8_t)i;
		frame.len = i + 1 < PACKETS ? 512 : 36;
		lens[i] = frame_make(&frame, frames[i]);
		frame.id = (uint16_t)(frame.id + id_step);
	}
	run_begin(&run, frames[0], lens[0]);
	whole_len = lens[0];
	memcpy(whole, frames[0], lens[0]);
	for (uint32_t i = 1; i < PACKETS; i++) {
		const uint32_t len = lens[i] - run.headers.len;

		memcpy(whole + whole_len, frames[i] + run.headers.len, len);
		whole_len += len;
		run.payload_len += len;
	}
	run_describe(&run, whole, &offload);
}

/* A packet as it is received. */
static uint32_t packet(uint32_t i, uint8_t *at)
{
	const uint32_t len = split_payload(&split, i);

	split_header(&split, i, at);
	memcpy(at + split.headers.len, whole + split.headers.len + i * split.segment_len, len);
	return split.headers.len + len;
}

static void assert_all_right(void)
{
	uint8_t at[FRAME_MAX];

	assert_true(split_begin(&split, whole, HEADERS_MAX, whole_len, &offload));
	assert_int_equal(split.count, PACKETS);
	packet(1, at);
	assert_int_equal(split_find_step(&split, at), !split.headers.ipv6);
	for (uint32_t i = 0; i < PACKETS; i++) {
		assert_int_equal(packet(i, at), lens[i]);
		assert_true(frame_is_right(at, lens[i]));
		/* The UDP checksum may be absent over IPv6; leave it out of the comparison. */
		memset(frames[i] + split.headers.l4_off + 6, 0, 2);
		assert_memory_equal(at, frames[i], lens[i]);
	}
}

TEST(split_header__makes_the_packets_that_were_joined)
{
	for (int i = 0; i < 4; i++) {
		join((struct frame){.ipv6 = i & 1, .tagged = i & 2, .id = 0xfffe}, 1);
		assert_all_right();
	}
}

/* DF allows an identification that is the same in all. */
TEST(split_find_step__sees_that_none_counted_up)
{
	join((struct frame){.id = 9}, 0);
	assert_all_right();
	assert_int_equal(split.id_step, 0);
}

/* A packet that is not RoCE, or is damaged, counts as before. */
TEST(split_find_step__goes_on_counting_where_neither_fits)
{
	uint8_t at[FRAME_MAX];

	join((struct frame){.id = 9}, 7);
	assert_true(split_begin(&split, whole, HEADERS_MAX, whole_len, &offload));
	packet(1, at);
	assert_false(split_find_step(&split, at));
	assert_int_equal(split.id_step, 1);
	assert_int_equal(udp_frame_id(at, &split.headers), 10);
}

TEST(split_begin__believes_no_lengths)
{
	struct virtio_net_hdr bad;

	join((struct frame){.id = 9}, 1);
	bad = offload;
	bad.gso_size = 0;
	assert_false(split_begin(&split, whole, HEADERS_MAX, whole_len, &bad));
	bad.gso_size = 1;
	assert_false(split_begin(&split, whole, HEADERS_MAX, whole_len, &bad));
	bad = offload;
	bad.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
	assert_false(split_begin(&split, whole, HEADERS_MAX, whole_len, &bad));
	assert_false(split_begin(&split, whole, 41, whole_len, &offload));
	assert_false(split_begin(&split, whole, HEADERS_MAX, HEADERS_MAX - 1, &offload));
	assert_false(split_begin(&split, whole, 42, 42, &offload));
	assert_false(split_begin(&split, whole, HEADERS_MAX, SPLIT_ROOM + 1, &offload));
	bad.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4;
	bad.gso_size = UINT16_MAX;
	assert_true(split_begin(&split, whole, HEADERS_MAX, whole_len, &bad));
	assert_int_equal(split.count, 1);
	assert_int_equal(split_payload(&split, 0), whole_len - 42);
}
