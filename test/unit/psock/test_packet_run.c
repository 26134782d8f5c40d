/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/psock/packet_run.c. */
#include <linux/virtio_net.h>
#include <stdint.h>
#include <string.h>

#include "frames.h"
#include "offload.h"
#include "psock/packet_run.h"
#include "test.h"

static uint8_t frames[2][FRAME_MAX];
static struct run run;

/* Return true if the second packet is added to a run that begins with the first. */
static bool follows(struct frame first, struct frame second)
{
	const uint32_t first_len = frame_make(&first, frames[0]);
	const uint32_t second_len = frame_make(&second, frames[1]);

	run_begin(&run, frames[0], first_len);
	assert_int_equal(run.count, 1);
	return run_add(&run, frames[1], second_len);
}

TEST(run_add__takes_what_counts_up)
{
	for (int i = 0; i < 4; i++) {
		const struct frame first = {
			.ipv6 = i & 1, .tagged = i & 2, .id = 0xffff, .len = 1024};
		struct frame second = first;

		second.id = 0;
		second.psn = 1;
		assert_true(follows(first, second));
		assert_int_equal(run.count, 2);
		assert_int_equal(run.payload_len, 2 * (12 + 1024 + 4));
		second.id = 5;
		assert_int_equal(follows(first, second), first.ipv6);
	}
}

TEST(run_add__takes_one_shorter_packet_and_then_no_more)
{
	const struct frame first = {.len = 1024};

	assert_true(follows(first, (struct frame){.id = 1, .len = 1020}));
	assert_false(run_add(&run, frames[1],
			     frame_make(&(struct frame){.id = 2, .len = 1020}, frames[1])));
	assert_false(follows(first, (struct frame){.id = 1, .len = 1028}));
}

TEST(run_add__keeps_flows_and_families_apart)
{
	const struct frame first = {.len = 64};

	assert_false(follows(first, (struct frame){.id = 1, .len = 64, .source_port = 9}));
	assert_false(follows(first, (struct frame){.id = 1, .len = 64, .ipv6 = true}));
	assert_false(follows(first, (struct frame){.id = 1, .len = 64, .tagged = true}));
	assert_true(follows(first, (struct frame){.id = 1, .len = 64}));
}

/* A receiver may give the run to the process that has the first packet's queue pair. */
TEST(run_add__keeps_queue_pairs_apart)
{
	for (int i = 0; i < 4; i++) {
		const struct frame first = {
			.ipv6 = i & 1, .tagged = i & 2, .qpn = 0x12345, .len = 64};
		struct frame second = first;

		second.id = 1;
		assert_true(follows(first, second));
		second.qpn = 0x12346;
		assert_false(follows(first, second));
		second.qpn = 0x22345;
		assert_false(follows(first, second));
	}
}

/* Lengths that do not agree are not ours to mend. */
TEST(run_begin__leaves_what_it_cannot_make_again_alone)
{
	const struct frame first = {.len = 64}, second = {.id = 1, .len = 64};
	uint32_t len = frame_make(&first, frames[0]);
	const uint32_t second_len = frame_make(&second, frames[1]);

	run_begin(&run, frames[0], len + 2);
	assert_false(run_add(&run, frames[1], second_len));
	frames[0][13] = 6;
	run_begin(&run, frames[0], len);
	assert_false(run_add(&run, frames[1], second_len));
	len = frame_make(&first, frames[0]);
	run_begin(&run, frames[0], len);
	assert_false(run_add(&run, frames[1], second_len + 2));
	assert_true(run_add(&run, frames[1], second_len));
}

TEST(run_add__ends_where_the_kernel_takes_no_more)
{
	struct frame frame = {.len = 4096};
	uint32_t len = frame_make(&frame, frames[0]);

	run_begin(&run, frames[0], len);
	do {
		frame.id++;
		len = frame_make(&frame, frames[1]);
	} while (run_add(&run, frames[1], len));
	assert_int_equal(run.count, 15);
	assert_true(run.headers.len + run.payload_len <= RUN_BYTES_MAX);
	frame = (struct frame){.len = 8};
	run_begin(&run, frames[0], frame_make(&frame, frames[0]));
	do {
		frame.id++;
		len = frame_make(&frame, frames[1]);
	} while (run_add(&run, frames[1], len));
	assert_int_equal(run.count, RUN_PACKETS_MAX);
}

TEST(run_describe__says_all_that_the_kernel_needs)
{
	const struct frame first = {.id = 77, .len = 256, .tagged = true};
	struct virtio_net_hdr offload;
	uint8_t header[HEADERS_MAX];
	struct udp_frame headers;

	assert_true(follows(first, (struct frame){.id = 78, .len = 100, .tagged = true}));
	run_describe(&run, header, &offload);
	assert_true(udp_frame_find(header, run.headers.len, &headers));
	assert_true(udp_frame_lengths_match(header, &headers, 2 * 16 + 256 + 100));
	assert_true(udp_frame_same(header, frames[0], &headers));
	assert_int_equal(udp_frame_id(header, &headers), 77);
	assert_int_equal(offload.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
	assert_int_equal(offload.gso_type, VIRTIO_NET_HDR_GSO_UDP_L4);
	assert_int_equal(offload.gso_size, 16 + 256);
	/* A short run is one piece for the kernel. */
	assert_int_equal(offload.hdr_len, headers.len + 2 * 16 + 256 + 100);
	assert_int_equal(offload.csum_start, headers.l4_off);
	assert_int_equal(offload.csum_offset, 6);
}

TEST(run_describe__lets_the_kernel_put_a_long_run_into_pages)
{
	struct virtio_net_hdr offload;
	uint8_t header[HEADERS_MAX];

	assert_true(follows((struct frame){.len = 4096}, (struct frame){.id = 1, .len = 3252}));
	run_describe(&run, header, &offload);
	assert_int_equal(offload.hdr_len, run.headers.len + run.payload_len);
	assert_int_equal(offload.hdr_len, 7422);
	assert_true(follows((struct frame){.len = 4096}, (struct frame){.id = 1, .len = 3256}));
	run_describe(&run, header, &offload);
	assert_int_equal(offload.hdr_len, run.headers.len);
}
