/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/mem/dmabuf.c. Where the kernel has udmabuf, or the vgem driver is loaded (modprobe
 * vgem), one works on a real buffer; everywhere a memory file stands for one, with the two system
 * calls wrapped by which it would show itself.
 */
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/magic.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include "env.h"

#include "ioctl_instead.h"
#include "mem/dmabuf.h"
#include "skipped.h"
#include "test.h"

#define BUFFER_PAGES 4
#define IOVA	     UINT64_C(0x7000000000)

static struct {
	int memory_fd;
	int fd;		/* of the buffer */
	bool disguised; /* memory_fd passes for a dma-buf */
	int sync_errno; /* what DMA_BUF_IOCTL_SYNC then answers */
	unsigned int started;
	unsigned int ended;
} buffer;

/* The linker sees these names if large-file support is on. */
int __real_fstatfs64(int fd, struct statfs *fs);
int __wrap_fstatfs64(int fd, struct statfs *fs);

int __wrap_fstatfs64(int fd, struct statfs *fs)
{
	const int rc = __real_fstatfs64(fd, fs);

	if (rc == 0 && buffer.disguised)
		fs->f_type = DMA_BUF_MAGIC;
	return rc;
}

static int sync_disguised(int fd, unsigned long request, void *arg)
{
	if (request != DMA_BUF_IOCTL_SYNC)
		return ioctl_real(fd, request, arg);
	if (buffer.sync_errno != 0) {
		errno = buffer.sync_errno;
		return -1;
	}
	if (((struct dma_buf_sync *)arg)->flags & DMA_BUF_SYNC_END)
		buffer.ended++;
	else
		buffer.started++;
	return 0;
}

static int set_up(void **state)
{
	if (env_set_up(state) != 0)
		return -1;
	memset(&buffer, 0, sizeof(buffer));
	buffer.memory_fd = memfd_create("buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (buffer.memory_fd < 0 ||
	    ftruncate(buffer.memory_fd, (off_t)(BUFFER_PAGES * env.page)) != 0)
		return -1;
	buffer.fd = buffer.memory_fd;
	return 0;
}

static int set_up_disguised(void **state)
{
	const int rc = set_up(state);

	buffer.disguised = true;
	ioctl_instead = sync_disguised;
	return rc;
}

