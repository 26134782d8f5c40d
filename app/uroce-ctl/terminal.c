/* SPDX-License-Identifier: BSD-3-Clause */
/* Print coloured text, and wrap lines. */
#include "terminal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SIZE_MAX_CELLS 10000

static const char *const tints[] = {
	[TINT_PLAIN] = "",	  [TINT_NAME] = "\033[36m", [TINT_GOOD] = "\033[32m",
	[TINT_WARN] = "\033[33m", [TINT_BAD] = "\033[31m",  [TINT_HEAD] = "\033[1m",
};

static unsigned int from_environment(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);
	const long number = text ? strtol(text, NULL, 10) : 0;

	return number > 0 && number <= SIZE_MAX_CELLS ? (unsigned int)number : otherwise;
}

static bool has_colours(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return !(no && no[0] != '\0') && term && strcmp(term, "dumb") != 0;
}

void terminal_resize(struct terminal *terminal)
{
	struct winsize size;

	if (!terminal->is_terminal)
		return;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
		memset(&size, 0, sizeof(size));
	terminal->columns = from_environment("COLUMNS", size.ws_col);
	terminal->rows = from_environment("LINES", size.ws_row);
}

void terminal_look(struct terminal *terminal, enum colour_when when)
{
	*terminal = (struct terminal){.is_terminal = isatty(STDOUT_FILENO)};
	terminal_resize(terminal);
	terminal->colour = when == COLOUR_ALWAYS ||
			   (when == COLOUR_AUTO && terminal->is_terminal && has_colours());
}

const char *terminal_tint(const struct terminal *terminal, enum tint tint)
{
	return terminal->colour ? tints[tint] : "";
}

const char *terminal_plain(const struct terminal *terminal, enum tint tint)
{
	return terminal->colour && tint != TINT_PLAIN ? "\033[0m" : "";
}

static void put_bytes(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		putchar(isprint((unsigned char)text[i]) ? text[i] : '?');
}

void terminal_put(const struct terminal *terminal, enum tint tint, const char *text)
{
	fputs(terminal_tint(terminal, tint), stdout);
	put_bytes(text, strlen(text));
	fputs(terminal_plain(terminal, tint), stdout);
}

unsigned int terminal_wrap(const struct terminal *terminal, enum tint tint, unsigned int column,
			   unsigned int indent, const char *text)
{
	fputs(terminal_tint(terminal, tint), stdout);
	while (*text) {
		const size_t word = strcspn(text, " ");
		const bool first = column <= indent;

		if (terminal->columns > 0 && !first && column + 1 + word > terminal->columns) {
			printf("\n%*s", (int)indent, "");
			column = indent;
		} else if (!first) {
			putchar(' ');
			column++;
		}
		put_bytes(text, word);
		column += (unsigned int)word;
		text += word;
		text += strspn(text, " ");
	}
	fputs(terminal_plain(terminal, tint), stdout);
	return column;
}
