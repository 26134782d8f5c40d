/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts how often cache lines move between threads. The compiler calls these functions before each
 * access of code that was compiled with -fsanitize=thread; here they take the place of that
 * sanitizer's own. A thread counts from lines_begin to lines_end. Each thread has a cache of
 * unlimited size. A line moves if a thread that has no copy reads it after it was written, or if a
 * thread writes it while another one has a copy. When the program ends, this prints a line for all,
 * and one for each line of memory that has moved:
 *
 *   threads THREADS messages MESSAGES lines LINES
 *   line USERS USES WRITES MOVES MODULE+OFFSET...
 *
 * The last fields are the places in the code where the last few moves happened. Accesses by inline
 * assembly, in DPDK's libraries and in the C library are not counted. lines.py builds and runs it.
 */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE_SHIFT  6
#define LINES_MAX   (1u << 18)
#define THREADS_MAX 64 /* bits of a word */
#define PLACES_MAX  4
#define ANY_ORDER   __ATOMIC_SEQ_CST

struct line {
	uintptr_t number; /* of the line in memory; 0: free; atomic */
	bool locked;	  /* atomic; protects all below */
	uint64_t users;	  /* a bit for each thread that has used it */
	uint64_t copies;  /* a bit for each thread that has a copy */
	uint64_t uses, writes, moves;
	void *places[PLACES_MAX];
};

static struct line lines[LINES_MAX];
static uint32_t line_count;    /* atomic */
static uint32_t thread_count;  /* atomic */
static uint64_t all_messages;  /* atomic */
static __thread uint64_t self; /* the bit of this thread; 0: it does not count */

void lines_begin(void);
void lines_end(uint64_t messages);

static void fail(const char *what)
{
	fprintf(stderr, "lines: %s\n", what);
	abort();
}

/* Find a line, or take a free place for it. */
static struct line *find(uintptr_t number)
{
	uint32_t i = (uint32_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 40) % LINES_MAX;
	uintptr_t found;

	for (;; i = (i + 1) % LINES_MAX) {
		found = __atomic_load_n(&lines[i].number, __ATOMIC_RELAXED);
		if (found == number)
			return &lines[i];
		if (found != 0)
			continue;
		if (__atomic_compare_exchange_n(&lines[i].number, &found, number, false, ANY_ORDER,
						ANY_ORDER)) {
			if (__atomic_add_fetch(&line_count, 1, __ATOMIC_RELAXED) == LINES_MAX / 2)
				fail("too many lines");
			return &lines[i];
		}
		if (found == number)
			return &lines[i];
	}
}

static void use(struct line *line, bool writes, void *place)
{
	const bool moves = writes ? (line->copies & ~self) != 0
				  : (line->copies & self) == 0 && line->writes != 0;

	line->uses++;
	line->writes += writes;
	line->users |= self;
	line->copies = writes ? self : line->copies | self;
	if (moves)
		line->places[line->moves++ % PLACES_MAX] = place;
}

static void count(const void *addr, size_t size, bool writes, void *place)
{
	uintptr_t number = (uintptr_t)addr >> LINE_SHIFT;
	const uintptr_t last = ((uintptr_t)addr + size - 1) >> LINE_SHIFT;

	for (; number <= last; number++) {
		struct line *line = find(number);

		while (__atomic_exchange_n(&line->locked, true, __ATOMIC_ACQUIRE))
			;
		use(line, writes, place);
		__atomic_store_n(&line->locked, false, __ATOMIC_RELEASE);
	}
}

static inline void look(const void *addr, size_t size, bool writes, void *place)
{
	if (self != 0 && size > 0)
		count(addr, size, writes, place);
}

void lines_begin(void)
{
	const uint32_t number = __atomic_fetch_add(&thread_count, 1, __ATOMIC_RELAXED);

	if (number >= THREADS_MAX)
		fail("too many threads");
	self = UINT64_C(1) << number;
}

void lines_end(uint64_t messages)
{
	self = 0;
	__atomic_fetch_add(&all_messages, messages, __ATOMIC_RELAXED);
}

static void print_line(const struct line *line)
{
	Dl_info info;

	printf("line %d %ju %ju %ju", __builtin_popcountll(line->users), (uintmax_t)line->uses,
	       (uintmax_t)line->writes, (uintmax_t)line->moves);
	for (int i = 0; i < PLACES_MAX; i++)
		if (line->places[i] && dladdr(line->places[i], &info) != 0)
			printf(" %s+%#tx", info.dli_fname,
			       (char *)line->places[i] - (char *)info.dli_fbase);
	printf("\n");
}

