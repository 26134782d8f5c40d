/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/resume_table.c: the table is right, or it is refused, whoever has written it.
 */
#include "owner/resume_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "owner/ids.h"
#include "share/blocks.h"
#include "share/layout.h"
#include "share/user.h"
#include "test.h"

static const uint8_t mac[6] = {2, 1, 2, 3, 4, 5};
static struct resume_table *table, *copy;
static int fd;

static struct resume_entry entry_of(uint32_t number)
{
	return (struct resume_entry){
		.token = {1, (uint8_t)number, (uint8_t)(number >> 8)},
		.user = USER_TRUSTED,
		.qpn_first = (number + 1) << BLOCK_SHIFT,
		.qpn_count = BLOCK_QPNS,
		.id_value = number << IDS_SHIFT,
		.engines = 1,
	};
}

static int setup(TEST_STATE)
{
	static struct resume_table memory;

	fd = resume_table_create("eth1", mac, &table);
	copy = &memory;
	return fd >= 0 ? 0 : -1;
}

static int teardown(TEST_STATE)
{
	resume_table_unmap(table);
	return close(fd);
}

TEST_FIXTURE(setup, teardown);

static const char *check(void)
{
	memcpy(copy, table, sizeof(*copy));
	return resume_table_check(copy, "eth1", mac);
}

TEST(resume_table_check__accepts_what_an_owner_writes)
{
	struct resume_entry entry;

	assert_null(check());
	for (uint32_t i = 0; i < RESUME_ENTRIES; i++) {
		entry = entry_of(i);
		if (i % 2) {
			entry.isolated = 1;
			entry.user = user_of_uid(1000);
			entry.qpn_count = 2;
		} else {
			entry.engines = 4;
		}
		assert_int_equal(resume_table_put(table, &entry), i);
	}
	assert_null(check());
	assert_int_equal(resume_table_put(table, &entry), -ENOSPC);
	resume_table_clear(table, 17);
	assert_null(check());
	entry = entry_of(300);
	assert_int_equal(resume_table_put(table, &entry), 17);
	assert_null(check());
}

/* Each of these has a right sum: an attacker can compute it. */
TEST(resume_table_check__refuses_entries_of_an_attacker)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
	const struct {
		const char *wrong;
		struct resume_entry entry; /* instead of the second of two */
	} cases[] = {
#define WITH(...)                       \
	{.token = {1, 1},               \
	 .qpn_first = 2 << BLOCK_SHIFT, \
	 .qpn_count = BLOCK_QPNS,       \
	 .id_value = 1 << IDS_SHIFT,    \
	 .engines = 1,                  \
	 __VA_ARGS__}
		{NULL, WITH(.engines = 1)},
		{"a token", WITH(.token = {0})},
		{"queue pair numbers", WITH(.qpn_first = 0)},
		{"queue pair numbers", WITH(.qpn_first = (BLOCKS - 1) << BLOCK_SHIFT)},
		{"queue pair numbers", WITH(.qpn_first = (2 << BLOCK_SHIFT) + 1)},
		{"queue pair numbers", WITH(.qpn_first = (2 << BLOCK_SHIFT) | 1u << 24)},
		{"queue pair numbers", WITH(.qpn_count = 0)},
		{"queue pair numbers", WITH(.qpn_count = BLOCK_QPNS + 1)},
		{"queue pair numbers", WITH(.qpn_count = UINT32_MAX)},
		{"communication ids", WITH(.id_value = (1 << IDS_SHIFT) | 1)},
		{"a user", WITH(.isolated = 1)},
		{"a user", WITH(.isolated = 2, .user = USER_ROOT)},
		{"a user", WITH(.user = USER_ROOT)},
		{"a number of engines", WITH(.engines = 0)},
		{"a number of engines", WITH(.engines = SHARE_ENGINES_MAX + 1)},
		{"a number of engines", WITH(.engines = 2, .isolated = 1, .user = USER_ROOT)},
		{"numbers that two programs have", WITH(.qpn_first = 1 << BLOCK_SHIFT)},
		{"numbers that two programs have", WITH(.id_value = 0)},
		{"numbers that two programs have", WITH(.token = {1, 0})},
#undef WITH
	};
#pragma GCC diagnostic pop
	const struct resume_entry first = entry_of(0);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *wrong;

		assert_int_equal(resume_table_put(table, &first), 0);
		assert_int_equal(resume_table_put(table, &cases[i].entry), 1);
		wrong = check();
		if (cases[i].wrong)
			assert_string_equal(wrong, cases[i].wrong);
		else
			assert_null(wrong);
		resume_table_clear(table, 0);
		resume_table_clear(table, 1);
	}
}

TEST(resume_table_check__refuses_what_a_fault_has_changed)
{
	const struct resume_entry first = entry_of(0);

	assert_int_equal(resume_table_put(table, &first), 0);
	for (size_t at = 0; at < offsetof(struct resume_table, entries) + sizeof(first); at++) {
		uint8_t *byte = (uint8_t *)table + at;

		/* Nobody relies on how often an owner has gone on. */
		if (at >= offsetof(struct resume_table, times) &&
		    at < offsetof(struct resume_table, mac))
			continue;
		*byte ^= 0x40;
		if (!check())
			fail_msg("a changed byte at %zu is not found", at);
		*byte ^= 0x40;
	}
	assert_null(check());
}

TEST(resume_table_check__refuses_another_ports)
{
	static const uint8_t other[6] = {2, 1, 2, 3, 4, 6};

	memcpy(copy, table, sizeof(*copy));
	assert_string_equal(resume_table_check(copy, "eth2", mac), "the port");
	assert_string_equal(resume_table_check(copy, "eth1", other), "the port");
}

/* An entry that the owner was writing when it was killed is not there. */
TEST(resume_table_put__shows_whole_entries_only)
{
	const struct resume_entry first = entry_of(0);

	assert_int_equal(resume_table_put(table, &first), 0);
	resume_table_clear(table, 0);
	table->entries[0].qpn_first = 12345;
	assert_null(check());
}

TEST(resume_table_map__takes_sealed_memory_of_its_length_only)
{
	struct resume_table *mapped;
	int other = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(resume_table_map(fd, &mapped), 0);
	resume_table_unmap(mapped);
	assert_int_equal(ftruncate(other, sizeof(*table)), 0);
	assert_int_equal(resume_table_map(other, &mapped), -EINVAL);
	assert_int_equal(ftruncate(other, sizeof(*table) - 1), 0);
	assert_int_equal(fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	assert_int_equal(resume_table_map(other, &mapped), -EINVAL);
	close(other);
	other = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(resume_table_map(other, &mapped), -EINVAL);
	close(other);
}
