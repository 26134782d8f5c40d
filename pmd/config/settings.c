/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings: one setter a name, and what must hold between them. */
#include "config/settings.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "address.h"
#include "base/log.h"
#include "base/tuning.h"
#include "wire/headers.h"

#define SECONDARY_MAX 1023				 /* queues of a port */
#define MTU_MIN_BYTES (WIRE_MTU_MIN + WIRE_OVERHEAD_MAX) /* the smallest path MTU */
/* The largest IPv4 packet. */
#define MTU_MAX_BYTES 65535

static const char *const progress_names[] = {
	[SETTINGS_PROGRESS_HYBRID] = "hybrid",
	[SETTINGS_PROGRESS_INLINE] = "inline",
	[SETTINGS_PROGRESS_DEDICATED] = "dedicated",
};

static const char *const hand_over_names[] = {
	[SETTINGS_HAND_OVER_DIRECT] = "direct",
	[SETTINGS_HAND_OVER_CHECKED] = "checked",
	[SETTINGS_HAND_OVER_OWNER] = "owner",
};

static const char *const capture_names[] = {
	[SETTINGS_CAPTURE_NO] = "no",
	[SETTINGS_CAPTURE_PORT] = "port",
	[SETTINGS_CAPTURE_ALL] = "all",
};

static const char *const log_level_names[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARN] = "warn",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

/* A caller's buffer that is being written; what does not fit is counted, not written. */
struct text {
	char *at;
	size_t size;
	size_t len;
};

static void __rte_format_printf(2, 0) text_vadd(struct text *text, const char *format, va_list args)
{
	const size_t used = RTE_MIN(text->len, text->size);
	int len;

	len = vsnprintf(text->at + used, text->size - used, format, args);
	if (len > 0)
		text->len += (size_t)len;
}

static void __rte_format_printf(2, 3) text_add(struct text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_vadd(text, format, args);
	va_end(args);
}

static int __rte_format_printf(2, 3) refuse(struct text *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_vadd(why, format, args);
	va_end(args);
	return -EINVAL;
}

static int copy_word(char *to, size_t size, const char *name, const char *value, struct text *why)
{
	size_t len = strlen(value);

	if (len == 0)
		return refuse(why, "%s: the value is empty", name);
	if (len >= size)
		return refuse(why, "%s: '%.32s...' is longer than %zu characters", name, value,
			      size - 1);
	for (size_t i = 0; i < len; i++)
		if (isspace((unsigned char)value[i]) || iscntrl((unsigned char)value[i]))
			return refuse(why, "%s: there is white space in the value", name);
	memcpy(to, value, len + 1);
	return 0;
}

static int set_netdev(struct settings *settings, const char *value, struct text *why)
{
	return copy_word(settings->netdev, sizeof(settings->netdev), "netdev", value, why);
}

static int set_port(struct settings *settings, const char *value, struct text *why)
{
	return copy_word(settings->port, sizeof(settings->port), "port", value, why);
}

/* It becomes one of a driver's arguments, which are parted by commas. */
static int set_kernel(struct settings *settings, const char *value, struct text *why)
{
	if (strpbrk(value, ",/:") || strcmp(value, ".") == 0 || strcmp(value, "..") == 0)
		return refuse(why, "kernel: '%s' is no name of an interface", value);
	return copy_word(settings->kernel, sizeof(settings->kernel), "kernel", value, why);
}

static int set_path(char *to, const char *name, const char *value, struct text *why)
{
	int ret = copy_word(to, SETTINGS_SOCKET_MAX, name, value, why);

	if (ret == 0 && value[0] != '/')
		ret = refuse(why, "%s: '%s' is not an absolute path", name, value);
	return ret;
}

static int set_socket(struct settings *settings, const char *value, struct text *why)
{
	return set_path(settings->socket, "socket", value, why);
}

/* The option may have no value. */
static int set_isolated(struct settings *settings, const char *value, struct text *why)
{
	return set_path(settings->isolated, "isolated", value ? value : SETTINGS_DEFAULT_ISOLATED,
			why);
}

