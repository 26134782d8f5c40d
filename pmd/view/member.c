/* SPDX-License-Identifier: BSD-3-Clause */
/* A process's slot in the table of its view. */
#include "view/member.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Leave the slots that this process took before it executed the present program: nobody writes
 * their counters any more. */
static void leave_old_slots(struct view_table *table)
{
	static pid_t left; /* the process that has done so; a child of fork(2) is another one */
	const int32_t pid = getpid();

	if (left == pid)
		return;
	left = pid;
	for (size_t i = 0; i < VIEW_SLOTS; i++) {
		int32_t own = pid;

		__atomic_compare_exchange_n(&table->slots[i].pid, &own, VIEW_PID_LEFT, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	}
}

bool view_member_join(struct view_member *member)
{
	const int32_t pid = getpid();
	struct view_table *table = view_table_open();

	*member = (struct view_member){0};
	if (!table)
		return false;
	leave_old_slots(table);
	for (size_t i = 0; i < VIEW_SLOTS; i++) {
		struct view_slot *slot = &table->slots[i];
		int32_t free_pid = 0;

		/* Acquire: the server has cleared the slot before it freed it. */
		if (__atomic_load_n(&slot->pid, __ATOMIC_RELAXED) == 0 &&
		    __atomic_compare_exchange_n(&slot->pid, &free_pid, pid, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED)) {
			*member = (struct view_member){table, slot};
			return true;
		}
	}
	munmap(table, sizeof(*table));
	return false;
}

bool view_member_is_in(const struct view_member *member)
{
	return member->slot && __atomic_load_n(&member->slot->pid, __ATOMIC_RELAXED) == getpid();
}

void view_member_tell(struct view_member *member, const struct view_facts *facts)
{
	struct view_slot *slot = member->slot;
	const uint32_t sequence = slot->sequence | 1;

	__atomic_store_n(&slot->sequence, sequence, __ATOMIC_RELAXED);
	/* Orders that store before the writes that follow. Pairs with view_slot_read. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	slot->facts = *facts;
	/* Release: a reader of the even number sees all of the facts. */
	__atomic_store_n(&slot->sequence, sequence + 1, __ATOMIC_RELEASE);
	view_table_ring();
}

bool view_member_wait(const struct view_member *member)
{
	const struct timespec pause = {.tv_sec = 1};
	struct view_slot *slot = member->slot;

	for (int i = 0; i < VIEW_ANSWER_S; i++) {
		const uint32_t shown_sequence =
			__atomic_load_n(&slot->shown_sequence, __ATOMIC_ACQUIRE);

		if (shown_sequence == slot->sequence)
			return true;
		syscall(SYS_futex, &slot->shown_sequence, FUTEX_WAIT, shown_sequence, &pause, NULL,
			0);
	}
	return __atomic_load_n(&slot->shown_sequence, __ATOMIC_ACQUIRE) == slot->sequence;
}
