/* SPDX-License-Identifier: BSD-3-Clause */
/* Kinds of values of settings: how each is parsed, checked and written as text. */
#include "value.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int set_word(const struct value *value, void *member, const char *text, struct text *why)
{
	const size_t len = strlen(text);

	if (len == 0)
		return text_refuse(why, "%s: the value is empty", value->name);
	if (len >= value->size)
		return text_refuse(why, "%s: '%.32s...' is longer than %zu characters", value->name,
				   text, value->size - 1);
	for (size_t i = 0; i < len; i++)
		if (isspace((unsigned char)text[i]) || iscntrl((unsigned char)text[i]))
			return text_refuse(why, "%s: there is white space in the value",
					   value->name);
	if (value->fits && !value->fits(text))
		return text_refuse(why, "%s: '%s' %s", value->name, text, value->rule);
	/* Clear the whole member, because settings are compared as bytes. */
	memset(member, 0, value->size);
	memcpy(member, text, len);
	return 0;
}

static void get_word(const struct value *value, const void *member, struct text *text)
{
	(void)value;
	text_add(text, "%s", (const char *)member);
}

const struct value_kind value_word = {set_word, get_word};

static int set_path(const struct value *value, void *member, const char *text, struct text *why)
{
	if (text[0] != '/' && text[0] != '\0')
		return text_refuse(why, "%s: '%s' is not an absolute path", value->name, text);
	return set_word(value, member, text, why);
}

const struct value_kind value_path = {set_path, get_word};

static int set_mode(const struct value *value, void *member, const char *text, struct text *why)
{
	unsigned long mode;
	char *end;

	mode = strtoul(text, &end, 8);
	if (!isdigit((unsigned char)text[0]) || *end != '\0' || mode > 0777)
		return text_refuse(why, "%s: '%s' is not an octal mode as in 0660", value->name,
				   text);
	*(uint32_t *)member = (uint32_t)mode;
	return 0;
}

static void get_mode(const struct value *value, const void *member, struct text *text)
{
	(void)value;
	text_add(text, "%04o", *(const uint32_t *)member);
}

const struct value_kind value_mode = {set_mode, get_mode};

/* Copy by memcpy: an enum is as long as an int, but the compiler chooses whether it is signed. */
static int set_choice(const struct value *value, void *member, const char *text, struct text *why)
{
	for (int i = 0; i < (int)value->choice_count; i++) {
		if (strcmp(value->choices[i], text) == 0) {
			memcpy(member, &i, sizeof(i));
			return 0;
		}
	}
	text_refuse(why, "%s: '%s' is not one of %s", value->name, text, value->choices[0]);
	for (size_t i = 1; i < value->choice_count; i++)
		text_add(why, "%s%s", i + 1 == value->choice_count ? " and " : ", ",
			 value->choices[i]);
	return -EINVAL;
}

static void get_choice(const struct value *value, const void *member, struct text *text)
{
	int i;

	memcpy(&i, member, sizeof(i));
	text_add(text, "%s", value->choices[i]);
}

const struct value_kind value_choice = {set_choice, get_choice};

static int set_count(const struct value *value, void *member, const char *text, struct text *why)
{
	unsigned long count;
	char *end;

	errno = 0;
	count = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || count < value->min ||
	    count > value->max)
		return text_refuse(why, "%s: '%s' is not a %s from %u to %u", value->name, text,
				   value->unit, value->min, value->max);
	*(uint32_t *)member = (uint32_t)count;
	return 0;
}

static void get_count(const struct value *value, const void *member, struct text *text)
{
	const uint32_t count = *(const uint32_t *)member;

	(void)value;
	if (count != 0)
		text_add(text, "%u", count);
}

const struct value_kind value_count = {set_count, get_count};

/* Parse bytes; the units K, M, G and T are powers of 1024. */
static int set_bytes(const struct value *value, void *member, const char *text, struct text *why)
{
	static const char units[] = "KMGT";
	const char *unit = NULL;
	unsigned int shift = 0;
	uint64_t bytes;
	char *end;

	errno = 0;
	bytes = strtoull(text, &end, 10);
	if (*end != '\0' && end[1] == '\0')
		unit = strchr(units, *end);
	if (unit)
		shift = 10 * (unsigned int)(unit - units + 1);
	if (!isdigit((unsigned char)text[0]) || (*end != '\0' && !unit) || errno != 0 ||
	    bytes == 0 || bytes > UINT64_MAX >> shift)
		return text_refuse(why, "%s: '%s' is not a number of bytes as in 512M", value->name,
				   text);
	*(uint64_t *)member = bytes << shift;
	return 0;
}

static void get_bytes(const struct value *value, const void *member, struct text *text)
{
	const uint64_t bytes = *(const uint64_t *)member;

	(void)value;
	if (bytes != 0)
		text_add(text, "%" PRIu64, bytes);
}

const struct value_kind value_bytes = {set_bytes, get_bytes};

static int set_yes_no(const struct value *value, void *member, const char *text, struct text *why)
{
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return text_refuse(why, "%s: '%s' is neither yes nor no", value->name, text);
	*(bool *)member = text[0] == 'y';
	return 0;
}

static void get_yes_no(const struct value *value, const void *member, struct text *text)
{
	(void)value;
	text_add(text, "%s", *(const bool *)member ? "yes" : "no");
}

const struct value_kind value_yes_no = {set_yes_no, get_yes_no};
