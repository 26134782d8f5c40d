/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/both: dispatch.c and jumps.c. The test is the two libraries: it records which of
 * their functions is called. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "both.h"
#include "jumps.h"
#include "test.h"

#define RESULT 0x5a

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct both_calls both_ours, both_systems;
static bool systems_allow = true;
bool *both_systems_allow_disassociate = &systems_allow;

static struct ibv_device our_device = {.name = "uroce0"}, other_device = {.name = "rxe0"};
static const char *called, *called_of; /* the last call of a library, and the library */

const struct both_calls *both_calls_of(const struct ibv_device *device)
{
	return device == &our_device ? &both_ours : &both_systems;
}

static long record(const char *library, const char *name)
{
	called_of = library;
	called = name;
	return RESULT;
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define CALL(type, name, device, parameters, arguments)           \
	static type ours_##name parameters                        \
	{                                                         \
		return (type)(uintptr_t)record("ours", #name);    \
	}                                                         \
	static type systems_##name parameters                     \
	{                                                         \
		return (type)(uintptr_t)record("systems", #name); \
	}
#define CALL_VOID(name, device, parameters, arguments) \
	static void ours_##name parameters             \
	{                                              \
		record("ours", #name);                 \
	}                                              \
	static void systems_##name parameters          \
	{                                              \
		record("systems", #name);              \
	}
#include "calls.def"
#undef CALL
#undef CALL_VOID

extern bool verbs_allow_disassociate_destroy;
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
		       enum private_gid_type *type);

/* The exported functions of calls.def, called with a pointer and numbers. */
static const struct exported {
	const char *name;
	const char *device; /* how to get the device from the pointer */
	long (*call)(void *first, long second, long third, long fourth, long fifth, long sixth);
	bool is_void;
} exported[] = {
#define CALL(type, name, device, parameters, arguments) \
	{#name, #device, (void *)(uintptr_t)name, false},
#define CALL_VOID(name, device, parameters, arguments) \
	{#name, #device, (void *)(uintptr_t)name, true},
#include "calls.def"
#undef CALL
#undef CALL_VOID
};

static struct ibv_device *our_list[] = {&our_device, NULL}, *other_list[] = {&other_device, NULL};
static int freed_ours, freed_systems, failed_list;

static struct ibv_device **list_ours(int *count)
{
	*count = 1;
	errno = ENODEV;
	return failed_list & 1 ? NULL : our_list;
}

static struct ibv_device **list_systems(int *count)
{
	*count = 1;
	errno = ENOSYS;
	return failed_list & 2 ? NULL : other_list;
}

static void free_ours(struct ibv_device **list)
{
	assert_ptr_equal(list, our_list);
	freed_ours++;
}

static void free_systems(struct ibv_device **list)
{
	assert_ptr_equal(list, other_list);
	freed_systems++;
}

static void ack_ours(struct ibv_async_event *event)
{
	record("ours", "ack");
}

static void ack_systems(struct ibv_async_event *event)
{
	record("systems", "ack");
}

static int set_up(TEST_STATE)
{
#define CALL(type, name, device, parameters, arguments) \
	both_ours.name = ours_##name;                   \
	both_systems.name = systems_##name;
#define CALL_VOID(name, device, parameters, arguments) \
	CALL(void, name, device, parameters, arguments)
#include "calls.def"
#undef CALL
#undef CALL_VOID
	both_ours.ibv_get_device_list = list_ours;
	both_systems.ibv_get_device_list = list_systems;
	both_ours.ibv_free_device_list = free_ours;
	both_systems.ibv_free_device_list = free_systems;
	both_ours.ibv_ack_async_event = ack_ours;
	both_systems.ibv_ack_async_event = ack_systems;
	called = called_of = "";
	failed_list = freed_ours = freed_systems = 0;
	return 0;
}

TEST_FIXTURE(set_up, NULL);

/* Call a function with an object of a device. */
static void expect_call(const struct exported *function, struct ibv_device *device,
			const char *library)
{
	struct ibv_context context = {.device = device};
	/* The first field of every object of a context. */
	struct {
		struct ibv_context *context;
	} object = {&context};
	void *first = &object;
	long result;

	if (strcmp(function->device, "device") == 0)
		first = device;
	else if (strcmp(function->device, "context->device") == 0)
		first = &context;
	called = called_of = "";
	result = function->call(first, 0, 0, 0, 0, 0);
	assert_string_equal(called, function->name);
	assert_string_equal(called_of, library);
	if (!function->is_void)
		assert_int_equal((int)result, RESULT);
}

TEST(dispatch__the_library_of_the_device_is_called)
{
	assert_true(COUNT(exported) > 50);
	for (size_t i = 0; i < COUNT(exported); i++) {
		expect_call(&exported[i], &our_device, "ours");
		expect_call(&exported[i], &other_device, "systems");
	}
}

TEST(ibv_get_device_list__ours_come_first)
{
	struct ibv_device **list;
	int count = -1;

	list = ibv_get_device_list(&count);
	assert_non_null(list);
	assert_int_equal(count, 2);
	assert_ptr_equal(list[0], &our_device);
	assert_ptr_equal(list[1], &other_device);
	assert_null(list[2]);
	assert_true(verbs_allow_disassociate_destroy); /* as the system's */
	assert_int_equal(freed_ours + freed_systems, 0);
	ibv_free_device_list(list);
	assert_int_equal(freed_ours, 1);
	assert_int_equal(freed_systems, 1);
}

TEST(ibv_get_device_list__one_library_has_none)
{
	struct ibv_device **list;
	int count = -1;

	failed_list = 2;
	list = ibv_get_device_list(&count);
	assert_int_equal(count, 1);
	assert_ptr_equal(list[0], &our_device);
	assert_null(list[1]);
	ibv_free_device_list(list);
	failed_list = 1;
	list = ibv_get_device_list(NULL);
	assert_ptr_equal(list[0], &other_device);
	assert_null(list[1]);
	ibv_free_device_list(list);
	assert_int_equal(freed_ours, 1);
	assert_int_equal(freed_systems, 1);
	failed_list = 3;
	assert_null(ibv_get_device_list(&count));
	assert_int_equal(count, 0);
	assert_int_equal(errno, ENODEV);
	ibv_free_device_list(NULL);
}

TEST(ibv_ack_async_event__goes_to_the_object_s_library)
{
	struct ibv_context ours = {.device = &our_device}, other = {.device = &other_device};
	struct ibv_qp qp = {.context = &ours};
	struct ibv_srq srq = {.context = &other};
	struct ibv_cq cq = {.context = &other};
	struct ibv_wq wq = {.context = &ours};
	struct ibv_async_event event = {.element.qp = &qp, .event_type = IBV_EVENT_COMM_EST};

	ibv_ack_async_event(&event);
	assert_string_equal(called_of, "ours");
	event = (struct ibv_async_event){.element.srq = &srq,
					 .event_type = IBV_EVENT_SRQ_LIMIT_REACHED};
	ibv_ack_async_event(&event);
	assert_string_equal(called_of, "systems");
	event = (struct ibv_async_event){.element.wq = &wq, .event_type = IBV_EVENT_WQ_FATAL};
	ibv_ack_async_event(&event);
	assert_string_equal(called_of, "ours");
	event = (struct ibv_async_event){.element.cq = &cq, .event_type = IBV_EVENT_CQ_ERR};
	ibv_ack_async_event(&event);
	assert_string_equal(called_of, "systems");
	/* A port's event has no object. */
	called_of = "";
	event = (struct ibv_async_event){.element.port_num = 1,
					 .event_type = IBV_EVENT_PORT_ACTIVE};
	ibv_ack_async_event(&event);
	assert_string_equal(called_of, "");
}

static struct ibv_context *import_nothing(int cmd_fd)
{
	errno = EINVAL;
	return NULL;
}

static struct ibv_context imported;

static struct ibv_context *import_one(int cmd_fd)
{
	return cmd_fd == 7 ? &imported : NULL;
}

TEST(ibv_import_device__of_either_library)
{
	both_ours.ibv_import_device = import_one;
	both_systems.ibv_import_device = import_nothing;
	assert_ptr_equal(ibv_import_device(7), &imported);
	assert_null(ibv_import_device(8));
	assert_int_equal(errno, EINVAL);
	both_ours.ibv_import_device = import_nothing;
	both_systems.ibv_import_device = import_one;
	assert_ptr_equal(ibv_import_device(7), &imported);
}

static int sum(int one, int two, int three, int four, int five, int six, int seven, int eight)
{
	return one + 2 * two + 3 * three + 4 * four + 5 * five + 6 * six + 7 * seven + 8 * eight;
}

/* A driver's call with more arguments than there are registers. */
TEST(jump__passes_all_arguments)
{
	int (*call)(int, int, int, int, int, int, int, int);
	void execute_ioctl(void);

	jump_execute_ioctl = (void *)(uintptr_t)sum;
	call = (int (*)(int, int, int, int, int, int, int, int))(void *)(uintptr_t)execute_ioctl;
	assert_int_equal(call(1, 2, 3, 4, 5, 6, 7, 8), 204);
}
