/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs one program: zoo CASE [right]. check.py knows what uroce has to say about each wrong one. A
 * twin gets no complaint. */
#include "zoo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool wrong;

void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "zoo: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void list(const struct zoo_case *cases)
{
	for (; cases->name; cases++)
		puts(cases->name);
}

static bool run(const struct zoo_case *cases, const char *name, void (*set_up)(void))
{
	for (; cases->name; cases++) {
		if (strcmp(cases->name, name) != 0)
			continue;
		if (set_up)
			set_up();
		cases->run();
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		list(zoo_verbs);
		list(zoo_silent);
		list(zoo_check);
		list(zoo_cm);
		return 0;
	}
	wrong = argc == 2;
	if (run(zoo_verbs, argv[1], zoo_set_up) || run(zoo_silent, argv[1], zoo_set_up) ||
	    run(zoo_check, argv[1], zoo_set_up) || run(zoo_cm, argv[1], NULL))
		return 0;
	fprintf(stderr, "zoo: there is no '%s'\n", argv[1]);
	return 2;
}
