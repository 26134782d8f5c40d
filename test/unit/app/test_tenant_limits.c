/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroced/tenant_limits.c. */
#include <errno.h>
#include <string.h>

#include "config/settings.h"
#include "tenant_limits.h"
#include "test.h"

static struct serve_tenant users[4];
static struct serve_tenants limits;
static char error[256];

static int find(const struct tenant_settings *tenants, size_t count)
{
	return tenant_limits_find(tenants, count, users, &limits, error, sizeof(error));
}

TEST(tenant_limits_find__each_kind)
{
	static const struct tenant_settings tenants[] = {
		{.kind = TENANT_USER, .user = "root", .weight = 7},
		{.kind = TENANT_OTHERS, .rate = 5000000},
		{.kind = TENANT_USER, .user = "4242", .max_qp = 9, .connection_rate = 8},
		{.kind = TENANT_ATTACHED, .weight = 3},
	};

	assert_int_equal(find(tenants, 4), 0);
	assert_int_equal(limits.count, 2);
	assert_int_equal(users[0].user, user_of_uid(0));
	assert_int_equal(users[0].limits.weight, 7);
	assert_int_equal(users[1].user, user_of_uid(4242));
	assert_int_equal(users[1].limits.weight, 1);
	assert_int_equal(users[1].limits.max_qp, 9);
	assert_int_equal(users[1].limits.connection_rate, 8);
	assert_int_equal(limits.others.rate, 5000000);
	assert_int_equal(limits.others.weight, 1);
	assert_int_equal(limits.attached.weight, 3);
}

TEST(tenant_limits_find__without_settings)
{
	assert_int_equal(find(NULL, 0), 0);
	assert_int_equal(limits.count, 0);
	assert_int_equal(limits.others.weight, 1);
	assert_int_equal(limits.attached.weight, 1);
}

TEST(tenant_limits_find__refuses)
{
	static const struct tenant_settings missing = {.kind = TENANT_USER, .user = "no such user"};
	static const struct tenant_settings same[] = {
		{.kind = TENANT_USER, .user = "root"},
		{.kind = TENANT_USER, .user = "0"},
	};

	assert_int_equal(find(&missing, 1), -EINVAL);
	assert_string_equal(error, "section [tenant no such user]: there is no such user");
	assert_int_equal(find(same, 2), -EINVAL);
	assert_string_equal(error, "section [tenant 0]: another section is of the same user");
}
