/* SPDX-License-Identifier: BSD-3-Clause */
/* Private symbols: those that drivers of other devices link with, files of sysfs, and conversions
 * between verbs' attributes and the structs of the kernel's commands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#include "fake_provider.h"
#include "private.h"
#include "test.h"

/* Declarations like those of a driver, whose parameters are ignored. */
void verbs_register_driver_34(const void *ops);
struct ibv_context *verbs_open_device(struct ibv_device *device, void *private_data);
int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *pd, void *cmd, size_t cmd_size,
		     void *resp, size_t resp_size);
int ibv_cmd_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int execute_ioctl(struct ibv_context *context, void *cmd);

TEST(register_driver__is_harmless)
{
	struct ibv_device **list;
	int num = 0;

	verbs_register_driver_34(&num);
	list = ibv_get_device_list(&num);
	assert_int_equal(num, 1);
	ibv_free_device_list(list);
	assert_false(verbs_allow_disassociate_destroy);
}

TEST(private__answers_that_it_does_nothing)
{
	struct ibv_pd pd = {.handle = 5};
	struct ibv_wc wc;

	errno = 0;
	assert_null(verbs_open_device(NULL, NULL));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_cmd_alloc_pd(NULL, &pd, NULL, 0, NULL, 0), EOPNOTSUPP);
	assert_int_equal(pd.handle, 5);
	assert_int_equal(execute_ioctl(NULL, NULL), EOPNOTSUPP);
	assert_true(ibv_cmd_poll_cq(NULL, 1, &wc) < 0);
}

static char dir[] = "/tmp/uroce-test-XXXXXX";

static void write_file(const char *name, const char *text)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int make_dir(TEST_STATE)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(TEST_STATE)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/file", dir);
	unlink(path);
	return rmdir(dir);
}

TEST_GROUP(make_dir, remove_dir);

TEST(get_sysfs_path__has_no_slash_at_its_end)
{
	setenv("SYSFS_PATH", "/tmp//", 1);
	assert_string_equal(ibv_get_sysfs_path(), "/tmp");
	setenv("SYSFS_PATH", "/other", 1);
	assert_string_equal(ibv_get_sysfs_path(), "/tmp");
}

TEST(read_sysfs_file__drops_the_newline)
{
	char buf[16];

	write_file("file", "hello\n");
	assert_int_equal(ibv_read_sysfs_file(dir, "file", buf, sizeof(buf)), 5);
	assert_string_equal(buf, "hello");
	assert_int_equal(ibv_read_sysfs_file(dir, "file", buf, 6), 5);
	assert_string_equal(buf, "hello");
}

TEST(read_sysfs_file__without_a_newline)
{
	char buf[16];

	write_file("file", "hello");
	assert_int_equal(ibv_read_sysfs_file(dir, "file", buf, sizeof(buf)), 5);
	assert_string_equal(buf, "hello");
}

TEST(read_sysfs_file__stays_in_its_buffer)
{
	char buf[8];

	memset(buf, 'x', sizeof(buf));
	write_file("file", "hello world\n");
	errno = 0;
	assert_int_equal(ibv_read_sysfs_file(dir, "file", buf, 4), -1);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(buf[4], 'x');
}

TEST(read_sysfs_file__fails_with_errno)
{
	char buf[8];

	errno = 0;
	assert_int_equal(ibv_read_sysfs_file(dir, "none", buf, sizeof(buf)), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(ibv_read_ibdev_sysfs_file(buf, sizeof(buf), NULL, "node_guid"), -1);
	assert_int_equal(errno, EOPNOTSUPP);
}

/* Fill an object with different bytes, so that exchanged fields are noticed. */
static void fill(void *object, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)object)[i] = (uint8_t)(i + 1);
}

