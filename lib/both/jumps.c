/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that only jump to a function of the same name in one of the libraries. They are written
 * in assembly because no public header declares most of them, and some have a variable number of
 * arguments: a jump passes all registers on as they are.
 */
#include <stddef.h>

#include "jumps.h"

#if defined(__x86_64__)
#define JUMP(name) "endbr64\n\tjmp *jump_" #name "(%rip)\n"
#elif defined(__aarch64__)
/* The hint is "bti c". A procedure may change x16 on the way to another one. */
#define JUMP(name) \
	"hint #34\n\tadrp x16, jump_" #name "\n\tldr x16, [x16, :lo12:jump_" #name "]\n\tbr x16\n"
#else
#error "write the jump for this CPU"
#endif

#define OURS(name)                                                                       \
	void *jump_##name;                                                               \
	__asm__(".pushsection .text\n\t.balign 16\n\t.globl " #name "\n\t.type " #name   \
		", %function\n" #name ":\n\t" JUMP(name) "\t.size " #name ", . - " #name \
							 "\n\t.popsection");
#define SYSTEMS(name) OURS(name)
#include "jumps.def"
