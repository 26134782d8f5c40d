/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/view: counter_files.c. */
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "view/counter_files.h"
#include "view_rig.h"

#define PORT	   RIG_PORT
#define TX_PACKETS PORT "hw_counters/tx_packets"

static struct view_facts facts;
static struct counter_files files;
static uint64_t counters[COUNTER_COUNT];

static int set_up(void **state)
{
	facts = rig_facts();
	memset(counters, 0, sizeof(counters));
	return rig_set_up(state);
}

static int tear_down(void **state)
{
	counter_files_close(&files);
	return rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

static void write_tx_packets(uint64_t value)
{
	counters[COUNTER_tx_packets] = value;
	assert_int_equal(counter_files_write(&files, rig_root, &facts, counters), 0);
}

static void expect_at(int fd, const char *expected)
{
	char text[64];
	const ssize_t length = pread(fd, text, sizeof(text) - 1, 0);

	assert_true(length >= 0);
	text[length] = '\0';
	assert_string_equal(text, expected);
}

TEST(counter_files_write__by_both_names)
{
	counters[COUNTER_rx_bytes] = UINT64_MAX;
	counters[COUNTER_rx_icrc_errors] = 2;
	counters[COUNTER_rx_malformed] = 3;
	write_tx_packets(5);
	rig_expect(PORT "hw_counters/rx_bytes", "18446744073709551615\n");
	rig_expect(TX_PACKETS, "5\n");
	rig_expect(PORT "hw_counters/cq_overrun", "0\n");
	rig_expect(PORT "counters/port_rcv_data", "4611686018427387903\n");
	rig_expect(PORT "counters/port_xmit_packets", "5\n");
	rig_expect(PORT "counters/port_rcv_errors", "5\n");
	write_tx_packets(6);
	rig_expect(TX_PACKETS, "6\n");
	rig_expect(PORT "counters/port_xmit_packets", "6\n");
}

TEST(counter_files_write__an_open_file_gets_the_new_value)
{
	static const struct {
		uint64_t value;
		const char *text;
	} values[] = {{1, "1\n"},
		      {9, "9\n"},
		      {10, "10\n"},
		      {99999999, "99999999\n"},
		      {100000000, "100000000\n"},
		      {UINT64_MAX, "18446744073709551615\n"}};
	struct stat status;
	int fd;

	write_tx_packets(0);
	fd = openat(rig_root, TX_PACKETS, O_RDONLY);
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		write_tx_packets(values[i].value);
		expect_at(fd, values[i].text);
		rig_expect(TX_PACKETS, values[i].text);
	}
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_nlink, 1);
	assert_int_equal(status.st_mode & 07777, 0444);
	close(fd);
}

TEST(counter_files_write__a_mapping_gets_the_new_value)
{
	const char *text;
	int fd;

	write_tx_packets(41);
	fd = openat(rig_root, TX_PACKETS, O_RDONLY);
	assert_true(fd >= 0);
	text = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	assert_ptr_not_equal(text, MAP_FAILED);
	write_tx_packets(42);
	assert_memory_equal(text, "42\n", 3);
	write_tx_packets(12345);
	assert_memory_equal(text, "12345\n", 6);
	munmap((void *)(uintptr_t)text, 1);
}

/* A part of the longer text would follow the shorter one. */
TEST(counter_files_write__a_shorter_text_is_a_new_file)
{
	int fd;

	write_tx_packets(1000);
	fd = openat(rig_root, TX_PACKETS, O_RDONLY);
	assert_true(fd >= 0);
	write_tx_packets(7);
	expect_at(fd, "1000\n");
	close(fd);
	rig_expect(TX_PACKETS, "7\n");
	fd = openat(rig_root, TX_PACKETS, O_RDONLY);
	write_tx_packets(8);
	expect_at(fd, "8\n");
	close(fd);
}

TEST(counter_files_write__with_few_descriptors_each_value_is_a_new_file)
{
	struct rlimit before, few;
	int fd;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){.rlim_cur = (rlim_t)rig_root + 33, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	write_tx_packets(3);
	fd = openat(rig_root, TX_PACKETS, O_RDONLY);
	assert_true(fd >= 0);
	write_tx_packets(4);
	rig_expect(TX_PACKETS, "4\n");
	rig_expect(PORT "counters/port_xmit_packets", "4\n");
	expect_at(fd, "3\n");
	close(fd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(counter_files_close__closes_every_descriptor)
{
	const int before = dup(rig_root);
	int after;

	close(before);
	write_tx_packets(1);
	assert_true(files.files[COUNTER_tx_packets].fd >= 0);
	counter_files_close(&files);
	after = dup(rig_root);
	close(after);
	assert_int_equal(after, before);
	rig_expect(TX_PACKETS, "1\n");
}