static void assert_same_ah(const struct ibv_ah_attr *ah, const struct ib_uverbs_ah_attr *kern)
{
	assert_memory_equal(ah->grh.dgid.raw, kern->grh.dgid, 16);
	assert_int_equal(ah->grh.flow_label, kern->grh.flow_label);
	assert_int_equal(ah->grh.sgid_index, kern->grh.sgid_index);
	assert_int_equal(ah->grh.hop_limit, kern->grh.hop_limit);
	assert_int_equal(ah->grh.traffic_class, kern->grh.traffic_class);
	assert_int_equal(ah->dlid, kern->dlid);
	assert_int_equal(ah->sl, kern->sl);
	assert_int_equal(ah->src_path_bits, kern->src_path_bits);
	assert_int_equal(ah->static_rate, kern->static_rate);
	assert_int_equal(ah->is_global, kern->is_global);
	assert_int_equal(ah->port_num, kern->port_num);
}

TEST(copy_ah_attr__takes_every_field)
{
	struct ib_uverbs_ah_attr kern;
	struct ibv_ah_attr ah = {0};

	fill(&kern, sizeof(kern));
	ibv_copy_ah_attr_from_kern(&ah, &kern);
	assert_same_ah(&ah, &kern);
}

TEST(copy_qp_attr__takes_every_field)
{
	struct ib_uverbs_qp_attr kern;
	struct ibv_qp_attr qp = {0};

	fill(&kern, sizeof(kern));
	ibv_copy_qp_attr_from_kern(&qp, &kern);
	assert_same_ah(&qp.ah_attr, &kern.ah_attr);
	assert_same_ah(&qp.alt_ah_attr, &kern.alt_ah_attr);
	assert_int_equal(qp.qp_state, kern.qp_state);
	assert_int_equal(qp.cur_qp_state, kern.cur_qp_state);
	assert_int_equal(qp.path_mtu, kern.path_mtu);
	assert_int_equal(qp.path_mig_state, kern.path_mig_state);
	assert_int_equal(qp.qkey, kern.qkey);
	assert_int_equal(qp.rq_psn, kern.rq_psn);
	assert_int_equal(qp.sq_psn, kern.sq_psn);
	assert_int_equal(qp.dest_qp_num, kern.dest_qp_num);
	assert_int_equal(qp.qp_access_flags, kern.qp_access_flags);
	assert_int_equal(qp.cap.max_send_wr, kern.max_send_wr);
	assert_int_equal(qp.cap.max_recv_wr, kern.max_recv_wr);
	assert_int_equal(qp.cap.max_send_sge, kern.max_send_sge);
	assert_int_equal(qp.cap.max_recv_sge, kern.max_recv_sge);
	assert_int_equal(qp.cap.max_inline_data, kern.max_inline_data);
	assert_int_equal(qp.pkey_index, kern.pkey_index);
	assert_int_equal(qp.alt_pkey_index, kern.alt_pkey_index);
	assert_int_equal(qp.en_sqd_async_notify, kern.en_sqd_async_notify);
	assert_int_equal(qp.sq_draining, kern.sq_draining);
	assert_int_equal(qp.max_rd_atomic, kern.max_rd_atomic);
	assert_int_equal(qp.max_dest_rd_atomic, kern.max_dest_rd_atomic);
	assert_int_equal(qp.min_rnr_timer, kern.min_rnr_timer);
	assert_int_equal(qp.port_num, kern.port_num);
	assert_int_equal(qp.timeout, kern.timeout);
	assert_int_equal(qp.retry_cnt, kern.retry_cnt);
	assert_int_equal(qp.rnr_retry, kern.rnr_retry);
	assert_int_equal(qp.alt_port_num, kern.alt_port_num);
	assert_int_equal(qp.alt_timeout, kern.alt_timeout);
}

TEST(copy_path_rec__there_and_back)
{
	struct ib_user_path_rec kern, back = {0};
	struct ibv_sa_path_rec rec = {0};

	fill(&kern, sizeof(kern));
	kern.mtu = 4; /* `mtu` is one byte in the record, and a word in the command */
	ibv_copy_path_rec_from_kern(&rec, &kern);
	assert_memory_equal(rec.sgid.raw, kern.sgid, 16);
	assert_int_equal(rec.mtu, 4);
	assert_int_equal(rec.hop_limit, kern.hop_limit);
	assert_int_equal(rec.rate, kern.rate);
	ibv_copy_path_rec_to_kern(&back, &rec);
	assert_memory_equal(&back, &kern, sizeof(kern));
}
