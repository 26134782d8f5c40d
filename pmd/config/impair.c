/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what damage a port does to packets. */
#include "config/impair.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "base/decimal.h"
#include "base/text.h"

#define PREFIX	  "impair,"
#define NEXT	  ",next="
#define TEXT_MAX  512
#define BILLION	  UINT64_C(1000000000)
#define BURST_MAX 10000
#define RATE_MIN  1000
#define RATE_MAX  (1000 * BILLION)
#define DEPTH	  3
#define HOLD_NS	  100000
#define LIMIT	  1000

struct argument;

/* Reads one kind of value. Returns false if the text is none. */
typedef bool (*argument_read)(const struct argument *argument, const char *text, uint64_t *value);

struct argument {
	const char *key;
	argument_read read;
	const char *what; /* a value is */
	uint64_t min, max;
};

/* Read a number and its unit. Without a unit only 0 is a value, unless the unit may be "". */
static bool read_with_unit(const char *text, const struct decimal_unit *units, size_t count,
			   uint64_t *value)
{
	uint64_t billionths;
	const char *end;

	if (decimal_read(text, &billionths, &end) && billionths == 0 && *end == '\0') {
		*value = 0;
		return true;
	}
	return decimal_read_unit(text, units, count, value);
}

static bool is_within(const struct argument *argument, uint64_t value)
{
	return value >= argument->min && value <= argument->max;
}

static bool read_fraction(const struct argument *argument, const char *text, uint64_t *value)
{
	uint64_t billionths;
	const char *end;

	(void)argument;
	if (!decimal_read(text, &billionths, &end) || *end != '\0' || billionths > BILLION)
		return false;
	*value = (uint64_t)((unsigned __int128)billionths * IMPAIR_ALL / BILLION);
	return true;
}

/* Return billionths: the mean may be 2.5 packets. */
static bool read_mean(const struct argument *argument, const char *text, uint64_t *value)
{
	const char *end;

	return decimal_read(text, value, &end) && *end == '\0' && is_within(argument, *value);
}

