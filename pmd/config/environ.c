/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes settings from uroce-run to the library in the program's process: one environment variable
 * per setting. */
#include "config/settings.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>

#include "value.h"

#define PREFIX "UROCE_"

static const struct variable {
	const char *variable;
	const char *setting;
} variables[] = {
	{PREFIX "NETDEV", "netdev"},
	{PREFIX "UDP", "udp"},
	{PREFIX "PORT", "port"},
	{PREFIX "IMPAIR", "impair"},
	{PREFIX "IP", "ip"},
	{PREFIX "GATEWAY", "gateway"},
	{PREFIX "ROUTE", "route"},
	{PREFIX "SOCKET", "socket"},
	{PREFIX "ISOLATED", "isolated"},
	{PREFIX "NAME", "name"},
	{PREFIX "MTU", "mtu"},
	{PREFIX "ENGINES", "engines"},
	{PREFIX "PROGRESS", "progress"},
	{PREFIX "LOG_LEVEL", "log-level"},
	{PREFIX "EXPLAIN", "explain"},
	{PREFIX "INJECT", "inject"},
	{PREFIX "LIKE", "like"},
	{PREFIX "UNFOLD", "unfold"},
	{PREFIX "CHECK", "check"},
	{PREFIX "CHECK_SUPPRESS", "check-suppress"},
	{PREFIX "TELEMETRY", "telemetry"},
	{PREFIX "EAL", "eal"},
	{PREFIX "FILE_PREFIX", "file-prefix"},
	{PREFIX "WITHOUT", "without"},
	{PREFIX "SECONDARY", "secondary"},
	{PREFIX "CC", "cc"},
	{PREFIX "SACK", "sack"},
	{PREFIX "STORES", "stores"},
};

/* Longest value: a full list of routes. */
#define VALUE_MAX LIST_TEXT_MAX
static_assert(VALUE_MAX >= sizeof(((struct settings *)NULL)->port), "device arguments fit too");

int settings_export(const struct settings *settings)
{
	char value[VALUE_MAX];

	for (size_t i = 0; i < RTE_DIM(variables); i++) {
		if (settings_get(settings, variables[i].setting, value, sizeof(value)) < 0)
			return -ENOMEM;
		/* Remove the settings of an outer uroce-run. */
		if (value[0] == '\0')
			unsetenv(variables[i].variable);
		else if (setenv(variables[i].variable, value, 1) < 0)
			return -ENOMEM;
	}
	return 0;
}

int settings_import(struct settings *settings, char *error, size_t error_size)
{
	const char *value;
	int ret;

	/* A program with more rights than its user must not obey the user's environment. */
	if (secure_getenv(PREFIX "NETDEV") == NULL && secure_getenv(PREFIX "PORT") == NULL &&
	    secure_getenv(PREFIX "SOCKET") == NULL && secure_getenv(PREFIX "ISOLATED") == NULL)
		return -ENOENT;
	settings_init(settings);
	for (size_t i = 0; i < RTE_DIM(variables); i++) {
		value = secure_getenv(variables[i].variable);
		if (value == NULL)
			continue;
		ret = settings_set(settings, variables[i].setting, value, error, error_size);
		if (ret < 0)
			return -EINVAL;
	}
	return settings_check(settings, error, error_size);
}
