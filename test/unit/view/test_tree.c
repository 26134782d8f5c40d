/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/view: tree.c and attributes.c. */
#include <sys/stat.h>

#include "view_rig.h"

#define PORT   RIG_PORT
#define DEVICE VIEW_CLASS "/uroce7/"

TEST_FIXTURE(rig_set_up, rig_tear_down);

static struct view_facts show(void)
{
	const struct view_facts facts = rig_facts();

	assert_int_equal(view_tree_show(rig_root, &facts, NULL), 0);
	return facts;
}

TEST(view_tree_begin__shows_what_needs_no_device)
{
	rig_expect(VIEW_CLASS_VERBS "/abi_version", "6\n");
	rig_expect(VIEW_CLASS_MAD "/abi_version", "5\n");
	rig_expect(VIEW_CLASS_CM "/abi_version", "4\n");
	rig_expect_link(VIEW_DEV "/rdma_cm", "/dev/null");
}

TEST(view_tree_show__device)
{
	show();
	rig_expect(DEVICE "node_type", "1: CA\n");
	rig_expect(DEVICE "node_guid", "0211:22ff:fe33:4455\n");
	rig_expect(DEVICE "sys_image_guid", "0211:22ff:fe33:4456\n");
	rig_expect(DEVICE "fw_ver", "1.2.3\n");
	rig_expect(DEVICE "hw_rev", "1a\n");
	rig_expect(DEVICE "device/vendor", "0x3456\n");
	rig_expect(DEVICE "device/device", "0x0009\n");
	rig_expect(DEVICE "device/numa_node", "-1\n");
	rig_expect(DEVICE "device/resource", NULL);
	rig_expect_link(DEVICE "device/net/eth5", "/sys/class/net/eth5");
}

TEST(view_tree_show__port)
{
	show();
	rig_expect(PORT "state", "4: ACTIVE\n");
	rig_expect(PORT "phys_state", "5: LinkUp\n");
	rig_expect(PORT "rate", "100 Gb/sec (4X EDR)\n");
	rig_expect(PORT "link_layer", "Ethernet\n");
	rig_expect(PORT "lid", "0x0\n");
	rig_expect(PORT "cap_mask", "0x04000000\n");
	rig_expect(PORT "pkeys/0", "0xffff\n");
	rig_expect(PORT "pkeys/1", NULL);
}

/* The file can be opened, and a read fails with EINVAL, as in sysfs. */
static void expect_unreadable(const char *path)
{
	const int fd = openat(rig_root, path, O_RDONLY | O_CLOEXEC);
	char byte;

	assert_true(fd >= 0);
	assert_int_equal(read(fd, &byte, 1), -1);
	assert_int_equal(errno, EINVAL);
	close(fd);
}