static int set_socket_owner(struct settings *settings, const char *value, struct text *why)
{
	return copy_word(settings->socket_owner, sizeof(settings->socket_owner), "socket-owner",
			 value, why);
}

static int set_socket_group(struct settings *settings, const char *value, struct text *why)
{
	return copy_word(settings->socket_group, sizeof(settings->socket_group), "socket-group",
			 value, why);
}

static int set_mode(uint32_t *to, const char *name, const char *value, struct text *why)
{
	unsigned long mode;
	char *end;

	mode = strtoul(value, &end, 8);
	if (!isdigit((unsigned char)value[0]) || *end != '\0' || mode > 0777)
		return refuse(why, "%s: '%s' is not an octal mode as in 0660", name, value);
	*to = (uint32_t)mode;
	return 0;
}

static int set_socket_mode(struct settings *settings, const char *value, struct text *why)
{
	return set_mode(&settings->socket_mode, "socket-mode", value, why);
}

static int set_isolated_mode(struct settings *settings, const char *value, struct text *why)
{
	return set_mode(&settings->isolated_mode, "isolated-mode", value, why);
}

/* Programs put the name in paths and in PROGRAM:PORT lists, so it is kept to what is safe there. */
static int set_name(struct settings *settings, const char *value, struct text *why)
{
	char name[sizeof(settings->name)] = "";
	int ret;

	ret = copy_word(name, sizeof(name), "name", value, why);
	if (ret < 0)
		return ret;
	for (const char *c = name; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c) && (c == name || strchr("._-", *c) == NULL))
			return refuse(why,
				      "name: '%s' may only have letters, digits, '.', '_' and '-', "
				      "and starts with a letter or digit",
				      name);
	memcpy(settings->name, name, sizeof(name));
	return 0;
}

static int add_ip(struct settings *settings, const char *text, struct text *why)
{
	struct settings_ip ip;
	int ret;

	ret = address_parse(text, &ip, why->at, why->size);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < settings->ip_count; i++)
		if (settings->ips[i].vlan == ip.vlan &&
		    memcmp(settings->ips[i].gid, ip.gid, sizeof(ip.gid)) == 0)
			return refuse(why, "address '%s' is there twice", text);
	if (settings->ip_count == SETTINGS_IPS_MAX)
		return refuse(why, "address '%s': there are more than %d", text, SETTINGS_IPS_MAX);
	settings->ips[settings->ip_count++] = ip;
	return 0;
}

/* One address, or several between commas: a file says `ip = a, b`. */
static int set_ip(struct settings *settings, const char *value, struct text *why)
{
	char list[SETTINGS_IPS_MAX * ADDRESS_TEXT_MAX];
	char *word, *rest = list;
	int ret;

	if (snprintf(list, sizeof(list), "%s", value) >= (int)sizeof(list))
		return refuse(why, "ip: the list of addresses is too long");
	while ((word = strsep(&rest, ",")) != NULL) {
		char *end;

		word += strspn(word, " \t");
		for (end = word + strlen(word); end > word && isspace((unsigned char)end[-1]);)
			*--end = '\0';
		if (*word == '\0')
			return refuse(why, "ip: an address is missing in '%s'", value);
		ret = add_ip(settings, word, why);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int set_mtu(struct settings *settings, const char *value, struct text *why)
{
	unsigned long mtu;
	char *end;

	errno = 0;
	mtu = strtoul(value, &end, 10);
	if (!isdigit((unsigned char)value[0]) || *end != '\0' || errno != 0 ||
	    mtu < MTU_MIN_BYTES || mtu > MTU_MAX_BYTES)
		return refuse(why, "mtu: '%s' is not a number of bytes from %d to %d", value,
			      MTU_MIN_BYTES, MTU_MAX_BYTES);
	settings->mtu = (uint32_t)mtu;
	return 0;
}

static int find_word(const char *const *words, size_t count, const char *value)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(words[i], value) == 0)
			return (int)i;
	return -ENOENT;
}