static bool read_time(const struct argument *argument, const char *text, uint64_t *value)
{
	static const struct decimal_unit units[] = {
		{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", BILLION}};

	return read_with_unit(text, units, RTE_DIM(units), value) && is_within(argument, *value);
}

static bool read_rate(const struct argument *argument, const char *text, uint64_t *value)
{
	static const struct decimal_unit units[] = {
		{"", 1}, {"K", 1000}, {"M", 1000000}, {"G", BILLION}};

	return read_with_unit(text, units, RTE_DIM(units), value) && is_within(argument, *value);
}

static bool read_count(const struct argument *argument, const char *text, uint64_t *value)
{
	uint64_t count = 0;

	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++) {
		if (!isdigit((unsigned char)*text) || count > (UINT64_MAX - 9) / 10)
			return false;
		count = count * 10 + (uint64_t)(*text - '0');
	}
	*value = count;
	return is_within(argument, count);
}

/* Return 1 for received packets, 2 for sent ones, 3 for both. */
static bool read_direction(const struct argument *argument, const char *text, uint64_t *value)
{
	static const char *const names[] = {NULL, "rx", "tx", "both"};

	(void)argument;
	for (size_t i = 1; i < RTE_DIM(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			*value = i;
			return true;
		}
	}
	return false;
}

enum key {
	KEY_LOSS,
	KEY_BURST,
	KEY_CORRUPT,
	KEY_DUP,
	KEY_REORDER,
	KEY_DEPTH,
	KEY_HOLD,
	KEY_CE,
	KEY_DELAY,
	KEY_RATE,
	KEY_LIMIT,
	KEY_DIR,
	KEY_SEED,
	KEYS,
};

#define FRACTION read_fraction, "a fraction from 0 to 1, as 0.01", 0, 0

static const struct argument arguments[KEYS] = {
	[KEY_LOSS] = {"loss", FRACTION},
	[KEY_BURST] = {"burst", read_mean, "a mean number of packets from 1 to 10000", BILLION,
		       BURST_MAX *BILLION},
	[KEY_CORRUPT] = {"corrupt", FRACTION},
	[KEY_DUP] = {"dup", FRACTION},
	[KEY_REORDER] = {"reorder", FRACTION},
	[KEY_DEPTH] = {"depth", read_count, "a number of packets from 1 to 1000", 1,
		       IMPAIR_DEPTH_MAX},
	[KEY_HOLD] = {"hold", read_time, "a time from 1us to 1s, as 100us", 1000,
		      IMPAIR_DELAY_MAX_S *BILLION},
	[KEY_CE] = {"ce", FRACTION},
	[KEY_DELAY] = {"delay", read_time, "a time up to 1s, as 50us", 0,
		       IMPAIR_DELAY_MAX_S *BILLION},
	[KEY_RATE] = {"rate", read_rate, "a number of bits a second from 1K to 1000G, as 10G",
		      RATE_MIN, RATE_MAX},
	[KEY_LIMIT] = {"limit", read_count, "a number of packets from 1 to 16384", 1,
		       IMPAIR_LIMIT_MAX},
	[KEY_DIR] = {"dir", read_direction, "one of rx, tx and both", 0, 0},
	[KEY_SEED] = {"seed", read_count, "a number", 0, UINT64_MAX},
};

/* The arguments of a text: their values, and which of them it has. */
struct arguments {
	uint64_t value[KEYS];
	bool given[KEYS];
};

static int list_keys(struct text *why)
{
	for (size_t i = 0; i < KEYS; i++)
		text_add(why, "%s%s",
			 i == 0		 ? ""
			 : i + 1 == KEYS ? " and "
					 : ", ",
			 arguments[i].key);
	return -EINVAL;
}

static int read_argument(const char *item, struct arguments *all, struct text *why)
{
	const char *value = strchr(item, '=');
	const size_t len = value ? (size_t)(value - item) : strlen(item);

	for (size_t i = 0; i < KEYS; i++) {
		if (strlen(arguments[i].key) != len || strncmp(arguments[i].key, item, len) != 0)
			continue;
		if (all->given[i])
			return text_refuse(why, "impair: %s is there twice", arguments[i].key);
		if (!value || !arguments[i].read(&arguments[i], value + 1, &all->value[i]))
			return text_refuse(why, "impair: '%s': %s is %s", item, arguments[i].key,
					   arguments[i].what);
		all->given[i] = true;
		return 0;
	}
	text_refuse(why, "impair: '%s' is not KEY=VALUE with one of the keys ", item);
	return list_keys(why);
}

/* Check the conditions between arguments. An argument without effect is a mistake. */
static int check_arguments(const struct arguments *all, struct text *why)
{
	const bool holds = all->value[KEY_DELAY] > 0 || all->given[KEY_RATE];

	if (all->given[KEY_BURST] && all->value[KEY_LOSS] == 0)
		return text_refuse(why, "impair: burst is of lost packets: set loss as well");
	if ((all->given[KEY_DEPTH] || all->given[KEY_HOLD]) && all->value[KEY_REORDER] == 0)
		return text_refuse(why, "impair: %s is of reordered packets: set reorder as well",
				   all->given[KEY_DEPTH] ? "depth" : "hold");
	if (all->given[KEY_LIMIT] && !holds)
		return text_refuse(why, "impair: limit is of packets that wait: set delay or rate "
					"as well");
	return 0;
}

/*
 * Choose the two probabilities of the Gilbert-Elliott model in which a burst loses every packet.
 * Bursts have the mean length 1 / end; begin / (begin + end) of all packets are lost.
 */
static int set_bursts(struct impair_config *config, uint64_t mean_billionths, struct text *why)
{
	const uint64_t end = (uint64_t)((unsigned __int128)BILLION * IMPAIR_ALL / mean_billionths);
	const uint64_t through = IMPAIR_ALL - config->loss;

	if (through == 0 ||
	    (unsigned __int128)end * config->loss > (unsigned __int128)through * IMPAIR_ALL)
		return text_refuse(why, "impair: bursts this short cannot lose so many packets: "
					"loss is at most burst / (burst + 1)");
	config->burst_end = end;
	config->burst_begin = (uint64_t)((unsigned __int128)end * config->loss / through);
	return 0;
}

int impair_config_read(const char *text, struct impair_config *config, char *error,
		       size_t error_size)
{
	struct arguments all = {.value = {[KEY_DEPTH] = DEPTH,
					  [KEY_HOLD] = HOLD_NS,
					  [KEY_LIMIT] = LIMIT,
					  [KEY_DIR] = 3,
					  [KEY_SEED] = 1}};
	struct text why = {error, error_size, 0};
	char list[TEXT_MAX];
	char *item, *rest = list;
	int rc = 0;

	if (snprintf(list, sizeof(list), "%s", text) >= (int)sizeof(list))
		return text_refuse(&why, "impair: the arguments are too long");
	while (rc == 0 && (item = strsep(&rest, ",")) != NULL)
		rc = read_argument(item, &all, &why);
	if (rc == 0)
		rc = check_arguments(&all, &why);
	if (rc != 0)
		return rc;
	*config = (struct impair_config){
		.loss = all.value[KEY_LOSS],
		.corrupt = all.value[KEY_CORRUPT],
		.dup = all.value[KEY_DUP],
		.reorder = all.value[KEY_REORDER],
		.depth = (uint32_t)all.value[KEY_DEPTH],
		.hold_ns = all.value[KEY_HOLD],
		.ce = all.value[KEY_CE],
		.delay_ns = all.value[KEY_DELAY],
		.rate_bps = all.value[KEY_RATE],
		.limit = (uint32_t)all.value[KEY_LIMIT],
		.seed = all.value[KEY_SEED],
		.rx = all.value[KEY_DIR] & 1,
		.tx = all.value[KEY_DIR] & 2,
	};
	return all.given[KEY_BURST] ? set_bursts(config, all.value[KEY_BURST], &why) : 0;
}

uint32_t impair_config_buffers(const char *text)
{
	struct impair_config config;
	char error[TEXT_MAX];

	if (text[0] == '\0' || impair_config_read(text, &config, error, sizeof(error)) != 0 ||
	    !impair_config_holds(&config))
		return 0;
	return 2 * config.limit;
}

int impair_config_split(const char *port, char *args, size_t args_size, const char **next,
			char *error, size_t error_size)
{
	struct text why = {error, error_size, 0};
	const char *from, *to;

	args[0] = '\0';
	*next = port;
	if (strncmp(port, PREFIX, strlen(PREFIX)) != 0)
		return 0;
	from = port + strlen(PREFIX);
	to = strstr(port, NEXT);
	if (!to || to < from || to[strlen(NEXT)] == '\0')
		return text_refuse(&why, "impair: the port behind it is missing: "
					 "impair,KEY=VALUE,...,next=PORT");
	if ((size_t)(to - from) >= args_size)
		return text_refuse(&why, "impair: the arguments are too long");
	memcpy(args, from, (size_t)(to - from));
	args[to - from] = '\0';
	*next = to + strlen(NEXT);
	return 0;
}
