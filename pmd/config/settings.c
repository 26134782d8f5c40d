/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings: the kind of each, and the conditions between them. */
#include "config/settings.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/log.h"
#include "base/tuning.h"
#include "config/impair.h"
#include "inject/inject.h"
#include "like/like.h"
#include "value.h"
#include "wire/gid.h"
#include "wire/headers.h"

/* For documents (RFC 5737, RFC 3849). */
#define IPV4_OF_NOBODY "192.0.2.1"
#define IPV6_OF_NOBODY "2001:db8::1"

/* Get the address from which packets to others leave: that of a datagram socket that is connected,
 * which sends nothing. */
static bool source_to_others(int family, struct sockaddr_storage *source)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = 1};
	struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_port = 1};
	const bool is6 = family == AF_INET6;
	const void *address = is6 ? (const void *)&to6 : (const void *)&to;
	socklen_t len = is6 ? sizeof(to6) : sizeof(to);
	const int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool found;

	if (fd < 0)
		return false;
	inet_pton(AF_INET, IPV4_OF_NOBODY, &to.sin_addr);
	inet_pton(AF_INET6, IPV6_OF_NOBODY, &to6.sin6_addr);
	found = connect(fd, address, len) == 0;
	len = sizeof(*source);
	found = found && getsockname(fd, (struct sockaddr *)source, &len) == 0;
	close(fd);
	return found;
}

static bool has_address(const struct ifaddrs *ifa, const struct sockaddr_storage *source)
{
	const struct sockaddr_in *a = (const void *)ifa->ifa_addr, *b = (const void *)source;
	const struct sockaddr_in6 *a6 = (const void *)ifa->ifa_addr, *b6 = (const void *)source;

	if (ifa->ifa_addr == NULL || ifa->ifa_addr->sa_family != source->ss_family)
		return false;
	if (source->ss_family == AF_INET)
		return a->sin_addr.s_addr == b->sin_addr.s_addr;
	return source->ss_family == AF_INET6 &&
	       memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
}

static bool find_interface(const struct sockaddr_storage *source, char name[IF_NAMESIZE])
{
	struct ifaddrs *list;
	bool found = false;

	if (getifaddrs(&list) != 0)
		return false;
	for (const struct ifaddrs *ifa = list; ifa != NULL && !found; ifa = ifa->ifa_next) {
		found = has_address(ifa, source);
		/* An address may have a label, as "eth0:1". */
		if (found)
			snprintf(name, IF_NAMESIZE, "%.*s", (int)strcspn(ifa->ifa_name, ":"),
				 ifa->ifa_name);
	}
	freeifaddrs(list);
	return found;
}

bool interface_to_others(char name[IF_NAMESIZE])
{
	static const int families[] = {AF_INET, AF_INET6};
	struct sockaddr_storage source;

	for (size_t i = 0; i < RTE_DIM(families); i++)
		if (source_to_others(families[i], &source) && find_interface(&source, name))
			return true;
	return false;
}

#define SECONDARY_MAX 1023				 /* queues of a port */
#define MTU_MIN_BYTES (WIRE_MTU_MIN + WIRE_OVERHEAD_MAX) /* the smallest path MTU */
#define MTU_MAX_BYTES 65535				 /* the largest IPv4 packet */

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

static const char *const uplink_names[] = {
	[SETTINGS_UPLINK_SOCKET] = "socket",
	[SETTINGS_UPLINK_RING] = "ring",
};

static const char *const sack_names[] = {
	[SETTINGS_SACK_AUTO] = "auto",
	[SETTINGS_SACK_YES] = "yes",
	[SETTINGS_SACK_NO] = "no",
};

static const char *const stores_names[] = {
	[SETTINGS_STORES_AUTO] = "auto",
	[SETTINGS_STORES_ROUND] = "round",
	[SETTINGS_STORES_PAST_CACHES] = "past-caches",
};