static int set_progress(struct settings *settings, const char *value, struct text *why)
{
	int i = find_word(progress_names, RTE_DIM(progress_names), value);

	if (i < 0)
		return refuse(why, "progress: '%s' is not one of hybrid, inline and dedicated",
			      value);
	settings->progress = (enum settings_progress)i;
	return 0;
}

static int set_hand_over(struct settings *settings, const char *value, struct text *why)
{
	int i = find_word(hand_over_names, RTE_DIM(hand_over_names), value);

	if (i < 0)
		return refuse(why, "hand-over: '%s' is not one of direct, checked and owner",
			      value);
	settings->hand_over = (enum settings_hand_over)i;
	return 0;
}

static int set_capture(struct settings *settings, const char *value, struct text *why)
{
	int i = find_word(capture_names, RTE_DIM(capture_names), value);

	if (i < 0)
		return refuse(why, "capture: '%s' is not one of no, port and all", value);
	settings->capture = (enum settings_capture)i;
	return 0;
}

static int set_log_level(struct settings *settings, const char *value, struct text *why)
{
	int i = find_word(log_level_names, RTE_DIM(log_level_names), value);

	if (i < 0)
		return refuse(why, "log-level: '%s' is not one of error, warn, info and debug",
			      value);
	settings->log_level = i;
	return 0;
}

static int set_yes_no(bool *to, const char *name, const char *value, struct text *why)
{
	if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		return refuse(why, "%s: '%s' is neither yes nor no", name, value);
	*to = value[0] == 'y';
	return 0;
}

static int parse_count(const char *name, const char *value, uint32_t min, uint32_t max,
		       uint32_t *to, struct text *why)
{
	unsigned long count;
	char *end;

	errno = 0;
	count = strtoul(value, &end, 10);
	if (!isdigit((unsigned char)value[0]) || *end != '\0' || errno != 0 || count < min ||
	    count > max)
		return refuse(why, "%s: '%s' is not a number from %u to %u", name, value, min, max);
	*to = (uint32_t)count;
	return 0;
}

static int set_secondary(struct settings *settings, const char *value, struct text *why)
{
	return parse_count("secondary", value, 1, SECONDARY_MAX, &settings->secondary, why);
}

static int set_max_qp(struct settings *settings, const char *value, struct text *why)
{
	return parse_count("max-qp", value, 1, 65536, &settings->max_qp, why);
}

static int set_max_buffers(struct settings *settings, const char *value, struct text *why)
{
	return parse_count("max-buffers", value, SETTINGS_BUFFERS_MIN, SETTINGS_BUFFERS_MAX,
			   &settings->max_buffers, why);
}

/* Bytes, or thousands of them: K, M, G and T are powers of 1024. */
static int set_max_memory(struct settings *settings, const char *value, struct text *why)
{
	static const char units[] = "KMGT";
	const char *unit = NULL;
	unsigned int shift = 0;
	uint64_t bytes;
	char *end;

	errno = 0;
	bytes = strtoull(value, &end, 10);
	if (*end != '\0' && end[1] == '\0')
		unit = strchr(units, *end);
	if (unit)
		shift = 10 * (unsigned int)(unit - units + 1);
	if (!isdigit((unsigned char)value[0]) || (*end != '\0' && !unit) || errno != 0 ||
	    bytes == 0 || bytes > UINT64_MAX >> shift)
		return refuse(why, "max-memory: '%s' is not a number of bytes as in 512M", value);
	settings->max_memory = bytes << shift;
	return 0;
}

static int set_telemetry(struct settings *settings, const char *value, struct text *why)
{
	return set_yes_no(&settings->telemetry, "telemetry", value, why);
}

/* It becomes a directory's name. */
static int set_file_prefix(struct settings *settings, const char *value, struct text *why)
{
	if (strchr(value, '/') || value[0] == '.')
		return refuse(why, "file-prefix: '%s' is no name of a directory", value);
	return copy_word(settings->file_prefix, sizeof(settings->file_prefix), "file-prefix", value,
			 why);
}

