/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads settings from an INI file with rte_cfgfile, and reports errors that rte_cfgfile ignores. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cfgfile.h>
#include <rte_common.h>

#include "config/settings.h"
#include "value.h"

static int set_rate(const struct value *value, void *member, const char *text, struct text *why)
{
	uint64_t rate;
	int rc = value_bytes.set(value, &rate, text, why);

	if (rc != 0)
		return rc;
	if (rate < TENANT_RATE_MIN || rate > TENANT_RATE_MAX)
		return text_refuse(why,
				   "%s: '%s' is not a number of bytes a second from %lu to %lu",
				   value->name, text, (unsigned long)TENANT_RATE_MIN,
				   (unsigned long)TENANT_RATE_MAX);
	*(uint64_t *)member = rate;
	return 0;
}

static void get_rate(const struct value *value, const void *member, struct text *text)
{
	value_bytes.get(value, member, text);
}

static const struct value_kind value_rate = {set_rate, get_rate};

#define SETTING(text, what, member)                                                              \
	.name = text, .kind = &value_##what, .offset = offsetof(struct tenant_settings, member), \
	.size = sizeof(((struct tenant_settings *)0)->member), .unit = "number"

static const struct value values[] = {
	{SETTING("weight", count, weight), .min = 1, .max = TENANT_WEIGHT_MAX},
	{SETTING("rate", rate, rate)},
	{SETTING("max-qp", count, max_qp), .min = 1, .max = UINT32_MAX},
	{SETTING("connection-rate", count, connection_rate), .min = 1,
	 .max = TENANT_CONNECTION_RATE_MAX},
};

/* Set one setting of a tenant by its name ("weight", "rate", "max-qp", "connection-rate"). 0;
 * -ENOENT for an unknown name; -EINVAL; with `error`. Not MT-safe on one struct. */
static int tenant_set(struct tenant_settings *tenant, const char *name, const char *value,
		      char *error, size_t error_size)
{
	struct text why = {error, error_size, 0};

	for (size_t i = 0; i < RTE_DIM(values); i++) {
		const struct value *which = &values[i];

		if (strcmp(which->name, name) != 0)
			continue;
		/* Attached programs share all with each other, and most of their packets do not
		 * pass through uroced. */
		if (tenant->kind == TENANT_ATTACHED && which != &values[0])
			return text_refuse(&why, "%s: attached programs have a weight only", name);
		return which->kind->set(which, (char *)tenant + which->offset, value, &why);
	}
	text_add(&why, "a tenant has no setting '%s'", name);
	return -ENOENT;
}

#define SECTION		 "uroce"
#define PORT_SECTION	 "port "
#define TENANT_SECTION	 "tenant "
#define OTHERS_SECTION	 "tenants"
#define ATTACHED_SECTION "attached"
#define COMMENT		 '#'

static const char whitespace[] = " \t\r\n";

/* The settings of a section [port NAME]. All others belong to uroced as a whole, or are not
 * uroced's. */
static const char *const port_settings[] = {"netdev",  "udp",	"port",	  "impair", "ip",
					    "gateway", "route", "kernel", "mtu",    "name"};

/* Return why rte_cfgfile would skip or refuse a line; NULL: it takes the line. It names such a line
 * only in its log, which a running process needs for other messages. */
static const char *file_judge_line(char *line)
{
	char *text = line + strspn(line, whitespace), *value;
	size_t len;

	if (strlen(line) >= CFG_NAME_LEN + CFG_VALUE_LEN)
		return "is too long";
	text[strcspn(text, (char[]){COMMENT, '\0'})] = '\0';
	len = strlen(text);
	while (len > 0 && strchr(whitespace, text[len - 1]))
		text[--len] = '\0';
	if (*text == '\0')
		return NULL;
	if (*text == '[')
		return strchr(text, ']') ? NULL : "has no ']'";
	value = strchr(text, '=');
	if (!value)
		return "is neither [section] nor name = value";
	return value[1] == '\0' ? "has no value" : NULL;
}

/* Return the number of the first bad line, and what is wrong with it; 0: all are good; or -errno.
 */
static int file_find_bad_line(const char *path, const char **why)
{
	char *line = NULL;
	size_t size = 0;
	int number = 0, bad = 0;
	FILE *file;

	file = fopen(path, "re");
	if (file == NULL)
		return -errno;
	while (bad == 0 && getline(&line, &size, file) >= 0) {
		number++;
		*why = file_judge_line(line);
		if (*why)
			bad = number;
	}
	if (bad == 0 && ferror(file))
		bad = -errno;
	free(line);
	fclose(file);
	return bad;
}

static struct rte_cfgfile *file_load(const char *path, char *error, size_t error_size)
{
	const struct rte_cfgfile_parameters params = {.comment_character = COMMENT};
	struct rte_cfgfile *cfg = rte_cfgfile_load_with_params(path, 0, &params);