static const char *const capture_names[] = {
	[SETTINGS_CAPTURE_NO] = "no",
	[SETTINGS_CAPTURE_PORT] = "port",
	[SETTINGS_CAPTURE_ALL] = "all",
};

static const char *const check_names[] = {
	[SETTINGS_CHECK_NO] = "no",
	[SETTINGS_CHECK_YES] = "yes",
	[SETTINGS_CHECK_ERROR] = "error",
};

static const char *const view_names[] = {
	[SETTINGS_VIEW_YES] = "yes",
	[SETTINGS_VIEW_NO] = "no",
	[SETTINGS_VIEW_MOUNT] = "mount",
	[SETTINGS_VIEW_PRELOAD] = "preload",
};

static const char *const log_level_names[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARN] = "warn",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

/* Return true if the text can be a device's name. Programs put the name in paths and in
 * PROGRAM:PORT lists, so only safe characters are allowed. */
static bool names_device(const char *text)
{
	if (!isalnum((unsigned char)text[0]))
		return false;
	for (; *text != '\0'; text++)
		if (!isalnum((unsigned char)*text) && !strchr("._-", *text))
			return false;
	return true;
}

/* Return true if the text can be an interface's name in a driver's arguments, which are separated
 * by commas. */
static bool names_interface(const char *text)
{
	return !strpbrk(text, ",/:") && strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

static bool names_congestion_control(const char *text)
{
	return strcmp(text, "none") == 0 || strcmp(text, "dcqcn") == 0 ||
	       strcmp(text, "swift") == 0;
}

static bool names_directory(const char *text)
{
	return !strchr(text, '/') && text[0] != '.';
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
			return text_refuse(why, "address '%s' is there twice", text);
	if (settings->ip_count == SETTINGS_IPS_MAX)
		return text_refuse(why, "address '%s': there are more than %d", text,
				   SETTINGS_IPS_MAX);
	settings->ips[settings->ip_count++] = ip;
	return 0;
}

static int add_route(struct settings *settings, const char *text, bool is_gateway, struct text *why)
{
	struct settings_route route;
	const int rc = route_parse(text, is_gateway, &route, why->at, why->size);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < settings->route_count; i++)
		if (settings->routes[i].prefix_len == route.prefix_len &&
		    memcmp(settings->routes[i].prefix, route.prefix, sizeof(route.prefix)) == 0)
			return text_refuse(why, "route '%s': there are two to that network", text);
	if (settings->route_count == SETTINGS_ROUTES_MAX)
		return text_refuse(why, "route '%s': there are more than %d", text,
				   SETTINGS_ROUTES_MAX);
	settings->routes[settings->route_count++] = route;
	return 0;
}

static int add_to_list(struct settings *settings, const char *name, const char *text,
		       struct text *why)
{
	if (strcmp(name, "ip") == 0)
		return add_ip(settings, text, why);
	return add_route(settings, text, strcmp(name, "gateway") == 0, why);
}

