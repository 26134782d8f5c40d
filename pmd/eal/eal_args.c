/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL's arguments: those that a port needs, and then the user's. */
#include "eal_args.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_lcore.h>

#define MIB (UINT64_C(1) << 20)
#define PLAIN_SPARE_MIB \
	64 /* EAL's own tables and the fragments of its heap, all taken at the start */
#define GIB_LESS_ONE "1023"	 /* MiB */
#define LIMITED_MAX  (512 * MIB) /* more memory could come near the limit */

static void __attribute__((format(printf, 2, 3)))
args_add(struct eal_args *args, const char *format, ...)
{
	va_list list;

	if (args->argc == EAL_ARGS_MAX)
		return;
	va_start(list, format);
	vsnprintf(args->text[args->argc], sizeof(args->text[0]), format, list);
	va_end(list);
	args->argv[args->argc] = args->text[args->argc];
	args->argc++;
}

/* List the CPUs of a set that EAL can name. Returns how many. */
static int list_cpus(const cpu_set_t *set, char *list, size_t size)
{
	size_t len = 0;
	int count = 0;

	list[0] = '\0';
	for (int cpu = 0; cpu < RTE_MAX_LCORE && len + 8 < size; cpu++) {
		if (!CPU_ISSET(cpu, set))
			continue;
		len += (size_t)snprintf(list + len, size - len, "%s%d", count ? "," : "", cpu);
		count++;
	}
	return count;
}

void eal_args_add_lcore(struct eal_args *args)
{
	char list[DEVARGS_TEXT_MAX];
	cpu_set_t set;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	if (list_cpus(&set, list, sizeof(list)) == 0) {
		/* EAL cannot name any CPU that the program may use. Use other CPUs for its start,
		 * if the program's cpuset has any. The footprint restores the affinity. */
		memset(&set, 0xff, sizeof(set));
		sched_setaffinity(0, sizeof(set), &set);
		CPU_ZERO(&set);
		sched_getaffinity(0, sizeof(set), &set);
		list_cpus(&set, list, sizeof(list));
	}
	args_add(args, "--lcores");
	args_add(args, "0@(%s)", list);
}

/* Limit each node to less than 1 GiB. A pool asks for pages of 1 GiB first, and a few buffers would
 * occupy a whole one. */
static void args_add_limit(struct eal_args *args)
{
	char list[RTE_MAX_NUMA_NODES * sizeof("," GIB_LESS_ONE)];
	size_t len = 0;

	for (int node = 0; node < RTE_MAX_NUMA_NODES; node++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s" GIB_LESS_ONE,
					node ? "," : "");
	args_add(args, "--socket-limit");
	args_add(args, "%s", list);
}

static void args_add_memory(struct eal_args *args, size_t memory_bytes, enum eal_pages pages,
			    bool shared)
{
	const bool huge = pages != EAL_PAGES_PLAIN;

	if (pages == EAL_PAGES_2_MIB && memory_bytes < LIMITED_MAX)
		args_add_limit(args);
	if (huge && !shared) {
		args_add(args, "--in-memory");
		args_add(args, "--single-file-segments");
	} else if (!huge) {
		args_add(args, "--no-huge");
		args_add(args, "--no-shconf");
		args_add(args, "-m");
		args_add(args, "%zu", (size_t)(memory_bytes / MIB) + PLAIN_SPARE_MIB);
	}
}

/* Return true if the user's options choose devices of buses. A list of devices to leave out chooses
 * all others. */
static bool options_choose_devices(const char *options)
{
	static const char *const names[] = {"-a", "-b", "--allow", "--block"};

	for (const char *word = options; *word; word += strcspn(word, " ")) {
		word += strspn(word, " ");
		for (size_t i = 0; i < RTE_DIM(names); i++) {
			if (strncmp(word, names[i], strlen(names[i])) == 0)
				return true;
		}
	}
	return false;
}

/* Add the user's options last: of most equal options EAL uses the last one. */
static void args_add_options(struct eal_args *args, const char *options)
{
	for (const char *word = options; *(word += strspn(word, " ")); word += strcspn(word, " "))
		args_add(args, "%.*s", (int)strcspn(word, " "), word);
}

static void args_add_devices(struct eal_args *args, const struct runtime_config *config)
{
	bool pci = config->eal && options_choose_devices(config->eal);

	for (size_t i = 0; i < config->device_count; i++) {
		const struct devargs *device = &config->devices[i];

		pci |= device->bus == DEVARGS_PCI;
		args_add(args, "-a");
		args_add(args, "%s%s%s", device->name, device->args[0] ? "," : "", device->args);
	}
	if (!pci)
		args_add(args, "--no-pci");
	if (!pci && !config->secondary) {
		/* Only hardware needs physical addresses; if there is hardware, EAL chooses the
		 * mode. */
		args_add(args, "--iova-mode=va");
	}
}

void eal_args_make(struct eal_args *args, const struct runtime_config *config, enum eal_pages pages)
{
	args->argc = 0;
	args_add(args, "%s", program_invocation_short_name);
	if (config->secondary)
		args_add(args, "--proc-type=secondary");
	else
		args_add_memory(args, config->memory_bytes, pages, config->shared);
	args_add_devices(args, config);
	if (!config->telemetry)
		args_add(args, "--no-telemetry");
	if (config->file_prefix) {
		args_add(args, "--file-prefix");
		args_add(args, "%s", config->file_prefix);
	}
	if (config->eal)
		args_add_options(args, config->eal);
}
