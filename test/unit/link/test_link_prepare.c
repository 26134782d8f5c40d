/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of link_prepare in pmd/link/link.c beside programs that have an interface. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "config/settings.h"
#include "link/link.h"
#include "link/mute.h"
#include "netns.h"
#include "test.h"

/* What link_prepare says of "left" while another program has an interface. */
static int prepare_beside(const char *taken)
{
	static struct link made;
	struct settings settings;
	const int fd = mute_kernel(taken);
	int rc;

	assert_true(fd >= 0);
	settings_init(&settings);
	strcpy(settings.netdev, "left");
	rc = link_prepare(&made, &settings);
	close(fd);
	if (made.mute_fd >= 0)
		close(made.mute_fd);
	return rc;
}

TEST(link_prepare__refuses_an_interface_that_another_program_has)
{
	if (!netns_enter())
		skip();
	assert_int_equal(prepare_beside("left"), -EADDRINUSE);
	assert_int_equal(prepare_beside("right"), 0);
}

/* Both would answer for the VLAN's addresses. */
TEST(link_prepare__refuses_an_interface_whose_vlan_another_program_has)
{
	if (!netns_enter() || !netns_run("ip link add link left name left.5 type vlan id 5") ||
	    !netns_run("ip link set left.5 up && ip addr add 10.7.5.1/24 dev left.5"))
		skip();
	assert_int_equal(prepare_beside("left.5"), -EADDRINUSE);
}