/* Add one address or route, or several separated by commas: a file says `ip = a, b`. */
static int set_list(const struct value *value, void *member, const char *text, struct text *why)
{
	struct settings *settings = member;
	char list[LIST_TEXT_MAX];
	char *word, *rest = list;
	int ret;

	if (snprintf(list, sizeof(list), "%s", text) >= (int)sizeof(list))
		return text_refuse(why, "%s: the list is too long", value->name);
	while ((word = strsep(&rest, ",")) != NULL) {
		char *end;

		word += strspn(word, " \t");
		for (end = word + strlen(word); end > word && isspace((unsigned char)end[-1]);)
			*--end = '\0';
		if (*word == '\0')
			return text_refuse(why, "%s: an address is missing in '%s'", value->name,
					   text);
		ret = add_to_list(settings, value->name, word, why);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static void get_ip(const struct value *value, const void *member, struct text *text)
{
	const struct settings *settings = member;
	char addr[ADDRESS_TEXT_MAX];

	(void)value;
	for (size_t i = 0; i < settings->ip_count; i++) {
		address_format(&settings->ips[i], addr);
		text_add(text, "%s%s", i == 0 ? "" : ",", addr);
	}
}

static void get_routes(const struct value *value, const void *member, struct text *text)
{
	const bool is_gateway = strcmp(value->name, "gateway") == 0;
	const struct settings *settings = member;
	char route[ROUTE_TEXT_MAX];
	bool first = true;

	for (size_t i = 0; i < settings->route_count; i++) {
		if ((settings->routes[i].prefix_len == 0) != is_gateway)
			continue;
		route_format(&settings->routes[i], route);
		text_add(text, "%s%s", first ? "" : ",", route);
		first = false;
	}
}

static const struct value_kind value_ip = {set_list, get_ip};
static const struct value_kind value_routes = {set_list, get_routes};

static int set_without(const struct value *value, void *member, const char *text, struct text *why)
{
	if (!tuning_knows(text))
		return text_refuse(why, "%s: '%s' is not a list of some of %s", value->name, text,
				   tuning_names());
	if (strlen(text) >= value->size)
		return text_refuse(why, "%s: the list is too long", value->name);
	/* Clear the whole member, because settings are compared as bytes. */
	memset(member, 0, value->size);
	memcpy(member, text, strlen(text));
	return 0;
}

static void get_without(const struct value *value, const void *member, struct text *text)
{
	(void)value;
	text_add(text, "%s", (const char *)member);
}

static const struct value_kind value_without = {set_without, get_without};

/* EAL itself reads the options when it starts. */
static int set_eal(const struct value *value, void *member, const char *text, struct text *why)
{
	/* EAL accepts one of them, and has one from eal_args.c. */
	static const char *const cores[] = {"-l", "-c", "--lcores", "--coremask"};
	size_t words = 0;

	if (strlen(text) >= value->size)
		return text_refuse(why, "%s: the options are longer than %zu characters",
				   value->name, value->size - 1);
	for (const char *word = text; *(word += strspn(word, " ")); word += strcspn(word, " ")) {
		for (size_t i = 0; i < RTE_DIM(cores); i++) {
			if (strncmp(word, cores[i], strlen(cores[i])) == 0)
				return text_refuse(why,
						   "%s: %s: the program's CPUs are EAL's; choose "
						   "them by taskset(1)",
						   value->name, cores[i]);
		}
		words++;
	}
	if (words == 0 || words > SETTINGS_EAL_WORDS_MAX)
		return text_refuse(why, "%s: there are no options, or more than %d words",
				   value->name, SETTINGS_EAL_WORDS_MAX);
	/* Clear the whole member, because settings are compared as bytes. */
	memset(member, 0, value->size);
	memcpy(member, text, strlen(text));
	return 0;
}

/* Set what a port does to packets. Only its form is kept: the port reads it again. */
static int set_impair(const struct value *value, void *member, const char *text, struct text *why)
{
	struct impair_config config;

	if (impair_config_read(text, &config, why->at, why->size) != 0)
		return -EINVAL;
	return value_word.set(value, member, text, why);
}

int settings_read_seeds(const char *text, uint32_t *first, uint32_t *last)
{
	const size_t digits = strspn(text, "0123456789");
	const char *second = text + digits;
	char *end;

	if (digits == 0 || digits > 9)
		return -EINVAL;
	*first = (uint32_t)strtoul(text, &end, 10);
	*last = *first;
	if (*second == '\0')
		return 0;
	if (strncmp(second, "..", 2) != 0 || strspn(second + 2, "0123456789") > 9 ||
	    !isdigit((unsigned char)second[2]))
		return -EINVAL;
	*last = (uint32_t)strtoul(second + 2, &end, 10);
	return *end == '\0' && *last > *first ? 0 : -EINVAL;
}

/* Set the faults that a user asks for. Only their form is kept: lib/verbs reads them again. */
static int set_inject(const struct value *value, void *member, const char *text, struct text *why)
{
	struct inject_rule rule;

	if (strcmp(text, "none") != 0 && inject_check(text, why->at, why->size) != 0 &&
	    !(inject_read(text, &rule, why->at, why->size) == 0 && rule.each_call))
		return -EINVAL;
	return value_word.set(value, member, text, why);
}

static int set_like(const struct value *value, void *member, const char *text, struct text *why)
{
	if (like_find(text) == LIKE_NONE)
		return text_refuse(why, "%s: '%s' is not one of %s", value->name, text,
				   like_names());
	return value_word.set(value, member, text, why);
}

static int set_unfold(const struct value *value, void *member, const char *text, struct text *why)
{
	uint32_t first, last;

	if (settings_read_seeds(text, &first, &last) != 0)
		return text_refuse(why, "%s: '%s' is not a number, or two as in 1..500",
				   value->name, text);
	return value_word.set(value, member, text, why);
}

static void get_as_word(const struct value *value, const void *member, struct text *text)
{
	value_word.get(value, member, text);
}

static const struct value_kind value_impair = {set_impair, get_as_word};
static const struct value_kind value_inject = {set_inject, get_as_word};
static const struct value_kind value_like = {set_like, get_as_word};
static const struct value_kind value_unfold = {set_unfold, get_as_word};
static const struct value_kind value_eal = {set_eal, get_as_word};

/* Set a port. "impair,ARGS,next=PORT" is the port PORT, and sets `impair` to ARGS. */
static int set_port(const struct value *value, void *member, const char *text, struct text *why)
{
	struct settings *settings = (struct settings *)(void *)((char *)member - value->offset);
	char args[sizeof(settings->impair)];
	const char *next;
	int rc;

	rc = impair_config_split(text, args, sizeof(args), &next, why->at, why->size);
	if (rc == 0 && args[0] != '\0')
		rc = settings_set(settings, "impair", args, why->at, why->size);
	return rc == 0 ? value_word.set(value, member, next, why) : rc;
}

static const struct value_kind value_port = {set_port, get_as_word};

/* Without a name it is the interface by which packets leave this host. */
static int set_udp(const struct value *value, void *member, const char *text, struct text *why)
{
	struct settings *settings = member;
	char found[IF_NAMESIZE];

	if (text[0] == '\0' && !interface_to_others(found))
		return text_refuse(why,
				   "%s: no route leads to other hosts; name an interface: "
				   "udp=IFACE",
				   value->name);
	if (settings_set(settings, "netdev", text[0] != '\0' ? text : found, why->at, why->size) <
	    0)
		return -EINVAL;
	settings->udp = true;
	return 0;
}

static void get_udp(const struct value *value, const void *member, struct text *text)
{
	const struct settings *settings = member;

	(void)value;
	text_add(text, "%s", settings->udp ? settings->netdev : "");
}

static const struct value_kind value_udp = {set_udp, get_udp};

static int set_engines(const struct value *value, void *member, const char *text, struct text *why)
{
	if (strcmp(text, "auto") != 0)
		return value_count.set(value, member, text, why);
	*(uint32_t *)member = SETTINGS_ENGINES_AUTO;
	return 0;
}

static void get_engines(const struct value *value, const void *member, struct text *text)
{
	if (*(const uint32_t *)member == SETTINGS_ENGINES_AUTO)
		text_add(text, "auto");
	else
		value_count.get(value, member, text);
}

static const struct value_kind value_engines = {set_engines, get_engines};

#define SETTING(text, what, member)                                                       \
	.name = text, .kind = &value_##what, .offset = offsetof(struct settings, member), \
	.size = sizeof(((struct settings *)0)->member)
#define CHOICES(names)	.choices = names, .choice_count = RTE_DIM(names)
#define COUNT(from, to) .unit = "number", .min = from, .max = to

static const struct value values[] = {
	{SETTING("netdev", port, netdev)},
	{.name = "udp", .kind = &value_udp}, /* it sets netdev, too */
	{SETTING("port", port, port)},
	{SETTING("impair", impair, impair)},
	{SETTING("kernel", word, kernel), .fits = names_interface,
	 .rule = "is not the name of an interface"},
	{SETTING("socket", path, socket)},
	{SETTING("socket-owner", word, socket_owner)},
	{SETTING("socket-group", word, socket_group)},
	{SETTING("socket-mode", mode, socket_mode)},
	{SETTING("isolated", path, isolated), .assumed = SETTINGS_DEFAULT_ISOLATED},
	{SETTING("isolated-mode", mode, isolated_mode)},
	{SETTING("metrics", path, metrics), .assumed = SETTINGS_DEFAULT_METRICS},
	{SETTING("hand-over", choice, hand_over), CHOICES(hand_over_names)},
	{SETTING("uplink", choice, uplink), CHOICES(uplink_names)},
	/* Each of these sets several members. */
	{.name = "ip", .kind = &value_ip},
	{.name = "gateway", .kind = &value_routes},
	{.name = "route", .kind = &value_routes},
	{SETTING("name", word, name), .fits = names_device,
	 .rule = "may only have letters, digits, '.', '_' and '-', and starts with a letter or "
		 "digit"},
	{SETTING("mtu", count, mtu), .unit = "number of bytes", .min = MTU_MIN_BYTES,
	 .max = MTU_MAX_BYTES},
	{SETTING("cc", word, cc), .fits = names_congestion_control,
	 .rule = "is not one of none, dcqcn and swift"},
	{SETTING("engines", engines, engines), COUNT(1, SETTINGS_ENGINES_MAX)},
	{SETTING("progress", choice, progress), CHOICES(progress_names)},
	{SETTING("view", choice, view), CHOICES(view_names)},
	{SETTING("log-level", choice, log_level), CHOICES(log_level_names)},
	{SETTING("explain", yes_no, explain), .assumed = "yes"},
	{SETTING("inject", inject, inject)},
	{SETTING("like", like, like)},
	{SETTING("unfold", unfold, unfold)},
	{SETTING("check", choice, check), CHOICES(check_names), .assumed = "yes"},
	{SETTING("check-suppress", path, check_suppress)},
	{SETTING("telemetry", yes_no, telemetry)},
	{SETTING("sack", choice, sack), CHOICES(sack_names)},
	{SETTING("eal", eal, eal)},
	{SETTING("file-prefix", word, file_prefix), .fits = names_directory,
	 .rule = "is not the name of a directory"},
	{SETTING("capture", choice, capture), CHOICES(capture_names)},
	{SETTING("stores", choice, stores), CHOICES(stores_names)},
	{SETTING("without", without, without)},
	{SETTING("secondary", count, secondary), COUNT(1, SECONDARY_MAX)},
	{SETTING("max-qp", count, max_qp), COUNT(1, SETTINGS_QP_MAX)},
	{SETTING("max-memory", bytes, max_memory)},
	{SETTING("max-buffers", count, max_buffers),
	 COUNT(SETTINGS_BUFFERS_MIN, SETTINGS_BUFFERS_MAX)},
};

static const struct value *find_value(const char *name)
{
	for (size_t i = 0; i < RTE_DIM(values); i++)
		if (strcmp(values[i].name, name) == 0)
			return &values[i];
	return NULL;
}

void settings_init(struct settings *settings)
{
	/* Clear every byte, so that two structs can be compared as bytes. */
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
	const struct value *which = find_value(name);
	struct text why = {error, error_size, 0};

	if (!which) {
		text_add(&why, "there is no setting '%s'", name);
		return -ENOENT;
	}
	if (!value)
		value = which->assumed ? which->assumed : "";
	return which->kind->set(which, (char *)settings + which->offset, value, &why);
}

int settings_get(const struct settings *settings, const char *name, char *value, size_t value_size)
{
	const struct value *which = find_value(name);
	struct text text = {value, value_size, 0};

	if (!which)
		return -ENOENT;
	text_add(&text, "%s", "");
	which->kind->get(which, (const char *)settings + which->offset, &text);
	return text.len < value_size ? 0 : -ENOSPC;
}

/* Return a gateway that is no neighbour, or NULL. A link-local one is on each link. */
static const struct settings_route *find_lost_gateway(const struct settings *settings)
{
	for (size_t i = 0; i < settings->route_count; i++) {
		const struct settings_route *route = &settings->routes[i];
		bool found = gid_is_link_local(route->gateway);

		for (size_t k = 0; k < settings->ip_count; k++) {
			const struct settings_ip *ip = &settings->ips[k];

			if (memcmp(ip->gid, route->gateway, sizeof(ip->gid)) == 0)
				return route;
			found |= gid_is_ipv4(ip->gid) == gid_is_ipv4(route->gateway) &&
				 gid_same_prefix(ip->gid, route->gateway,
						 ip->prefix_len + (gid_is_ipv4(ip->gid)
									   ? GID_IPV4_BITS
									   : 0u));
		}
		if (!found)
			return route;
	}
	return NULL;
}

static int check_routes(const struct settings *settings, struct text *why)
{
	const struct settings_route *lost = find_lost_gateway(settings);
	char text[ROUTE_TEXT_MAX];

	if (settings->route_count > 0 && settings->ip_count == 0)
		return text_refuse(why, "gateway and route are for a port with ip; elsewhere the "
					"kernel's routes are used: 'ip route add'");
	if (!lost)
		return 0;
	route_format(lost, text);
	return text_refuse(
		why, "route '%s': the gateway is an address of ip, or in no network of ip", text);
}

int settings_check(const struct settings *settings, char *error, size_t error_size)
{
	struct text why = {error, error_size, 0};
	const bool has_netdev = settings->netdev[0] != '\0';
	const bool has_port = settings->port[0] != '\0';
	const bool has_kernel = settings->kernel[0] != '\0';

	if (has_netdev && has_port)
		return text_refuse(&why, "netdev and port are both set; a device has one of them");
	if (settings->udp && settings->capture != SETTINGS_CAPTURE_NO)
		return text_refuse(&why,
				   "capture is not for udp: tcpdump sees the packets of a UDP "
				   "socket");
	if (!has_netdev && !has_port && settings->socket[0] == '\0' &&
	    settings->isolated[0] == '\0')
		return text_refuse(
			&why,
			"no port: start uroced, or name a port with --netdev IFACE, or with --port "
			"DEVARGS and --ip ADDR/LEN");
	if (!has_netdev && !has_port && (settings->ip_count > 0 || settings->mtu != 0))
		return text_refuse(
			&why, "ip and mtu are the port's: set them for uroced, or name a port");
	if (settings->secondary != 0 && !has_port)
		return text_refuse(&why,
				   "secondary needs the name that the DPDK primary has for its "
				   "port; set port");
	if (settings->eal[0] != '\0' && !has_netdev && !has_port)
		return text_refuse(&why, "eal is for a process with a port of its own; set it for "
					 "uroced");
	if (has_netdev && settings->ip_count > 0)
		return text_refuse(
			&why,
			"ip is set, but the addresses of %s are the kernel's; use 'ip addr add'",
			settings->netdev);
	if (has_kernel && !has_port)
		return text_refuse(
			&why,
			"kernel needs port: with netdev, the kernel already uses the interface");
	if (has_kernel && settings->ip_count > 0)
		return text_refuse(
			&why,
			"ip is set, but the addresses of %s are the kernel's; use 'ip addr add'",
			settings->kernel);
	if (has_port && !has_kernel && settings->ip_count == 0)
		return text_refuse(&why, "port needs an address; set ip to ADDR/LEN");
	return check_routes(settings, &why);
}