TEST(view_tree_show__every_gid_and_attributes_of_used_ones)
{
	show();
	rig_expect(PORT "gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
	rig_expect(PORT "gids/1", "0000:0000:0000:0000:0000:0000:0000:0000\n");
	rig_expect(PORT "gids/2", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
	rig_expect(PORT "gids/127", "0000:0000:0000:0000:0000:0000:0000:0000\n");
	rig_expect(PORT "gids/128", NULL);
	rig_expect(PORT "gid_attrs/types/0", "RoCE v2\n");
	expect_unreadable(PORT "gid_attrs/types/1");
	rig_expect(PORT "gid_attrs/types/2", "RoCE v2\n");
	expect_unreadable(PORT "gid_attrs/types/127");
	rig_expect(PORT "gid_attrs/types/128", NULL);
	rig_expect(PORT "gid_attrs/ndevs/0", "eth5\n");
	expect_unreadable(PORT "gid_attrs/ndevs/1");
	expect_unreadable(PORT "gid_attrs/ndevs/2");
}

TEST(view_tree_show__verbs_and_mad)
{
	struct stat file;

	show();
	rig_expect(VIEW_CLASS_VERBS "/uverbs3/ibdev", "uroce7\n");
	rig_expect(VIEW_CLASS_VERBS "/uverbs3/abi_version", "1\n");
	rig_expect(VIEW_CLASS_VERBS "/uverbs3/dev", "1:3\n");
	rig_expect(VIEW_CLASS_VERBS "/uverbs3/device/device", "0x0009\n");
	rig_expect(VIEW_CLASS_MAD "/umad3/port", "1\n");
	rig_expect(DEVICE "device/infiniband/uroce7/node_type", "1: CA\n");
	rig_expect(DEVICE "device/infiniband_verbs/uverbs3/ibdev", "uroce7\n");
	/* The node has the numbers that `dev` tells. */
	assert_int_equal(fstatat(rig_root, VIEW_DEV "/uverbs3", &file, 0), 0);
	assert_true(S_ISCHR(file.st_mode));
	assert_int_equal(file.st_rdev, 0x103);
}

TEST(view_tree_show__rates)
{
	static const struct {
		uint8_t width, speed;
		const char *text;
	} rates[] = {{1, 1, "2.5 Gb/sec (1X)\n"},      {1, 8, "10 Gb/sec (1X FDR10)\n"},
		     {2, 2, "20 Gb/sec (4X DDR)\n"},   {1, 32, "25 Gb/sec (1X EDR)\n"},
		     {2, 64, "200 Gb/sec (4X HDR)\n"}, {2, 128, "400 Gb/sec (4X NDR)\n"},
		     {200, 3, "0 Gb/sec (0X)\n"}};
	struct view_facts before = show(), facts = before;

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		facts.active_width = rates[i].width;
		facts.active_speed = rates[i].speed;
		assert_int_equal(view_tree_show(rig_root, &facts, &before), 0);
		rig_expect(PORT "rate", rates[i].text);
		before = facts;
	}
}

TEST(view_tree_show__writes_what_changed)
{
	const struct view_facts before = show();
	struct view_facts facts = before;
	struct stat old, new;

	assert_int_equal(fstatat(rig_root, PORT "gids/0", &old, 0), 0);
	facts.gids[2] = (struct view_gid){0};
	facts.gids[1] = (struct view_gid){.raw = {0xfd, [15] = 2}, .ndev = "eth6"};
	facts.state = 77;
	strcpy(facts.netdev, "eth6");
	assert_int_equal(view_tree_show(rig_root, &facts, &before), 0);
	rig_expect(PORT "gids/1", "fd00:0000:0000:0000:0000:0000:0000:0002\n");
	rig_expect(PORT "gid_attrs/ndevs/1", "eth6\n");
	rig_expect(PORT "gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n");
	rig_expect(PORT "gid_attrs/types/1", "RoCE v2\n");
	expect_unreadable(PORT "gid_attrs/types/2");
	rig_expect(PORT "state", "77: UNKNOWN\n");
	rig_expect_link(DEVICE "device/net/eth6", "/sys/class/net/eth6");
	assert_int_equal(faccessat(rig_root, DEVICE "device/net/eth5", F_OK, AT_SYMLINK_NOFOLLOW),
			 -1);
	/* This one is still the same file. */
	assert_int_equal(fstatat(rig_root, PORT "gids/0", &new, 0), 0);
	assert_int_equal(old.st_ino, new.st_ino);
}

TEST(view_tree_show__a_reader_keeps_the_old_text)
{
	const struct view_facts before = show();
	struct view_facts facts = before;
	char text[16] = "";
	int fd;

	fd = openat(rig_root, PORT "state", O_RDONLY);
	assert_true(fd >= 0);
	facts.state = IBV_PORT_DOWN;
	assert_int_equal(view_tree_show(rig_root, &facts, &before), 0);
	assert_int_equal(read(fd, text, sizeof(text)), 10);
	assert_string_equal(text, "4: ACTIVE\n");
	close(fd);
	rig_expect(PORT "state", "1: DOWN\n");
}

TEST(view_tree_hide__leaves_nothing)
{
	const struct view_facts facts = show();

	view_tree_hide(rig_root, &facts);
	assert_int_equal(unlinkat(rig_root, VIEW_CLASS, AT_REMOVEDIR), 0);
	rig_expect(VIEW_CLASS_VERBS "/uverbs3/ibdev", NULL);
	rig_expect(VIEW_CLASS_VERBS "/abi_version", "6\n");
	assert_int_equal(faccessat(rig_root, VIEW_DEV "/uverbs3", F_OK, AT_SYMLINK_NOFOLLOW), -1);
}