	if (cfg == NULL)
		snprintf(error, error_size, "%s: settings must follow a line [" SECTION "]", path);
	return cfg;
}

static bool is_port(const char *section)
{
	return strncmp(section, PORT_SECTION, strlen(PORT_SECTION)) == 0;
}

static bool is_tenant(const char *section)
{
	return strncmp(section, TENANT_SECTION, strlen(TENANT_SECTION)) == 0 ||
	       strcmp(section, OTHERS_SECTION) == 0 || strcmp(section, ATTACHED_SECTION) == 0;
}

static bool may_stand_in(const char *section, const char *setting)
{
	for (size_t i = 0; i < RTE_DIM(port_settings); i++) {
		if (strcmp(port_settings[i], setting) == 0)
			return true;
	}
	return !is_port(section);
}

/* Set one value of a section. 0 or -errno with `why`. */
typedef int entry_fn(void *arg, const char *section, const char *name, const char *value, char *why,
		     size_t why_size);

static int set_setting(void *arg, const char *section, const char *name, const char *value,
		       char *why, size_t why_size)
{
	const int ret = settings_set(arg, name, value, why, why_size);

	if (ret < 0 || may_stand_in(section, name))
		return ret;
	snprintf(why, why_size,
		 "section [%s]: %s cannot be set for one port; settings for all ports belong in "
		 "[" SECTION "]",
		 section, name);
	return -EINVAL;
}

static int set_of_tenant(void *arg, const char *section, const char *name, const char *value,
			 char *why, size_t why_size)
{
	const int len = snprintf(why, why_size, "section [%s]: ", section);

	return tenant_set(arg, name, value, why + len, why_size - (size_t)len);
}

static int file_apply_entry(entry_fn *set, void *arg, const char *path, const char *section,
			    const struct rte_cfgfile_entry *entry, char *error, size_t error_size)
{
	char why[256];
	int ret;

	/* rte_cfgfile cuts longer values silently, so a value of the full length may have been
	 * longer. */
	if (strlen(entry->value) == CFG_VALUE_LEN - 1) {
		snprintf(error, error_size, "%s: the value of %s is longer than %d characters",
			 path, entry->name, CFG_VALUE_LEN - 2);
		return -EINVAL;
	}
	ret = set(arg, section, entry->name, entry->value, why, sizeof(why));
	if (ret < 0)
		snprintf(error, error_size, "%s: %s", path, why);
	return ret;
}

static int file_apply_section(entry_fn *set, void *arg, const char *path, struct rte_cfgfile *cfg,
			      int index, char *error, size_t error_size)
{
	struct rte_cfgfile_entry *entries;
	char section[CFG_NAME_LEN];
	int count, ret = 0;

	count = rte_cfgfile_section_num_entries_by_index(cfg, section, index);
	if (count <= 0)
		return 0;
	entries = calloc((size_t)count, sizeof(*entries));
	if (entries == NULL) {
		snprintf(error, error_size, "%s: no memory", path);
		return -ENOMEM;
	}
	count = rte_cfgfile_section_entries_by_index(cfg, index, section, entries, count);
	for (int i = 0; i < count && ret == 0; i++)
		ret = file_apply_entry(set, arg, path, section, &entries[i], error, error_size);
	free(entries);
	return ret;
}

/* Apply a section. Returns 0 or -errno. */
typedef int section_fn(void *arg, const char *path, struct rte_cfgfile *cfg, int index,
		       const char *name, char *error, size_t error_size);

static int file_each_section(const char *path, section_fn *each, void *arg, char *error,
			     size_t error_size)
{
	struct rte_cfgfile *cfg;
	char name[CFG_NAME_LEN];
	const char *why = NULL;
	int sections, ret;

	ret = file_find_bad_line(path, &why);
	if (ret < 0) {
		snprintf(error, error_size, "%s: %s", path, strerror(-ret));
		return ret;
	}
	if (ret > 0) {
		snprintf(error, error_size, "%s: line %d %s", path, ret, why);
		return -EINVAL;
	}
	cfg = file_load(path, error, error_size);
	if (cfg == NULL)
		return -EINVAL;
	sections = rte_cfgfile_num_sections(cfg, NULL, 0);
	for (int i = 0; i < sections && ret == 0; i++) {
		rte_cfgfile_section_num_entries_by_index(cfg, name, i);
		ret = each(arg, path, cfg, i, name, error, error_size);
	}
	rte_cfgfile_close(cfg);
	return ret;
}

static int read_common(void *arg, const char *path, struct rte_cfgfile *cfg, int index,
		       const char *name, char *error, size_t error_size)
{
	if (is_port(name) || is_tenant(name))
		return 0;
	if (strcmp(name, SECTION) == 0)
		return file_apply_section(set_setting, arg, path, cfg, index, error, error_size);
	snprintf(error, error_size,
		 "%s: section [%s] is unknown; there are [" SECTION "], [" PORT_SECTION
		 "NAME], [" TENANT_SECTION "USER], [" OTHERS_SECTION "] and [" ATTACHED_SECTION "]",
		 path, name);
	return -EINVAL;
}

