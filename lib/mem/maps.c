/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads /proc/self/maps and smaps (proc(5)) to find what is mapped in a range, and with which
 * pages. */
#include "maps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A walk over the mappings, which the kernel lists by rising address. */
struct walk {
	uint64_t next; /* first byte that no mapping has covered so far */
	uint64_t last; /* last byte of the range */
	bool inside;   /* the current mapping overlaps the range */
	bool done;     /* every byte of the range was found */
};

/* Process the line that begins a mapping. -EFAULT for a gap before it, or missing permissions. */
static int take_mapping(struct walk *walk, uint64_t start, uint64_t end, const char *perms,
			bool write)
{
	walk->inside = start <= walk->last && end > walk->next;
	if (walk->done || end <= walk->next)
		return 0;
	if (start > walk->next || perms[0] != 'r' || (write && perms[1] != 'w'))
		return -EFAULT;
	walk->next = end;
	walk->done = end > walk->last;
	return 0;
}

static int take_line(struct walk *walk, const char *line, bool write, bool huge)
{
	uint64_t start, end, page_kb;
	char perms[5];

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, perms) == 3) {
		/* This mapping is past the range: what was not found until here is not mapped. */
		if (walk->done) {
			walk->inside = false;
			return 0;
		}
		return take_mapping(walk, start, end, perms, write);
	}
	if (huge && walk->inside && sscanf(line, "KernelPageSize: %" SCNu64 " kB", &page_kb) == 1 &&
	    page_kb * 1024 <= (uint64_t)sysconf(_SC_PAGESIZE))
		return -EINVAL;
	return 0;
}

int maps_no_answer(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM ? -ENOMEM : -ENOSYS;
}

static int check(const char *file, uintptr_t addr, size_t length, bool write, bool huge)
{
	struct walk walk = {.next = addr, .last = addr + (length - 1)};
	char *line = NULL;
	size_t size = 0;
	int rc = 0;
	FILE *f;

	if (length == 0)
		return 0;
	f = fopen(file, "re");
	if (!f)
		return maps_no_answer(errno);
	/* With `huge`, continue: the lines after the mapping's first one tell its page size. */
	while (rc == 0 && (!walk.done || (huge && walk.inside)) && getline(&line, &size, f) > 0)
		rc = take_line(&walk, line, write, huge);
	free(line);
	fclose(f);
	return rc == 0 && !walk.done ? -EFAULT : rc;
}

int maps_check_mapped(uintptr_t addr, size_t length, bool write)
{
	return check("/proc/self/maps", addr, length, write, false);
}

int maps_check_huge(uintptr_t addr, size_t length)
{
	return check("/proc/self/smaps", addr, length, false, true);
}
