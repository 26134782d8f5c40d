/* SPDX-License-Identifier: BSD-3-Clause */
/* Cycles of a test per stage: a timer samples the running function, which is found by its address
 * among the symbols of the own file. */
#include "stages.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <rte_common.h>

static struct {
	struct symbol *list; /* sorted by address; the names are in the file, which stays mapped */
	size_t count;
	uintptr_t begin, end; /* of the code */
} symbols;

/* Get the load address of the first object, which is the program itself. */
static int find_base(struct dl_phdr_info *info, size_t size, void *base)
{
	(void)size;
	*(uintptr_t *)base = info->dlpi_addr;
	return 1;
}

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Strip folders: the symbol may hold the whole path of the source. */
static const char *name_without_folders(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_inside(size_t file_bytes, uint64_t offset, uint64_t bytes)
{
	return offset <= file_bytes && bytes <= file_bytes - offset;
}

static int symbols_take(const Elf64_Sym *from, size_t count, const char *names, size_t names_bytes,
			uintptr_t base)
{
	const char *source = "";

	symbols.list = calloc(count + 1, sizeof(symbols.list[0]));
	if (!symbols.list)
		return -ENOMEM;
	symbols.begin = UINTPTR_MAX;
	for (size_t i = 0; i < count; i++) {
		struct symbol *symbol = &symbols.list[symbols.count];

		if (from[i].st_name >= names_bytes)
			continue;
		/* The local symbols of a file follow its name. */
		if (ELF64_ST_TYPE(from[i].st_info) == STT_FILE)
			source = name_without_folders(names + from[i].st_name);
		if (ELF64_ST_TYPE(from[i].st_info) != STT_FUNC || from[i].st_value == 0)
			continue;
		symbol->begin = base + from[i].st_value;
		symbol->end = symbol->begin + from[i].st_size;
		symbol->name = names + from[i].st_name;
		symbol->source = ELF64_ST_BIND(from[i].st_info) == STB_LOCAL ? source : "";
		symbols.begin = symbol->begin < symbols.begin ? symbol->begin : symbols.begin;
		symbols.end = symbol->end > symbols.end ? symbol->end : symbols.end;
		symbols.count++;
	}
	qsort(symbols.list, symbols.count, sizeof(symbols.list[0]), compare_symbols);
	return symbols.count > 0 ? 0 : -ENOENT;
}

static int symbols_parse(const uint8_t *file, size_t bytes, uintptr_t base)
{
	const Elf64_Ehdr *elf = (const void *)file;
	const Elf64_Shdr *sections, *table, *names;

	if (bytes < sizeof(*elf) || memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 ||
	    elf->e_ident[EI_CLASS] != ELFCLASS64 ||
	    !is_inside(bytes, elf->e_shoff, (uint64_t)elf->e_shnum * sizeof(*sections)))
		return -ENOEXEC;
	sections = (const void *)(file + elf->e_shoff);
	for (unsigned int i = 0; i < elf->e_shnum; i++) {
		table = &sections[i];
		if (table->sh_type != SHT_SYMTAB || table->sh_link >= elf->e_shnum)
			continue;
		names = &sections[table->sh_link];
		if (!is_inside(bytes, table->sh_offset, table->sh_size) ||
		    !is_inside(bytes, names->sh_offset, names->sh_size))
			return -ENOEXEC;
		return symbols_take((const void *)(file + table->sh_offset),
				    table->sh_size / sizeof(Elf64_Sym),
				    (const char *)file + names->sh_offset, names->sh_size, base);
	}
	return -ENOENT;
}

int stages_read_symbols(void)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uintptr_t base = 0;
	struct stat stat;
	void *file;

	if (symbols.count > 0 || fd < 0 || fstat(fd, &stat) != 0) {
		if (fd >= 0)
			close(fd);
		return symbols.count > 0 ? 0 : -EIO;
	}
	file = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		return -errno;
	dl_iterate_phdr(find_base, &base);
	return symbols_parse(file, (size_t)stat.st_size, base);
}

bool stages_is_own(uintptr_t address)
{
	return address - symbols.begin < symbols.end - symbols.begin;
}