static void __attribute__((destructor)) print_all(void)
{
	if (all_messages == 0)
		return;
	printf("threads %u messages %ju lines %u\n", thread_count, (uintmax_t)all_messages,
	       line_count);
	for (uint32_t i = 0; i < LINES_MAX; i++)
		if (lines[i].moves > 0)
			print_line(&lines[i]);
}

/* ---- what the compiler calls ---- */
#define PLACE __builtin_return_address(0)

#define PLAIN(name, size, writes)                \
	void __tsan_##name(void *addr);          \
	void __tsan_##name(void *addr)           \
	{                                        \
		look(addr, size, writes, PLACE); \
	}

#define SIZES(size)                              \
	PLAIN(read##size, size, false)           \
	PLAIN(write##size, size, true)           \
	PLAIN(unaligned_read##size, size, false) \
	PLAIN(unaligned_write##size, size, true)

SIZES(1)
SIZES(2)
SIZES(4)
SIZES(8)
SIZES(16)

#define RANGE(name, writes)                                  \
	void __tsan_##name##_range(void *addr, size_t size); \
	void __tsan_##name##_range(void *addr, size_t size)  \
	{                                                    \
		look(addr, size, writes, PLACE);             \
	}

RANGE(read, false)
RANGE(write, true)

void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
	(void)caller;
}

void __tsan_func_exit(void)
{
}

#define CHANGE(bits, name)                                                            \
	uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *at,      \
						    uint##bits##_t value, int order); \
	uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *at,      \
						    uint##bits##_t value, int order)  \
	{                                                                             \
		(void)order;                                                          \
		look((const void *)at, sizeof(*at), true, PLACE);                     \
		return __atomic_##name(at, value, ANY_ORDER);                         \
	}

#define EXCHANGE(bits, strength)                                                             \
	int __tsan_atomic##bits##_compare_exchange_##strength(                               \
		volatile uint##bits##_t *at, uint##bits##_t *expected, uint##bits##_t value, \
		int order, int failure);                                                     \
	int __tsan_atomic##bits##_compare_exchange_##strength(                               \
		volatile uint##bits##_t *at, uint##bits##_t *expected, uint##bits##_t value, \
		int order, int failure)                                                      \
	{                                                                                    \
		(void)order;                                                                 \
		(void)failure;                                                               \
		look((const void *)at, sizeof(*at), true, PLACE);                            \
		return __atomic_compare_exchange_n(at, expected, value, false, ANY_ORDER,    \
						   ANY_ORDER);                               \
	}

#define ATOMICS(bits)                                                                            \
	uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int order); \
	uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int order)  \
	{                                                                                        \
		(void)order;                                                                     \
		look((const void *)at, sizeof(*at), false, PLACE);                               \
		return __atomic_load_n(at, ANY_ORDER);                                           \
	}                                                                                        \
	void __tsan_atomic##bits##_store(volatile uint##bits##_t *at, uint##bits##_t value,      \
					 int order);                                             \
	void __tsan_atomic##bits##_store(volatile uint##bits##_t *at, uint##bits##_t value,      \
					 int order)                                              \
	{                                                                                        \
		(void)order;                                                                     \
		look((const void *)at, sizeof(*at), true, PLACE);                                \
		__atomic_store_n(at, value, ANY_ORDER);                                          \
	}                                                                                        \
	uint##bits##_t __tsan_atomic##bits##_exchange(volatile uint##bits##_t *at,               \
						      uint##bits##_t value, int order);          \
	uint##bits##_t __tsan_atomic##bits##_exchange(volatile uint##bits##_t *at,               \
						      uint##bits##_t value, int order)           \
	{                                                                                        \
		(void)order;                                                                     \
		look((const void *)at, sizeof(*at), true, PLACE);                                \
		return __atomic_exchange_n(at, value, ANY_ORDER);                                \
	}                                                                                        \
	CHANGE(bits, fetch_add)                                                                  \
	CHANGE(bits, fetch_sub)                                                                  \
	CHANGE(bits, fetch_and)                                                                  \
	CHANGE(bits, fetch_or)                                                                   \
	CHANGE(bits, fetch_xor)                                                                  \
	EXCHANGE(bits, strong)                                                                   \
	EXCHANGE(bits, weak)

ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_atomic_thread_fence(int order)
{
	(void)order;
	__atomic_thread_fence(ANY_ORDER);
}

void __tsan_atomic_signal_fence(int order)
{
	(void)order;
	__atomic_signal_fence(ANY_ORDER);
}