/* A dma-buf of the memory file, or -1. */
static int create_udmabuf(void)
{
	const int driver = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	struct udmabuf_create create = {.flags = UDMABUF_FLAGS_CLOEXEC};
	int fd = -1;

	if (driver < 0)
		return -1;
	create.memfd = (uint32_t)buffer.memory_fd;
	create.size = BUFFER_PAGES * env.page;
	if (fcntl(buffer.memory_fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
		fd = ioctl(driver, UDMABUF_CREATE, &create);
	close(driver);
	return fd;
}

/* This structure is from the kernel's drm.h, which Debian's kernel headers lack. */
struct drm_version {
	int version[3];
	size_t name_len;
	char *name;
	size_t date_len;
	char *date;
	size_t desc_len;
	char *desc;
};

struct drm_create_dumb {
	uint32_t height;
	uint32_t width;
	uint32_t bpp;
	uint32_t flags;
	uint32_t handle;
	uint32_t pitch;
	uint64_t size;
};

struct drm_prime_handle {
	uint32_t handle;
	uint32_t flags;
	int32_t fd;
};

#define DRM_IOCTL_VERSION	     _IOWR('d', 0x00, struct drm_version)
#define DRM_IOCTL_CREATE_DUMB	     _IOWR('d', 0xb2, struct drm_create_dumb)
#define DRM_IOCTL_PRIME_HANDLE_TO_FD _IOWR('d', 0x2d, struct drm_prime_handle)

static bool is_vgem(int card)
{
	char name[5] = "";
	struct drm_version version = {.name = name, .name_len = sizeof(name) - 1};

	return ioctl(card, DRM_IOCTL_VERSION, &version) == 0 && strcmp(name, "vgem") == 0;
}

/* A dma-buf of the virtual graphics driver's, or -1. */
static int export_vgem(int card)
{
	struct drm_create_dumb create = {
		.width = (uint32_t)env.page / 4, .height = BUFFER_PAGES, .bpp = 32};
	struct drm_prime_handle prime = {.flags = O_CLOEXEC | O_RDWR, .fd = -1};

	if (ioctl(card, DRM_IOCTL_CREATE_DUMB, &create) != 0 ||
	    create.size != BUFFER_PAGES * env.page)
		return -1;
	prime.handle = create.handle;
	return ioctl(card, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime) == 0 ? prime.fd : -1;
}

static int create_vgem(void)
{
	int fd = -1;

	for (int i = 0; fd < 0 && i < 8; i++) {
		char path[32];
		int card;

		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		card = open(path, O_RDWR | O_CLOEXEC);
		if (card < 0)
			continue;
		if (is_vgem(card))
			fd = export_vgem(card);
		close(card);
	}
	return fd;
}

/* Open a real dma-buf; without a driver, buffer.fd is -1. */
static int set_up_real(void **state)
{
	if (set_up(state) != 0)
		return -1;
	buffer.fd = create_udmabuf();
	if (buffer.fd < 0)
		buffer.fd = create_vgem();
	return 0;
}

static int tear_down(void **state)
{
	ioctl_instead = NULL;
	if (buffer.fd >= 0 && buffer.fd != buffer.memory_fd)
		close(buffer.fd);
	close(buffer.memory_fd);
	return env_tear_down(state);
}

TEST_FIXTURE(set_up_disguised, tear_down);

static int reg(uint64_t offset, size_t length, uint64_t iova, unsigned int access, struct mr **mr)
{
	return dmabuf_register(env.pd, offset, length, iova, buffer.fd, access, mr);
}

static struct mr *region(uint64_t offset, size_t length, unsigned int access)
{
	struct mr *mr;

	assert_int_equal(reg(offset, length, IOVA + offset, access, &mr), 0);
	return mr;
}

static unsigned int open_descriptors(void)
{
	unsigned int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) != -1;
	return count;
}

TEST(dmabuf_register__what_is_no_dma_buf_is_refused, .setup = set_up)
{
	const int fd = buffer.fd, null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const unsigned int before = open_descriptors();
	struct mr *mr;

	assert_int_equal(reg(0, env.page, IOVA, 0, &mr), -EINVAL);
	buffer.fd = null;
	assert_int_equal(reg(0, env.page, IOVA, 0, &mr), -EINVAL);
	buffer.fd = -1;
	assert_int_equal(reg(0, env.page, IOVA, 0, &mr), -EBADF);
	buffer.fd = fd;
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(env.pd->users, 0);
	close(null);
}

TEST(dmabuf_register__access_is_checked)
{
	static const struct {
		unsigned int access;
		int rc;
	} cases[] = {
		{0, 0},
		{RW | IBV_ACCESS_REMOTE_ATOMIC, 0},
		{RW | IBV_ACCESS_RELAXED_ORDERING, 0},
		{IBV_ACCESS_OPTIONAL_RANGE, 0},
		{IBV_ACCESS_REMOTE_WRITE, -EINVAL},
		{IBV_ACCESS_REMOTE_ATOMIC, -EINVAL},
		{IBV_ACCESS_MW_BIND, -EINVAL},
		{IBV_ACCESS_ZERO_BASED, -EINVAL},
		{IBV_ACCESS_ON_DEMAND, -EINVAL},
		{IBV_ACCESS_HUGETLB, -EINVAL},
		{1u << 31, -EINVAL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr *mr;

		assert_int_equal(reg(0, 1, IOVA, cases[i].access, &mr), cases[i].rc);
		if (cases[i].rc == 0)
			mr_deregister(mr);
	}
	assert_int_equal(buffer.started, buffer.ended);
}

TEST(dmabuf_register__ranges_are_checked)
{
	const uint64_t size = BUFFER_PAGES * env.page;
	struct mr *mr;

	assert_int_equal(reg(0, size + 1, IOVA, 0, &mr), -EINVAL);
	assert_int_equal(reg(size, 1, IOVA, 0, &mr), -EINVAL);
	assert_int_equal(reg(1, size, IOVA + 1, 0, &mr), -EINVAL);
	assert_int_equal(reg(size + env.page, 1, IOVA, 0, &mr), -EINVAL);
	assert_int_equal(reg(UINT64_MAX - env.page + 1, env.page, 0, 0, &mr), -EINVAL);
	assert_int_equal(reg(env.page, SIZE_MAX, 0, 0, &mr), -EINVAL);
	assert_int_equal(reg(0, 0, IOVA, 0, &mr), -EINVAL);
	/* ibv_reg_dmabuf_mr(3): iova must have the page offset of offset. */
	assert_int_equal(reg(8, 8, IOVA, 0, &mr), -EINVAL);
	assert_int_equal(reg(0, 8, IOVA + 8, 0, &mr), -EINVAL);
	assert_int_equal(reg(0, 8, IOVA + 1, 0, &mr), -EINVAL);
	/* An iova that wraps. */
	assert_int_equal(reg(0, 2 * env.page, UINT64_MAX - env.page + 1, 0, &mr), -EINVAL);
	assert_int_equal(reg(0, env.page, UINT64_MAX - env.page + 1, 0, &mr), 0);
	mr_deregister(mr);
	assert_int_equal(reg(size - 1, 1, IOVA + size - 1, 0, &mr), 0);
	mr_deregister(mr);
	/* 0 is an address like others. */
	assert_int_equal(reg(0, size, 0, 0, &mr), 0);
	assert_int_equal(mr->iova, 0);
	mr_deregister(mr);
	/* A buffer without bytes is no error of lseek(2). */
	assert_int_equal(ftruncate(buffer.fd, 0), 0);
	errno = 0;
	assert_int_equal(reg(0, 1, IOVA, 0, &mr), -EINVAL);
}

TEST(dmabuf_register__reaches_the_buffer)
{
	const uint64_t size = BUFFER_PAGES * env.page, offset = env.page + 100;
	struct mr *mr;
	uint8_t *addr, *own;

	if (buffer.fd < 0) {
		skipped_for("no driver here makes dma-bufs (udmabuf)");
		skip();
	}
	own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, buffer.fd, 0);
	assert_ptr_not_equal(own, MAP_FAILED);
	assert_int_equal(reg(0, size + 1, IOVA, RW, &mr), -EINVAL);
	mr = region(offset, 2 * env.page, RW);
	memcpy(own + offset, "abc", 3);
	assert_int_equal(mr_resolve(env.pd, mr->key, IOVA + offset, 2 * env.page, RW, &addr),
			 MR_OK);
	assert_memory_equal(addr, "abc", 3);
	memcpy(addr + 2 * env.page - 3, "xyz", 3);
	assert_memory_equal(own + offset + 2 * env.page - 3, "xyz", 3);
	assert_int_equal(mr_resolve(env.pd, mr->key, IOVA + offset - 1, 1, 0, &addr),
			 MR_OUT_OF_RANGE);
	assert_int_equal(mr_resolve(env.pd, mr->key, IOVA + offset + 2 * env.page, 1, 0, &addr),
			 MR_OUT_OF_RANGE);
	mr_deregister(mr);
	assert_memory_equal(own + offset, "abc", 3);
	munmap(own, size);
}

TEST(dmabuf_register__reaches_a_real_buffer, .setup = set_up_real)
{
	dmabuf_register__reaches_the_buffer(state);
}

TEST(dmabuf_register__without_descriptors_is_enomem)
{
	const rlim_t before = env_limit_descriptors(0);
	struct mr *mr;
	const int rc = reg(0, 8, IOVA, RW, &mr);

	env_limit_descriptors(before);
	assert_int_equal(rc, -ENOMEM);
}

TEST(dmabuf_register__handles_faults_again)
{
	struct mr *mr;

	env_take_handler();
	mr = region(0, 8, RW);
	env_expect_handler();
	mr_deregister(mr);
}

/* A program may have closed its standard input. */
TEST(dmabuf_register__takes_the_first_descriptor)
{
	const int input = dup(STDIN_FILENO);

	close(STDIN_FILENO);
	errno = EINTR;
	assert_int_equal(mr_deregister(region(0, 8, RW)), 0);
	dup2(input, STDIN_FILENO);
	close(input);
}

TEST(dmabuf_register__keeps_the_buffer_and_gives_it_back)
{
	const unsigned int before = open_descriptors();
	struct mr *mr = region(8, 8, RW);
	unsigned char resident;
	uint8_t *addr, *page;

	close(buffer.fd);
	buffer.fd = -1;
	buffer.memory_fd = -1;
	assert_int_equal(mr_resolve(env.pd, mr->key, IOVA + 8, 8, RW, &addr), MR_OK);
	memset(addr, 1, 8);
	assert_int_equal(buffer.started, 1);
	assert_int_equal(buffer.ended, 0);
	/* The region holds one descriptor more, and the test one less. */
	assert_int_equal(open_descriptors(), before);
	page = addr - 8;
	assert_int_equal(mr_deregister(mr), 0);
	assert_int_equal(buffer.ended, 1);
	assert_int_equal(open_descriptors(), before - 1);
	assert_int_equal(mincore(page, env.page, &resident), -1);
	assert_int_equal(errno, ENOMEM);
}

TEST(dmabuf_register__a_buffer_that_may_not_be_written)
{
	char path[64];
	struct mr *mr;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", buffer.memory_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(dmabuf_register(env.pd, 0, 8, IOVA, fd, IBV_ACCESS_LOCAL_WRITE, &mr),
			 -EACCES);
	assert_int_equal(dmabuf_register(env.pd, 0, 8, IOVA, fd, IBV_ACCESS_REMOTE_READ, &mr), 0);
	mr_deregister(mr);
	close(fd);
}