int settings_read_file(struct settings *settings, const char *path, char *error, size_t error_size)
{
	return file_each_section(path, read_common, settings, error, error_size);
}

struct ports {
	const struct settings *common;
	struct settings *list;
	size_t count, max;
};

static int read_port(void *arg, const char *path, struct rte_cfgfile *cfg, int index,
		     const char *section, char *error, size_t error_size)
{
	const char *name = section + strlen(PORT_SECTION);
	struct ports *ports = arg;
	struct settings *port;
	char why[256];
	int ret;

	if (!is_port(section))
		return 0;
	if (ports->count == ports->max) {
		snprintf(error, error_size, "%s: there are more than %zu ports", path, ports->max);
		return -ENOSPC;
	}
	for (size_t i = 0; i < ports->count; i++) {
		if (strcmp(ports->list[i].name, name) == 0) {
			snprintf(error, error_size, "%s: section [%s] is there twice", path,
				 section);
			return -EINVAL;
		}
	}
	port = &ports->list[ports->count++];
	*port = *ports->common;
	port->netdev[0] = port->port[0] = port->kernel[0] = '\0';
	port->udp = false;
	port->ip_count = 0;
	port->mtu = 0;
	ret = settings_set(port, "name", name, why, sizeof(why));
	if (ret == 0)
		ret = file_apply_section(set_setting, port, path, cfg, index, error, error_size);
	else
		snprintf(error, error_size, "%s: section [%s]: %s", path, section, why);
	if (ret != 0)
		return ret;
	if (port->netdev[0] == '\0' && port->port[0] == '\0')
		snprintf(why, sizeof(why), "none of netdev, udp and port is set");
	else if (strcmp(port->name, name) != 0)
		snprintf(why, sizeof(why), "the device's name is the section's");
	else if (settings_check(port, why, sizeof(why)) == 0)
		return 0;
	snprintf(error, error_size, "%s: section [%s]: %s", path, section, why);
	return -EINVAL;
}

int settings_read_ports(const struct settings *common, const char *path, struct settings *list,
			size_t max, char *error, size_t error_size)
{
	struct ports ports = {.common = common, .list = list, .max = max};
	const int ret = file_each_section(path, read_port, &ports, error, error_size);

	return ret == 0 ? (int)ports.count : ret;
}

struct tenants {
	struct tenant_settings *list;
	size_t count, max;
};

/* Find out whose a section of a tenant is. 0 or -EINVAL with `why`. */
static int tenant_identify(struct tenant_settings *tenant, const char *section, char *why,
			   size_t why_size)
{
	const char *user = section + strlen(TENANT_SECTION);

	*tenant = (struct tenant_settings){.kind = TENANT_USER};
	if (strcmp(section, OTHERS_SECTION) == 0) {
		tenant->kind = TENANT_OTHERS;
		return 0;
	}
	if (strcmp(section, ATTACHED_SECTION) == 0) {
		tenant->kind = TENANT_ATTACHED;
		return 0;
	}
	if (user[0] == '\0' || strpbrk(user, whitespace) != NULL) {
		snprintf(why, why_size, "'%s' is not a user's name or number", user);
		return -EINVAL;
	}
	snprintf(tenant->user, sizeof(tenant->user), "%s", user);
	return 0;
}

static int read_tenant(void *arg, const char *path, struct rte_cfgfile *cfg, int index,
		       const char *section, char *error, size_t error_size)
{
	struct tenants *tenants = arg;
	struct tenant_settings *tenant;
	char why[256];

	if (!is_tenant(section))
		return 0;
	if (tenants->count == tenants->max) {
		snprintf(error, error_size, "%s: there are more than %zu tenants", path,
			 tenants->max);
		return -ENOSPC;
	}
	tenant = &tenants->list[tenants->count];
	if (tenant_identify(tenant, section, why, sizeof(why)) != 0) {
		snprintf(error, error_size, "%s: section [%s]: %s", path, section, why);
		return -EINVAL;
	}
	for (size_t i = 0; i < tenants->count; i++) {
		if (tenants->list[i].kind == tenant->kind &&
		    strcmp(tenants->list[i].user, tenant->user) == 0) {
			snprintf(error, error_size, "%s: section [%s] is there twice", path,
				 section);
			return -EINVAL;
		}
	}
	tenants->count++;
	return file_apply_section(set_of_tenant, tenant, path, cfg, index, error, error_size);
}

int tenant_read_file(const char *path, struct tenant_settings *list, size_t max, char *error,
		     size_t error_size)
{
	struct tenants tenants = {.list = list, .max = max};
	const int ret = file_each_section(path, read_tenant, &tenants, error, error_size);

	return ret == 0 ? (int)tenants.count : ret;
}