const struct symbol *stages_symbol(uintptr_t address)
{
	size_t low = 0, high = symbols.count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (symbols.list[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && address < symbols.list[low - 1].end ? &symbols.list[low - 1] : NULL;
}

#ifdef __x86_64__
#define CODE_OF(context)  ((uintptr_t)(context)->uc_mcontext.gregs[REG_RIP])
#define STACK_OF(context) ((const void *)(context)->uc_mcontext.gregs[REG_RSP])
#else
#define CODE_OF(context)  ((uintptr_t)(context)->uc_mcontext.pc)
#define STACK_OF(context) ((const void *)(context)->uc_mcontext.sp)
#endif

#define PERIOD_NS   200000
#define YIELD_BYTES 32
#define STACK_WORDS 96 /* words of the stack searched for the caller of a driver */

#define NAME_OF(name, meaning)	  #name,
#define MEANING_OF(name, meaning) meaning,
static const char *const names[] = {STAGES(NAME_OF)};
static const char *const meanings[] = {STAGES(MEANING_OF)};

static struct {
	timer_t timer;
	struct stages seen; /* written by the signal handler with relaxed atomics */
} sampler;

static int compare(const void *key, const void *row)
{
	const struct stage_of_function *a = key, *b = row;
	const int order = strcmp(a->source, b->source);

	return order != 0 ? order : strcmp(a->function, b->function);
}

static const struct stage_of_function *find(const char *source, const char *function)
{
	const struct stage_of_function key = {.source = source, .function = function};

	return bsearch(&key, stage_table, stage_table_count, sizeof(key), compare);
}

/* The linker makes functions local that no other program can name, and omits their source file. So
 * look up such names without a source, too. */
enum stage stages_of(const char *source, const char *function)
{
	const struct stage_of_function *row = find(source, function);

	if (!row)
		row = find("", function);
	return row ? row->stage : STAGE_other;
}

const char *stages_name(enum stage stage)
{
	return names[stage];
}

const char *stages_meaning(enum stage stage)
{
	return meanings[stage];
}

static enum stage stage_of_own(uintptr_t address)
{
	const struct symbol *symbol = stages_symbol(address);

	return symbol ? stages_of(symbol->source, symbol->name) : STAGE_other;
}

/* Return true inside sched_yield of the C library, which is a few instructions around a system
 * call. */
static bool is_yield(uintptr_t address)
{
	return address - (uintptr_t)sched_yield < YIELD_BYTES;
}

/*
 * Return the stage of a sample inside a library. A driver's receive and transmit functions have no
 * symbols here, and many callers use memcpy, so the stage is that of our function that called the
 * library. A stack word that looks like a return address into our code most likely is one.
 */
__attribute__((no_sanitize("address"))) static enum stage stage_of_caller(const uintptr_t *stack)
{
	for (size_t i = 0; i < STACK_WORDS; i++) {
		const enum stage stage =
			stages_is_own(stack[i]) ? stage_of_own(stack[i]) : STAGE_other;

		/* A memcpy that the transport calls is a copy. */
		if (stage == STAGE_transport)
			return STAGE_copy;
		if (stage != STAGE_other)
			return stage;
	}
	return STAGE_other;
}

/* Count a sample. The handler reads only constant memory and its own stack, so it may interrupt any
 * code. */
static void on_sample(int number, siginfo_t *info, void *data)
{
	const ucontext_t *context = data;
	const uintptr_t at = CODE_OF(context);
	const uintptr_t *stack = STACK_OF(context);
	enum stage stage;

	(void)number;
	(void)info;
	stage = stages_is_own(at) ? stage_of_own(at)
		: is_yield(at)	  ? STAGE_wait
				  : stage_of_caller(stack);
	__atomic_fetch_add(&sampler.seen.samples[stage], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&sampler.seen.count, 1, __ATOMIC_RELAXED);
}

int stages_begin(void)
{
	const struct sigaction action = {.sa_sigaction = on_sample,
					 .sa_flags = SA_SIGINFO | SA_RESTART};
	const struct itimerspec period = {.it_interval = {.tv_nsec = PERIOD_NS},
					  .it_value = {.tv_nsec = PERIOD_NS}};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
	int rc = stages_read_symbols();

	if (rc != 0)
		return rc;
	stages_clear();
	event._sigev_un._tid = gettid();
	if (sigaction(SIGPROF, &action, NULL) != 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &sampler.timer) != 0)
		return -errno;
	timer_settime(sampler.timer, 0, &period, NULL);
	return 0;
}

void stages_end(struct stages *stages)
{
	timer_delete(sampler.timer);
	stages_peek(stages);
}

void stages_clear(void)
{
	for (size_t i = 0; i < STAGE_COUNT; i++)
		__atomic_store_n(&sampler.seen.samples[i], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&sampler.seen.count, 0, __ATOMIC_RELAXED);
}

void stages_peek(struct stages *stages)
{
	stages->count = 0;
	for (size_t i = 0; i < STAGE_COUNT; i++) {
		stages->samples[i] = __atomic_load_n(&sampler.seen.samples[i], __ATOMIC_RELAXED);
		stages->count += stages->samples[i];
	}
}