static int set_without(struct settings *settings, const char *value, struct text *why)
{
	if (!tuning_knows(value))
		return refuse(why, "without: '%s' is not a list of some of %s", value,
			      tuning_names());
	if (strlen(value) >= sizeof(settings->without))
		return refuse(why, "without: the list is too long");
	snprintf(settings->without, sizeof(settings->without), "%s", value);
	return 0;
}

static void get_netdev(const struct settings *settings, struct text *text)
{
	text_add(text, "%s", settings->netdev);
}

static void get_port(const struct settings *settings, struct text *text)
{
	text_add(text, "%s", settings->port);
}

static void get_kernel(const struct settings *settings, struct text *text)
{
	text_add(text, "%s", settings->kernel);
}

static void get_socket(const struct settings *settings, struct text *text)
{
	text_add(text, "%s", settings->socket);
}

static void get_socket_owner(const struct settings *settings, struct text *text)
{
	text_add(text, "%s", settings->socket_owner);
}

static void get_socket_group(const struct settings *settings, struct text *text)
{
	text_add(text, "%s", settings->socket_group);
}

static void get_socket_mode(const struct settings *settings, struct text *text)
{
	text_add(text, "%04o", settings->socket_mode);
}

static void get_isolated(const struct settings *settings, struct text *text)
{
	text_add(text, "%s", settings->isolated);
}

static void get_isolated_mode(const struct settings *settings, struct text *text)
{
	text_add(text, "%04o", settings->isolated_mode);
}

static void get_name(const struct settings *settings, struct text *text)
{
	text_add(text, "%s", settings->name);
}

static void get_ip(const struct settings *settings, struct text *text)
{
	char addr[ADDRESS_TEXT_MAX];

	for (size_t i = 0; i < settings->ip_count; i++) {
		address_format(&settings->ips[i], addr);
		text_add(text, "%s%s", i == 0 ? "" : ",", addr);
	}
}

static void get_mtu(const struct settings *settings, struct text *text)
{
	if (settings->mtu != 0)
		text_add(text, "%u", settings->mtu);
}

static void get_progress(const struct settings *settings, struct text *text)
{
	text_add(text, "%s", progress_names[settings->progress]);
}

static void get_hand_over(const struct settings *settings, struct text *text)
{
	text_add(text, "%s", hand_over_names[settings->hand_over]);
}

static void get_capture(const struct settings *settings, struct text *text)
{
	text_add(text, "%s", capture_names[settings->capture]);
}

static void get_log_level(const struct settings *settings, struct text *text)
{
	text_add(text, "%s", log_level_names[settings->log_level]);
}

static void get_telemetry(const struct settings *settings, struct text *text)
{
	text_add(text, "%s", settings->telemetry ? "yes" : "no");
}

static void get_number(uint64_t number, struct text *text)
{
	if (number != 0)
		text_add(text, "%" PRIu64, number);
}

static void get_max_qp(const struct settings *settings, struct text *text)
{
	get_number(settings->max_qp, text);
}

static void get_max_buffers(const struct settings *settings, struct text *text)
{
	get_number(settings->max_buffers, text);
}

static void get_max_memory(const struct settings *settings, struct text *text)
{
	get_number(settings->max_memory, text);
}

static void get_secondary(const struct settings *settings, struct text *text)
{
	if (settings->secondary != 0)
		text_add(text, "%u", settings->secondary);
}

static void get_file_prefix(const struct settings *settings, struct text *text)
{
	text_add(text, "%s", settings->file_prefix);
}

static void get_without(const struct settings *settings, struct text *text)
{
	text_add(text, "%s", settings->without);
}

