/* SPDX-License-Identifier: BSD-3-Clause */
/* Kinds of values of settings: how each is parsed, checked and written as text. Private to this
 * room. */
#ifndef CONFIG_VALUE_H
#define CONFIG_VALUE_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "config/settings.h"

struct value_kind;

/* A setting: its name, its place in struct settings, and its allowed values. */
struct value {
	const char *name;
	const struct value_kind *kind;
	size_t offset; /* of a member of struct settings */
	size_t size;   /* of that member */
	/* For some kinds only: */
	const char *assumed; /* the value of an option that is given without one, or NULL */
	bool (*fits)(const char *text); /* words: false refuses the word, for the reason `rule`; or
					   NULL */
	const char *rule;
	const char *unit; /* counts: "number" or "number of ..." */
	uint32_t min, max;
	const char *const *choices; /* names by number */
	size_t choice_count;
};

struct value_kind {
	/* Parse `text` into the member. 0 or -EINVAL with `why`. */
	int (*set)(const struct value *value, void *member, const char *text, struct text *why);
	/* Write the member in the form that `set` accepts; nothing if it is not set. */
	void (*get)(const struct value *value, const void *member, struct text *text);
};

extern const struct value_kind value_word;   /* char[]: no white space */
extern const struct value_kind value_path;   /* char[]: an absolute path */
extern const struct value_kind value_mode;   /* uint32_t: of a file, octal */
extern const struct value_kind value_choice; /* an enum or int: one of `choices` */
extern const struct value_kind value_count;  /* uint32_t: from `min` to `max`; 0: not set */
extern const struct value_kind value_bytes;  /* uint64_t: 512, or 512M; 0: not set */
extern const struct value_kind value_yes_no; /* bool */

/** Find the interface by which this host reaches others, by the kernel's routes. No packet is sent.
 * MT-safe. Returns false if no route leads to other networks. */
bool interface_to_others(char name[IF_NAMESIZE]);

/* Longest text of an address, its prefix length, its VLAN and the NUL. */
#define ADDRESS_TEXT_MAX 64
#define ROUTE_TEXT_MAX	 (2 * ADDRESS_TEXT_MAX)
/* The longest list of addresses or routes. */
#define LIST_TEXT_MAX ((size_t)SETTINGS_ROUTES_MAX * ROUTE_TEXT_MAX)

/**
 * Parse ADDR/LEN, or ADDR/LEN@VID. MT-safe.
 *
 * @return
 *   0, or -EINVAL with `error` if no host can have the address.
 */
int address_parse(const char *text, struct settings_ip *ip, char *error, size_t error_size);

/** Write an address as text, the inverse of address_parse. MT-safe. `text` has ADDRESS_TEXT_MAX
 * bytes. */
void address_format(const struct settings_ip *ip, char *text);

/** Parse "PREFIX/LEN via GATEWAY", or with `is_gateway` the address of a gateway of all else.
 * MT-safe. 0, or -EINVAL with `error`. */
int route_parse(const char *text, bool is_gateway, struct settings_route *route, char *error,
		size_t error_size);

/** Write a route as text, the inverse of route_parse. MT-safe. `text` has ROUTE_TEXT_MAX bytes. */
void route_format(const struct settings_route *route, char *text);

#endif
