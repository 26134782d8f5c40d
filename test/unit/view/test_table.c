/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/view/table.c. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "view_rig.h"
#include "view/table.h"

static struct view_table *table;
static int bell;

static int set_up(void **state)
{
	assert_int_equal(rig_set_up(state), 0);
	table = view_table_create(rig_root, 0600, &bell);
	assert_non_null(table);
	assert_int_equal(setenv(VIEW_VARIABLE, rig_dir, 1), 0);
	return 0;
}

static int tear_down(void **state)
{
	unsetenv(VIEW_VARIABLE);
	munmap(table, sizeof(*table));
	close(bell);
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
	assert_int_equal(truncate(path, 100), 0);
	assert_null(view_table_open());
	assert_int_equal(unlink(path), 0);
	assert_null(view_table_open());
}

TEST(view_table_ring__is_heard)
{
	char bytes[4];

	assert_int_equal(read(bell, bytes, sizeof(bytes)), -1);
	assert_int_equal(errno, EAGAIN);
	view_table_ring();
	assert_int_equal(read(bell, bytes, sizeof(bytes)), 1);
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