static const struct accessor {
	const char *name;
	int (*set)(struct settings *settings, const char *value, struct text *why);
	void (*get)(const struct settings *settings, struct text *value);
} accessors[] = {
	{"netdev", set_netdev, get_netdev},
	{"port", set_port, get_port},
	{"kernel", set_kernel, get_kernel},
	{"socket", set_socket, get_socket},
	{"socket-owner", set_socket_owner, get_socket_owner},
	{"socket-group", set_socket_group, get_socket_group},
	{"socket-mode", set_socket_mode, get_socket_mode},
	{"isolated", set_isolated, get_isolated},
	{"isolated-mode", set_isolated_mode, get_isolated_mode},
	{"hand-over", set_hand_over, get_hand_over},
	{"ip", set_ip, get_ip},
	{"name", set_name, get_name},
	{"mtu", set_mtu, get_mtu},
	{"progress", set_progress, get_progress},
	{"log-level", set_log_level, get_log_level},
	{"telemetry", set_telemetry, get_telemetry},
	{"file-prefix", set_file_prefix, get_file_prefix},
	{"capture", set_capture, get_capture},
	{"without", set_without, get_without},
	{"secondary", set_secondary, get_secondary},
	{"max-qp", set_max_qp, get_max_qp},
	{"max-memory", set_max_memory, get_max_memory},
	{"max-buffers", set_max_buffers, get_max_buffers},
};

static const struct accessor *find_accessor(const char *name)
{
	for (size_t i = 0; i < RTE_DIM(accessors); i++)
		if (strcmp(accessors[i].name, name) == 0)
			return &accessors[i];
	return NULL;
}

void settings_init(struct settings *settings)
{
	/* Every byte, so that two of them can be compared as bytes. */
	memset(settings, 0, sizeof(*settings));
	snprintf(settings->name, sizeof(settings->name), SETTINGS_DEFAULT_NAME);
	settings->socket_mode = 0660;
	settings->isolated_mode = 0666;
	settings->progress = SETTINGS_PROGRESS_HYBRID;
	settings->log_level = LOG_LEVEL_WARN;
}

int settings_set(struct settings *settings, const char *name, const char *value, char *error,
		 size_t error_size)
{
	const struct accessor *accessor = find_accessor(name);
	struct text why = {error, error_size, 0};

	if (accessor != NULL)
		return accessor->set(settings, value, &why);
	text_add(&why, "there is no setting '%s'", name);
	return -ENOENT;
}

int settings_get(const struct settings *settings, const char *name, char *value, size_t value_size)
{
	const struct accessor *accessor = find_accessor(name);
	struct text text = {value, value_size, 0};

	if (accessor == NULL)
		return -ENOENT;
	text_add(&text, "%s", "");
	accessor->get(settings, &text);
	return text.len < value_size ? 0 : -ENOSPC;
}

int settings_check(const struct settings *settings, char *error, size_t error_size)
{
	struct text why = {error, error_size, 0};
	const bool has_netdev = settings->netdev[0] != '\0';
	const bool has_port = settings->port[0] != '\0';
	const bool has_kernel = settings->kernel[0] != '\0';

	if (has_netdev && has_port)
		return refuse(&why, "netdev and port are both set; a device has one of them");
	if (!has_netdev && !has_port && settings->socket[0] == '\0' &&
	    settings->isolated[0] == '\0')
		return refuse(
			&why,
			"no port: start uroced, or name a port with --netdev IFACE, or with --port "
			"DEVARGS and --ip ADDR/LEN");
	if (!has_netdev && !has_port && (settings->ip_count > 0 || settings->mtu != 0))
		return refuse(&why,
			      "ip and mtu are the port's: set them for uroced, or name a port");
	if (settings->secondary != 0 && !has_port)
		return refuse(&why, "secondary needs the name that the DPDK primary has for its "
				    "port; set port");
	if (has_netdev && settings->ip_count > 0)
		return refuse(
			&why,
			"ip is set, but the addresses of %s are the kernel's; use 'ip addr add'",
			settings->netdev);
	if (has_kernel && !has_port)
		return refuse(&why, "kernel is set without a port: an interface of netdev is the "
				    "kernel's as it is");
	if (has_kernel && settings->ip_count > 0)
		return refuse(
			&why,
			"ip is set, but the addresses of %s are the kernel's; use 'ip addr add'",
			settings->kernel);
	if (has_port && !has_kernel && settings->ip_count == 0)
		return refuse(&why, "port needs an address; set ip to ADDR/LEN");
	return 0;
}
