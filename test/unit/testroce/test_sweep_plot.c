/* SPDX-License-Identifier: BSD-3-Clause */
/* The points of a figure as CSV and as gnuplot's script: their labels, medians and ranges. */
#include <stdlib.h>
#include <string.h>

#include "sweep_plot.h"
#include "test.h"

static const struct sweep_plot sizes = {.name = "bandwidth",
					.title = "Bandwidth",
					.x_title = "message",
					.unit = "Gb/s",
					.scale = SWEEP_BYTES,
					.values = {64, 65536, 1048576}};
static const struct sweep_plot losses = {.name = "loss",
					 .x_title = "lost",
					 .unit = "Gb/s",
					 .scale = SWEEP_PPM,
					 .values = {1, 30000}};
static const struct sweep_plot percentiles = {.name = "latency",
					      .x_title = "messages",
					      .unit = "us",
					      .scale = SWEEP_ONE_IN,
					      .values = {2, 1000}};
static const struct sweep_line lines[] = {
	{"WRITE", {{5, 4, 6.5}, {50, 40, 65}, {80, 79, 81}}},
	{"SEND, shared queue", {{3, 2, 4}, {30, 20, 40}, {70, 69, 71}}},
};

static char *text; /* what was written last */

static void write_csv(const struct sweep_plot *plot)
{
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	sweep_plot_csv(plot, lines, 2, file);
	fclose(file);
}

static void write_script(const struct sweep_plot *plot, unsigned int rounds)
{
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	sweep_plot_script(plot, lines, 2, rounds, file);
	fclose(file);
}

static int setup(TEST_STATE)
{
	text = NULL;
	return 0;
}

static int teardown(TEST_STATE)
{
	free(text);
	return 0;
}

TEST_FIXTURE(setup, teardown);

static bool has(const char *part)
{
	return strstr(text, part) != NULL;
}

static void check_label(enum sweep_scale scale, uint64_t value, const char *expected)
{
	char label[SWEEP_LABEL_SIZE];

	sweep_plot_label(scale, value, label);
	assert_string_equal(label, expected);
}

TEST(sweep_plot_size__is_the_number_of_values)
{
	const struct sweep_plot full = {.values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};

	assert_int_equal(sweep_plot_size(&sizes), 3);
	assert_int_equal(sweep_plot_size(&full), SWEEP_VALUES_MAX);
}

TEST(sweep_plot_label__bytes_have_a_unit)
{
	check_label(SWEEP_BYTES, 64, "64 B");
	check_label(SWEEP_BYTES, 1000, "1000 B");
	check_label(SWEEP_BYTES, 4096, "4 KiB");
	check_label(SWEEP_BYTES, 65536, "64 KiB");
	check_label(SWEEP_BYTES, 1048576, "1 MiB");
	check_label(SWEEP_BYTES, 1048576 + 1024, "1025 KiB");
}

TEST(sweep_plot_label__other_scales)
{
	check_label(SWEEP_NUMBER, 1024, "1024");
	check_label(SWEEP_PPM, 1, "0.0001 %");
	check_label(SWEEP_PPM, 30000, "3 %");
	check_label(SWEEP_ONE_IN, 2, "50 %");
	check_label(SWEEP_ONE_IN, 1000, "99.9 %");
	check_label(SWEEP_ONE_IN, 10000, "99.99 %");
}

TEST(sweep_plot_csv__has_median_and_range_of_each_point)
{
	write_csv(&sizes);
	assert_string_equal(
		text, "series,x,label,unit,median,least,most\n"
		      "\"WRITE\",64,64 B,Gb/s,5.000000,4.000000,6.500000\n"
		      "\"WRITE\",65536,64 KiB,Gb/s,50.000000,40.000000,65.000000\n"
		      "\"WRITE\",1048576,1 MiB,Gb/s,80.000000,79.000000,81.000000\n"
		      "\"SEND, shared queue\",64,64 B,Gb/s,3.000000,2.000000,4.000000\n"
		      "\"SEND, shared queue\",65536,64 KiB,Gb/s,30.000000,20.000000,40.000000\n"
		      "\"SEND, shared queue\",1048576,1 MiB,Gb/s,70.000000,69.000000,"
		      "71.000000\n");
}

TEST(sweep_plot_script__plots_medians_with_their_range)
{
	write_script(&sizes, 3);
	assert_true(has("$series1 << EOD\n64 3.000000 2.000000 4.000000\n65536 30.0"));
	assert_true(has("\nplot $series0 using 1:2:3:4 with yerrorlines title 'WRITE', "
			"$series1 using 1:2:3:4 with yerrorlines title 'SEND, shared queue'\n"));
	assert_true(has("medians of 3; bars from the least to the most"));
}

TEST(sweep_plot_script__does_not_call_one_run_a_median)
{
	write_script(&sizes, 1);
	assert_false(has("median"));
}

TEST(sweep_plot_script__labels_the_values)
{
	write_script(&sizes, 3);
	assert_true(has("\nset xtics ('64 B' 64, '64 KiB' 65536, '1 MiB' 1048576)\n"));
	assert_true(has("\nset xlabel 'message'\nset ylabel 'Gb/s'\nset logscale x 2\n"));
	assert_true(has("\nset xrange [64/1.3:1048576*1.3]\nset"));
	assert_true(has("\nset yrange [0:]\n"));
}

TEST(sweep_plot_script__doubles_the_percent_sign)
{
	write_script(&losses, 3);
	assert_true(has("\nset xtics ('0.0001 %%' 1, '3 %%' 30000)\n"));
}

TEST(sweep_plot_script__latency_is_logarithmic)
{
	write_script(&percentiles, 3);
	assert_true(has("\nset xtics ('50 %%' 2, '99.9 %%' 1000)\n"));
	assert_true(has("\nset logscale y\nset ytics (0.1, 0.2, 0.5, 1, 2, 5, 10, "));
	assert_false(has("yrange"));
}

/* Inside the plot it would cover lines. */
TEST(sweep_plot_script__the_key_is_below_the_plot)
{
	write_script(&sizes, 3);
	assert_true(has("\nset key outside bottom center horizontal Left reverse height 1\n"));
}

static void check_spread(const struct spread *spread, double least, double median, double most)
{
	assert_true(spread->least == least);
	assert_true(spread->median == median);
	assert_true(spread->most == most);
}

TEST(sweep_plot_spread__sorts)
{
	double values[] = {7, 1, 5, 100, 3};
	const struct spread spread = sweep_plot_spread(values, 5);

	check_spread(&spread, 1, 5, 100);
}

TEST(sweep_plot_spread__an_even_number_has_two_in_the_middle)
{
	double values[] = {4, 10, 1, 2};
	const struct spread spread = sweep_plot_spread(values, 4);

	check_spread(&spread, 1, 3, 10);
}

TEST(sweep_plot_spread__one_value)
{
	double value = 2.5;
	const struct spread spread = sweep_plot_spread(&value, 1);

	check_spread(&spread, 2.5, 2.5, 2.5);
}
