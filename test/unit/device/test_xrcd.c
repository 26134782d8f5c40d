/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/device/xrcd.c. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/device.h"
#include "device/limits.h"
#include "device/xrcd.h"
#include "queue/srq.h"
#include "test.h"
#include "queues.h"

static struct device *device;

static int set_up(TEST_STATE)
{
	const struct device_config config = {.name = "uroce0", .port_mtu_bytes = 1500};

	return device_create(&config, &device);
}

static int tear_down(TEST_STATE)
{
	assert_true(LIST_EMPTY(&device->xrcds));
	device_destroy(device);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* A file that nobody else opens; it has no name. */
static int temporary_file(void)
{
	char path[] = "/tmp/uroce-test-xrcd-XXXXXX";
	const int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	return fd;
}

TEST(xrcd_open__one_domain_a_file)
{
	const int fd = temporary_file(), same = dup(fd), other = temporary_file();
	struct xrcd *a, *b, *c;

	assert_int_equal(xrcd_open(device, fd, 0, &a), -EAGAIN);
	assert_int_equal(xrcd_open(device, fd, O_CREAT | O_EXCL, &a), 0);
	assert_int_equal(xrcd_open(device, same, 0, &b), 0);
	assert_ptr_equal(a, b);
	assert_int_equal(xrcd_open(device, same, O_CREAT, &b), 0);
	assert_ptr_equal(a, b);
	assert_int_equal(xrcd_open(device, same, O_CREAT | O_EXCL, &b), -EINVAL);
	assert_int_equal(xrcd_open(device, other, O_CREAT, &c), 0);
	assert_ptr_not_equal(a, c);
	xrcd_close(c);
	xrcd_close(a);
	xrcd_close(a);
	assert_int_equal(xrcd_open(device, fd, 0, &b), 0);
	xrcd_close(a);
	xrcd_close(a);
	assert_int_equal(xrcd_open(device, fd, 0, &a), -EAGAIN);
	close(fd);
	close(same);
	close(other);
	assert_int_equal(xrcd_open(device, fd, O_CREAT, &a), -EBADF);
}

TEST(xrcd_open__without_a_file_each_has_its_own)
{
	struct xrcd *a, *b;

	assert_int_equal(xrcd_open(device, -1, 0, &a), -EAGAIN);
	assert_int_equal(xrcd_open(device, -1, O_CREAT, &a), 0);
	assert_int_equal(xrcd_open(device, -1, O_CREAT | O_EXCL, &b), 0);
	assert_ptr_not_equal(a, b);
	assert_ptr_not_equal(xrcd_pd(a), xrcd_pd(b));
	xrcd_close(a);
	xrcd_close(b);
}

TEST(xrcd_find_srq__finds_the_domains_own_only)
{
	struct srq *srq, *other;
	struct xrcd *a, *b;

	assert_int_equal(xrcd_open(device, -1, O_CREAT, &a), 0);
	assert_int_equal(xrcd_open(device, -1, O_CREAT, &b), 0);
	assert_int_equal(srq_create(1, 1, NULL, &srq), 0);
	assert_int_equal(srq_create(1, 1, NULL, &other), 0);
	assert_null(xrcd_find_srq(a, 0));
	assert_int_equal(xrcd_add_srq(a, srq), 0);
	assert_int_equal(xrcd_add_srq(a, other), 0);
	assert_true(srq->number != 0 && srq->number < 1u << 24);
	assert_int_not_equal(srq->number, other->number);
	assert_ptr_equal(xrcd_find_srq(a, srq->number), srq);
	assert_ptr_equal(xrcd_find_srq(a, other->number), other);
	assert_null(xrcd_find_srq(b, srq->number));
	/* Refuse numbers that differ in higher bits or exceed 24 bits. */
	assert_null(xrcd_find_srq(a, srq->number ^ 0x10000));
	assert_null(xrcd_find_srq(a, srq->number | 0x1000000));
	xrcd_remove_srq(a, srq);
	assert_null(xrcd_find_srq(a, srq->number));
	assert_ptr_equal(xrcd_find_srq(a, other->number), other);
	xrcd_remove_srq(a, other);
	assert_int_equal(srq_destroy(srq), 0);
	assert_int_equal(srq_destroy(other), 0);
	xrcd_close(a);
	xrcd_close(b);
}

static struct device *device_with(uint32_t qpn_first, uint32_t qpn_count)
{
	const struct device_config config = {.name = "uroce1",
					     .port_mtu_bytes = 1500,
					     .qpn_first = qpn_first,
					     .qpn_count = qpn_count};
	struct device *made;

	assert_int_equal(device_create(&config, &made), 0);
	return made;
}

/* Processes that share a port have no number in common: a message that names another one's queue
 * finds none here, also if both have opened the domain of one file. */
TEST(xrcd_add_srq__gives_numbers_of_the_devices_block)
{
	const uint32_t firsts[] = {5u << 14, 6u << 14};
	const int fd = temporary_file();
	struct device *devices[2];
	struct xrcd *xrcds[2];
	struct srq *srqs[2][3];

	for (int d = 0; d < 2; d++) {
		/* Fewer queue pairs than the block has numbers. */
		devices[d] = device_with(firsts[d], 64);
		assert_int_equal(xrcd_open(devices[d], fd, O_CREAT, &xrcds[d]), 0);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(srq_create(1, 1, NULL, &srqs[d][i]), 0);
			assert_int_equal(xrcd_add_srq(xrcds[d], srqs[d][i]), 0);
			assert_int_equal(srqs[d][i]->number >> 14, firsts[d] >> 14);
		}
	}
	for (int i = 0; i < 3; i++) {
		assert_ptr_equal(xrcd_find_srq(xrcds[0], srqs[0][i]->number), srqs[0][i]);
		assert_null(xrcd_find_srq(xrcds[0], srqs[1][i]->number));
		assert_null(xrcd_find_srq(xrcds[1], srqs[0][i]->number));
	}
	for (int d = 0; d < 2; d++) {
		for (int i = 0; i < 3; i++) {
			xrcd_remove_srq(xrcds[d], srqs[d][i]);
			assert_int_equal(srq_destroy(srqs[d][i]), 0);
		}
		xrcd_close(xrcds[d]);
		device_destroy(devices[d]);
	}
	close(fd);
}

