/* SPDX-License-Identifier: BSD-3-Clause */
/* A folder of seed inputs. */
#include "corpus.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/fuzz-seeds-XXXXXX";

static void remove_folder(void)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[512];

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		unlink(path);
	}
	if (dir != NULL)
		closedir(dir);
	rmdir(folder);
}

FILE *corpus_file(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return fopen(path, "wb");
}

static void play_file(const char *path)
{
	static uint8_t bytes[1 << 20];
	FILE *file = fopen(path, "rb");

	if (file == NULL)
		return;
	LLVMFuzzerTestOneInput(bytes, fread(bytes, 1, sizeof(bytes), file));
	fclose(file);
}

static void play_all(void)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[512];

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (entry->d_name[0] != '.')
			play_file(path);
	}
	if (dir != NULL)
		closedir(dir);
}

/* Return true if the user replays one input, or if this process is a fork of the fuzzer. */
static bool plays_files(int argc, char **argv)
{
	struct stat st;

	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "-merge", 6) == 0 || strncmp(argv[i], "-help", 5) == 0)
			return true;
		if (argv[i][0] != '-' && stat(argv[i], &st) == 0 && S_ISREG(st.st_mode))
			return true;
	}
	return false;
}

void corpus_begin(int *argc, char ***argv, void (*write)(void), unsigned int (*report)(void))
{
	static char *more[64];

	if (*argc > 60 || plays_files(*argc, *argv))
		return;
	if (mkdtemp(folder) == NULL) {
		fprintf(stderr, "fuzz: no seeds: cannot make %s\n", folder);
		return;
	}
	atexit(remove_folder);
	write();
	play_all();
	if (report() > 0)
		exit(1);
	memcpy(more, *argv, (size_t)*argc * sizeof(more[0]));
	more[(*argc)++] = folder;
	*argv = more;
}
