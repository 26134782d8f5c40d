/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/view/table.c. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "view_rig.h"
#include "view/table.h"

static struct view_table *table;
static struct view_entry entry;

static int set_up(void **state)
{
	assert_int_equal(rig_set_up(state), 0);
	table = view_table_create(rig_root, 0600, &entry);
	assert_non_null(table);
	rig_open(&entry);
	assert_int_equal(setenv(VIEW_VARIABLE, rig_dir, 1), 0);
	return 0;
}

static int tear_down(void **state)
{
	unsetenv(VIEW_VARIABLE);
	munmap(table, sizeof(*table));
	rig_close(&entry);
	return rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

TEST(view_table_open__finds_it_by_the_environment)
{
	struct view_table *other = view_table_open();

	assert_non_null(other);
	other->slots[7].pid = 5;
	assert_int_equal(table->slots[7].pid, 5);
	munmap(other, sizeof(*other));
	assert_int_equal(setenv(VIEW_VARIABLE, "relative", 1), 0);
	assert_null(view_table_open());
	unsetenv(VIEW_VARIABLE);
	assert_null(view_table_open());
}

TEST(view_table_open__refuses_other_files)
{
	char path[PATH_MAX];

	table->magic ^= 1;
	assert_null(view_table_open());
	table->magic ^= 1;
	snprintf(path, sizeof(path), "%s/" VIEW_TABLE, rig_dir);
	assert_int_equal(unlink(path), 0);
	assert_null(view_table_open());
}

/* A server could give a file that becomes shorter later. */
TEST(view_table_open__refuses_memory_that_is_not_sealed)
{
	const int saved = entry.memory;
	const int plain = memfd_create("plain", MFD_CLOEXEC);

	assert_int_equal(ftruncate(plain, sizeof(*table)), 0);
	assert_int_equal(pwrite(plain, table, 16, 0), 16);
	entry.memory = plain;
	assert_null(view_table_open());
	entry.memory = saved;
	close(plain);
}

/* Access behind the end of the table would be a SIGBUS in each process of the view. */
TEST(view_table_create__nobody_can_make_it_shorter)
{
	char path[PATH_MAX];
	struct stat file;

	assert_int_equal(ftruncate(entry.memory, 0), -1);
	assert_int_equal(errno, EPERM);
	snprintf(path, sizeof(path), "%s/" VIEW_TABLE, rig_dir);
	assert_int_equal(truncate(path, 0), -1);
	assert_int_equal(stat(path, &file), 0);
	assert_true(S_ISSOCK(file.st_mode));
}

/* The user's umask does not count, and stays. */
TEST(view_table_create__has_the_modes)
{
	static const char *const names[] = {VIEW_TABLE, VIEW_DOORBELL};
	struct view_entry others;
	struct view_table *second;
	struct stat file;
	mode_t before;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(fstatat(rig_root, names[i], &file, 0), 0);
		assert_int_equal(file.st_mode & 07777, 0600);
		assert_int_equal(unlinkat(rig_root, names[i], 0), 0);
	}
	before = umask(077);
	second = view_table_create(rig_root, 0666, &others);
	assert_int_equal(umask(before), 077);
	assert_non_null(second);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(fstatat(rig_root, names[i], &file, 0), 0);
		assert_int_equal(file.st_mode & 07777, 0666);
	}
	view_entry_close(&others);
	munmap(second, sizeof(*second));
}

TEST(view_table_ring__is_heard)
{
	char bytes[4];

	assert_int_equal(read(entry.doorbell, bytes, sizeof(bytes)), -1);
	assert_int_equal(errno, EAGAIN);
	view_table_ring();
	assert_int_equal(read(entry.doorbell, bytes, sizeof(bytes)), 1);
}

static struct view_slot slot_with(const struct view_facts *facts, uint32_t sequence)
{
	return (struct view_slot){.pid = 1, .sequence = sequence, .facts = *facts};
}

TEST(view_slot_read__complete_facts)
{
	const struct view_facts facts = rig_facts();
	struct view_slot slot = slot_with(&facts, 4);
	struct view_facts copy;

	assert_int_equal(view_slot_read(&slot, &copy), 4);
	assert_memory_equal(&copy, &facts, sizeof(facts));
	slot.sequence = 5;
	assert_int_equal(view_slot_read(&slot, &copy), 0);
	slot.sequence = 0;
	assert_int_equal(view_slot_read(&slot, &copy), 0);
}

TEST(view_slot_read__distrusts_names_and_numbers)
{
	static const char *const names[] = {"", ".", "..", ".x", "a/b", "a b", "a\n", "../../etc"};
	struct view_facts facts = rig_facts(), copy;
	struct view_slot slot;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		facts = rig_facts();
		strcpy(facts.name, names[i]);
		slot = slot_with(&facts, 2);
		assert_int_equal(view_slot_read(&slot, &copy), 0);
	}
	facts = rig_facts();
	memset(facts.name, 'a', sizeof(facts.name));
	slot = slot_with(&facts, 2);
	assert_int_equal(view_slot_read(&slot, &copy), 0);
	facts = rig_facts();
	facts.number = VIEW_DEVICES_MAX;
	slot = slot_with(&facts, 2);
	assert_int_equal(view_slot_read(&slot, &copy), 0);
	facts = rig_facts();
	strcpy(facts.netdev, "../x");
	slot = slot_with(&facts, 2);
	assert_int_equal(view_slot_read(&slot, &copy), 0);
	facts = rig_facts();
	memset(facts.gids[127].ndev, 'x', sizeof(facts.gids[127].ndev));
	slot = slot_with(&facts, 2);
	assert_int_equal(view_slot_read(&slot, &copy), 0);
}
