/* SPDX-License-Identifier: BSD-3-Clause */
/* Find the C library's calls that our calls replace. */
#include "real.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "implementation.h"

#define OWN_LIBRARIES 2

/* The address range of a library's code and data. */
struct range {
	uintptr_t within; /* an address that identifies the library */
	uintptr_t begin;
	uintptr_t end;
};

static struct real_calls calls;
static struct range own[OWN_LIBRARIES];

static void measure(struct dl_phdr_info *info, struct range *range)
{
	uintptr_t begin = UINTPTR_MAX, end = 0;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		const uintptr_t from = info->dlpi_addr + header->p_vaddr;

		if (header->p_type != PT_LOAD)
			continue;
		begin = from < begin ? from : begin;
		end = from + header->p_memsz > end ? from + header->p_memsz : end;
	}
	if (range->within >= begin && range->within < end) {
		range->begin = begin;
		range->end = end;
	}
}

static int measure_all(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (size_t i = 0; i < OWN_LIBRARIES; i++)
		measure(info, &own[i]);
	return 0;
}

static void find_all(void)
{
#define FIND(name) *(void **)&calls.name = dlsym(RTLD_NEXT, #name)
	REAL_CALLS(FIND)
#undef FIND
	own[0].within = (uintptr_t)dlsym(RTLD_DEFAULT, "rsocket");
	own[1].within = (uintptr_t)dlsym(RTLD_DEFAULT, "ibv_get_device_list");
	dl_iterate_phdr(measure_all, NULL);
}

const struct real_calls *real(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_all);
	return &calls;
}

bool real_is_own(const void *address)
{
	const uintptr_t at = (uintptr_t)address;

	(void)real();
	for (size_t i = 0; i < OWN_LIBRARIES; i++) {
		if (at >= own[i].begin && at < own[i].end)
			return true;
	}
	return uroce_private_has(address);
}