/* The number of a destroyed queue comes again after all others of the block. */
TEST(xrcd_add_srq__reuses_a_number_of_a_block_last)
{
	struct device *shared = device_with(9u << 14, 64);
	uint32_t first, others = 0;
	struct xrcd *xrcd;
	struct srq *srq;

	assert_int_equal(xrcd_open(shared, -1, O_CREAT, &xrcd), 0);
	assert_int_equal(srq_create(1, 1, NULL, &srq), 0);
	assert_int_equal(xrcd_add_srq(xrcd, srq), 0);
	first = srq->number;
	for (;;) {
		xrcd_remove_srq(xrcd, srq);
		assert_int_equal(xrcd_add_srq(xrcd, srq), 0);
		if (srq->number == first)
			break;
		others++;
	}
	assert_int_equal(others, (1u << 14) - 2);
	xrcd_remove_srq(xrcd, srq);
	assert_int_equal(srq_destroy(srq), 0);
	xrcd_close(xrcd);
	device_destroy(shared);
}

/* Devices with all numbers to themselves begin at random. */
TEST(xrcd_add_srq__begins_anywhere)
{
	uint32_t numbers[3];

	for (int i = 0; i < 3; i++) {
		struct device *own = device_with(0, 0);
		struct xrcd *xrcd;
		struct srq *srq;

		assert_int_equal(xrcd_open(own, -1, O_CREAT, &xrcd), 0);
		assert_int_equal(srq_create(1, 1, NULL, &srq), 0);
		assert_int_equal(xrcd_add_srq(xrcd, srq), 0);
		numbers[i] = srq->number;
		xrcd_remove_srq(xrcd, srq);
		assert_int_equal(srq_destroy(srq), 0);
		xrcd_close(xrcd);
		device_destroy(own);
	}
	assert_true(numbers[0] != numbers[1] || numbers[1] != numbers[2]);
}

TEST(xrcd_add_srq__gives_as_many_numbers_as_there_are_queues)
{
	struct srq *srqs = calloc(DEVICE_MAX_SRQ, sizeof(*srqs));
	struct srq *one_more;
	struct xrcd *xrcd;
	uint32_t first;

	assert_non_null(srqs);
	assert_int_equal(srq_create(1, 1, NULL, &one_more), 0);
	assert_int_equal(xrcd_open(device, -1, O_CREAT, &xrcd), 0);
	for (uint32_t i = 0; i < DEVICE_MAX_SRQ; i++)
		assert_int_equal(xrcd_add_srq(xrcd, &srqs[i]), 0);
	assert_int_equal(xrcd_add_srq(xrcd, one_more), -ENOSPC);
	for (uint32_t i = 0; i < DEVICE_MAX_SRQ; i++)
		assert_ptr_equal(xrcd_find_srq(xrcd, srqs[i].number), &srqs[i]);
	/* The only slot that is free is used again, under another number. */
	first = srqs[7].number;
	xrcd_remove_srq(xrcd, &srqs[7]);
	assert_int_equal(xrcd_add_srq(xrcd, one_more), 0);
	assert_int_not_equal(one_more->number, first);
	assert_null(xrcd_find_srq(xrcd, first));
	assert_ptr_equal(xrcd_find_srq(xrcd, one_more->number), one_more);
	assert_int_equal(srq_destroy(one_more), 0);
	xrcd_close(xrcd);
	free(srqs);
}
