/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/view: serve.c and member.c. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "view_rig.h"
#include "view/member.h"
#include "view/view_serve.h"

static struct view_server server;
static struct view_state *view;
static struct view_member member;

static int set_up(void **state)
{
	assert_int_equal(rig_set_up(state), 0);
	server = (struct view_server){.root = rig_root, .watched = -1};
	server.table = view_table_create(rig_root, 0600, &server.entry);
	assert_non_null(server.table);
	rig_open(&server.entry);
	assert_int_equal(setenv(VIEW_VARIABLE, rig_dir, 1), 0);
	view = view_state_create(&server);
	assert_non_null(view);
	assert_true(view_member_join(&member));
	return 0;
}

static int tear_down(void **state)
{
	view_state_destroy(view);
	munmap(member.table, sizeof(*member.table));
	munmap(server.table, sizeof(*server.table));
	rig_close(&server.entry);
	unsetenv(VIEW_VARIABLE);
	return rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

TEST(view_state_poll__shows_published_facts)
{
	struct view_facts facts = rig_facts();

	assert_int_equal(view_state_poll(view), 1);
	rig_expect(RIG_PORT "state", NULL);
	view_member_tell(&member, &facts);
	assert_int_equal(view_state_poll(view), 1);
	assert_true(view_member_wait(&member));
	rig_expect(RIG_PORT "state", "4: ACTIVE\n");
	facts.state = IBV_PORT_DOWN;
	view_member_tell(&member, &facts);
	assert_int_equal(view_state_poll(view), 1);
	rig_expect(RIG_PORT "state", "1: DOWN\n");
}

TEST(view_state_poll__facts_that_are_being_written_wait)
{
	const struct view_facts facts = rig_facts();

	view_member_tell(&member, &facts);
	member.slot->sequence++;
	assert_int_equal(view_state_poll(view), 1);
	rig_expect(RIG_PORT "state", NULL);
	member.slot->sequence++;
	assert_int_equal(view_state_poll(view), 1);
	rig_expect(RIG_PORT "state", "4: ACTIVE\n");
}

TEST(view_state_poll__expected_facts_come_first)
{
	struct view_facts facts = rig_facts();
	struct view_server expecting = server;
	struct view_state *other;

	expecting.expected = &facts;
	expecting.expected_count = 1;
	other = view_state_create(&expecting);
	assert_non_null(other);
	rig_expect(RIG_PORT "state", "4: ACTIVE\n");
	rig_expect(RIG_PORT "hw_counters/rx_bytes", "0\n");
	view_state_destroy(other);
}

TEST(view_state_poll__a_device_of_another_name_replaces_the_first)
{
	struct view_facts facts = rig_facts();

	view_member_tell(&member, &facts);
	view_state_poll(view);
	strcpy(facts.name, "other0");
	view_member_tell(&member, &facts);
	view_state_poll(view);
	rig_expect(RIG_PORT "state", NULL);
	rig_expect(VIEW_CLASS "/other0/ports/1/state", "4: ACTIVE\n");
	rig_expect(VIEW_CLASS_VERBS "/uverbs3/ibdev", "other0\n");
}

TEST(view_state_poll__counters_are_sums_of_processes)
{
	const struct view_facts facts = rig_facts();
	struct counters counters = {0};
	struct view_member second;

	assert_true(view_member_join(&second));
	assert_ptr_not_equal(second.slot, member.slot);
	view_member_tell(&member, &facts);
	view_member_tell(&second, &facts);
	counters.value[COUNTER_tx_packets] = 4;
	view_member_count(&member, &counters);
	counters.value[COUNTER_tx_packets] = 10;
	view_member_count(&second, &counters);
	assert_int_equal(view_state_poll(view), 2);
	rig_expect(RIG_PORT "hw_counters/tx_packets", "14\n");
	counters.value[COUNTER_tx_packets] = 11;
	view_member_count(&second, &counters);
	view_state_poll(view);
	rig_expect(RIG_PORT "hw_counters/tx_packets", "15\n");
	munmap(second.table, sizeof(*second.table));
}

TEST(view_state_poll__counters_of_an_ended_process_stay)
{
	const struct view_facts facts = rig_facts();
	struct counters counters = {.value = {[COUNTER_tx_packets] = 3}};
	const pid_t child = fork();
	int status;

	if (child == 0) {
		struct view_member own;

		if (!view_member_join(&own))
			_exit(1);
		view_member_tell(&own, &facts);
		view_member_count(&own, &counters);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	view_member_tell(&member, &facts);
	view_member_count(&member, &counters);
	assert_int_equal(view_state_poll(view), 1);
	rig_expect(RIG_PORT "hw_counters/tx_packets", "6\n");
	assert_int_equal(view_state_poll(view), 1);
	rig_expect(RIG_PORT "hw_counters/tx_packets", "6\n");
	/* The slot of the ended process is free again. */
	assert_int_equal(member.table->slots[1].pid, 0);
}

/* Process 1 of a container may never wait for its children. */
TEST(view_state_poll__a_zombie_has_ended)
{
	const struct view_facts facts = rig_facts();
	const pid_t child = fork();
	siginfo_t info;

	if (child == 0) {
		struct view_member own;

		if (!view_member_join(&own))
			_exit(1);
		view_member_tell(&own, &facts);
		_exit(0);
	}
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_status, 0);
	view_member_tell(&member, &facts);
	assert_int_equal(view_state_poll(view), 1);
	assert_int_equal(member.table->slots[1].pid, 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Refuse pidfd_open to this process, as the seccomp filters of older container engines do. */
static void refuse_pidfd(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {RTE_DIM(filter), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		_exit(2);
}

TEST(view_state_poll__without_pidfds)
{
	volatile int32_t *pid = &server.table->slots[1].pid;
	const pid_t child = fork();
	siginfo_t info;
	pid_t polling;
	int status;

	if (child == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	polling = fork();
	if (polling == 0) {
		refuse_pidfd();
		*pid = child; /* a zombie */
		if (view_state_poll(view) != 1 || *pid != 0)
			_exit(3);
		*pid = 1;
		if (view_state_poll(view) != 2)
			_exit(4);
		/* As if the number had gone to a process that started later. */
		*pid = getppid();
		_exit(view_state_poll(view) == 1 && *pid == 0 ? 0 : 5);
	}
	assert_int_equal(waitpid(polling, &status, 0), polling);
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* A process that executes another program keeps its number. In a child of fork, as after an exec,
 * the room has not joined the view yet. */
TEST(view_member_join__leaves_the_slot_of_the_program_before)
{
	const struct view_facts facts = rig_facts();
	struct counters counters = {.value = {[COUNTER_tx_packets] = 3}};
	struct view_member before = {server.table, &server.table->slots[5]};
	const pid_t child = fork();
	int status;

	if (child == 0) {
		struct view_member own;

		/* A test that fails does not continue the stopped child. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		before.slot->pid = getpid();
		view_member_tell(&before, &facts);
		view_member_count(&before, &counters);
		if (!view_member_join(&own) || own.slot == before.slot)
			_exit(1);
		view_member_tell(&own, &facts);
		view_member_count(&own, &counters);
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(before.slot->pid, VIEW_PID_LEFT);
	assert_int_equal(view_state_poll(view), 2);
	assert_int_equal(before.slot->pid, 0);
	rig_expect(RIG_PORT "hw_counters/tx_packets", "6\n");
	kill(child, SIGCONT);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(view_state_poll(view), 1);
	rig_expect(RIG_PORT "hw_counters/tx_packets", "6\n");
}

TEST(view_member_join__ends_with_the_slots)
{
	struct view_member other;

	for (size_t i = 0; i < VIEW_SLOTS; i++)
		server.table->slots[i].pid = getpid();
	assert_false(view_member_join(&other));
	assert_null(other.slot);
	server.table->slots[VIEW_SLOTS - 1].pid = 0;
	assert_true(view_member_join(&other));
	assert_true(view_member_is_in(&other));
	server.table->slots[VIEW_SLOTS - 1].pid = 0;
	assert_false(view_member_is_in(&other));
	munmap(other.table, sizeof(*other.table));
}

/* Run the server in a process, as uroce-run does, until the watched process has ended. */
TEST(view_serve__ends_with_the_program)
{
	const struct view_facts facts = rig_facts();
	const pid_t program = fork();
	int ready[2], status;
	pid_t serving;
	char byte;

	if (program == 0) {
		pause();
		_exit(0);
	}
	assert_int_equal(pipe(ready), 0);
	serving = fork();
	if (serving == 0) {
		server.watched = program;
		view_serve(&server, ready[1]);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	view_member_tell(&member, &facts);
	/* A program waits for 10 s and goes on. The server may wait for a CPU for longer. */
	while (!view_member_wait(&member))
		assert_int_equal(waitpid(serving, &status, WNOHANG), 0);
	rig_expect(RIG_PORT "state", "4: ACTIVE\n");
	assert_int_equal(kill(program, SIGKILL), 0);
	assert_int_equal(waitpid(program, &status, 0), program);
	/* This process has a slot. */
	assert_int_equal(waitpid(serving, &status, WNOHANG), 0);
	__atomic_store_n(&member.slot->pid, 0, __ATOMIC_RELEASE);
	view_table_ring();
	assert_int_equal(waitpid(serving, &status, 0), serving);
	assert_int_equal(status, 0);
	close(ready[0]);
	close(ready[1]);
}