/* A directory has a size and no mapping, as some exporters' buffers have none. */
TEST(dmabuf_register__a_buffer_that_cannot_be_mapped)
{
	const int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const unsigned int before = open_descriptors();
	struct mr *mr;

	if (lseek(fd, 0, SEEK_END) <= 0)
		skip();
	assert_int_equal(dmabuf_register(env.pd, 0, 1, IOVA, fd, 0, &mr), -EOPNOTSUPP);
	assert_int_equal(open_descriptors(), before);
	close(fd);
}

TEST(dmabuf_register__not_every_exporter_wants_to_know)
{
	const unsigned int before = open_descriptors();
	struct mr *mr;

	buffer.sync_errno = ENOTTY;
	mr_deregister(region(0, 8, 0));
	buffer.sync_errno = EIO;
	assert_int_equal(reg(0, 8, IOVA, 0, &mr), -EIO);
	assert_int_equal(open_descriptors(), before);
}

/* Count how often the buffer is mapped. */
static unsigned int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned int count = 0;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "memfd:buffer") != NULL;
	fclose(maps);
	return count;
}

TEST(dmabuf_register__a_full_table_is_enomem)
{
	struct mr *mrs[ENV_REGIONS], *mr;
	unsigned int before;

	for (size_t i = 0; i < ENV_REGIONS; i++)
		mrs[i] = region(0, 8, 0);
	before = open_descriptors();
	assert_int_equal(mappings(), ENV_REGIONS);
	assert_int_equal(reg(0, 8, IOVA, 0, &mr), -ENOMEM);
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(mappings(), ENV_REGIONS);
	assert_int_equal(buffer.started, ENV_REGIONS + 1);
	assert_int_equal(buffer.ended, 1);
	for (size_t i = 0; i < ENV_REGIONS; i++)
		mr_deregister(mrs[i]);
	assert_int_equal(buffer.ended, ENV_REGIONS + 1);
}

TEST(dmabuf_register__cannot_be_changed)
{
	struct mr *mr = region(0, env.page, RW);
	const struct mr_change changes[] = {
		{.flags = IBV_REREG_MR_CHANGE_PD, .pd = env.other_pd},
		{.flags = IBV_REREG_MR_CHANGE_ACCESS, .access = 0},
		{.flags = IBV_REREG_MR_CHANGE_TRANSLATION, .addr = env.memory, .length = 1},
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		assert_int_equal(mr_check_change(mr, &changes[i]), -EINVAL);
	mr_deregister(mr);
}
