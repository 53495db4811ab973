/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Feeds connections to an exported feature computation for three and more subflows. Calls on stdin
 * as for sbd_driver.c; for each complete window int64 numbers on stdout, COLUMNS a row: one row
 * for each pair that has features (connection, window, a, b, class, features) and one for the
 * partition (connection, window, -1, number of sets, -1, group of each subflow). On stderr the
 * bytes of the state and, with ROUNDS, three times in ns: per sbd_sample (or sbd_ack), per
 * sbd_pair_classify and per sbd_partition.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

size_t unit_bytes(void);
int unit_subflows(void);
void unit_init(void *s, int wifi);
void unit_sample(void *s, int subflow, uint64_t time_us, uint32_t rtt_us, int ca_state);
void unit_ack(void *s, int subflow, uint64_t time_us, uint64_t acked_bytes);
int unit_ready(const void *s);
int unit_features(void *s, int a, int b, int32_t *x);
int unit_classify(void *s, int a, int b);
int unit_partition(void *s, uint8_t *group);
int64_t unit_window(const void *s);
void unit_again(void *s);

enum kind { BEGIN, SAMPLE, ACK };

struct call {
	uint64_t time_us;
	uint64_t acked_bytes;
	uint32_t rtt_us;
	int32_t ca_state;
	int32_t subflow; /* BEGIN: wifi */
	int32_t kind;
};

enum { KEPT = 8, HEAD = 5 };

static size_t columns, features;
static int subflows;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void feed(void *s, const struct call *c)
{
	if (c->kind == BEGIN)
		unit_init(s, c->subflow);
	else if (c->kind == SAMPLE)
		unit_sample(s, c->subflow, c->time_us, c->rtt_us, c->ca_state);
	else
		unit_ack(s, c->subflow, c->time_us, c->acked_bytes);
}

static void row(int64_t *out, int64_t connection, int64_t window, int a, int b, int class)
{
	memset(out, 0, columns * sizeof(*out));
	out[0] = connection;
	out[1] = window;
	out[2] = a;
	out[3] = b;
	out[4] = class;
}

/* All that the window that waits has; what was taken must not wait any more. */
static int answer(void *s, int64_t connection, int64_t *out, int32_t *x, uint8_t *group)
{
	int sets;

	for (int a = 0; a < subflows; a++) {
		for (int b = a + 1; b < subflows; b++) {
			int class = unit_classify(s, a, b), found = unit_features(s, b, a, x);

			if (found != (class >= 0) || !unit_ready(s))
				return 1;
			if (!found)
				continue;
			row(out, connection, unit_window(s), a, b, class);
			for (size_t f = 0; f < features; f++)
				out[HEAD + f] = x[f];
			fwrite(out, sizeof(*out), columns, stdout);
		}
	}
	sets = unit_partition(s, group);
	row(out, connection, unit_window(s), -1, sets, -1);
	for (int i = 0; i < subflows; i++)
		out[HEAD + i] = group[i];
	fwrite(out, sizeof(*out), columns, stdout);
	return unit_ready(s) || unit_partition(s, group) != -1 || unit_classify(s, 0, 1) != -1;
}

static void shorter(double *best, double begun, size_t times)
{
	double each = (now_ns() - begun) / times;

	if (each < *best)
		*best = each;
}

/* The shortest of many rounds: what the machine does when nobody disturbs it. */
static void measure(void *s, const struct call *calls, size_t n, void **kept, int windows,
		    int rounds, uint8_t *group)
{
	double best[3] = { 1e300, 1e300, 1e300 };

	for (int round = 0; round < rounds; round++) {
		double begun = now_ns();

		for (size_t i = 0; i < n; i++)
			feed(s, calls + i);
		shorter(best, begun, n);
		for (int w = 0; w < windows; w++) {
			unit_again(kept[w]);
			begun = now_ns();
			unit_classify(kept[w], 0, 1);
			shorter(best + 1, begun, 1);
			begun = now_ns();
			unit_partition(kept[w], group);
			shorter(best + 2, begun, 1);
		}
	}
	fprintf(stderr, "%.2f %.2f %.2f\n", best[0], best[1], best[2]);
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	int rounds = argc > 4 ? atoi(argv[4]) : 0, windows = 0, wrong = 0;
	struct call *calls = malloc(n * sizeof(*calls) + 1);
	void *s = malloc(unit_bytes()), *kept[KEPT];
	int64_t *out, connection = -1;
	uint8_t *group;
	int32_t *x;

	features = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	columns = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	subflows = unit_subflows();
	out = malloc(columns * sizeof(*out) + 1);
	x = malloc(features * sizeof(*x) + 1);
	group = malloc(subflows);
	if (!features || columns < HEAD + features || columns < HEAD + (size_t)subflows || !calls ||
	    !s || !out || !x || !group || fread(calls, sizeof(*calls), n, stdin) != n ||
	    (n && calls[0].kind != BEGIN)) {
		fprintf(stderr, "usage: sbd_partition_driver CALLS FEATURES COLUMNS [ROUNDS] < calls\n");
		return 2;
	}
	fprintf(stderr, "%zu\n", unit_bytes());
	for (size_t i = 0; i < n && !wrong; i++) {
		connection += calls[i].kind == BEGIN;
		feed(s, calls + i);
		if (!unit_ready(s))
			continue;
		if (rounds && windows < KEPT && (kept[windows] = malloc(unit_bytes())))
			memcpy(kept[windows++], s, unit_bytes());
		wrong = answer(s, connection, out, x, group);
	}
	if (wrong)
		fprintf(stderr, "a window was taken and still waits, or was lost before it was taken\n");
	else if (rounds)
		measure(s, calls, n, kept, windows, rounds, group);
	while (windows)
		free(kept[--windows]);
	free(calls);
	free(out);
	free(x);
	free(group);
	free(s);
	return wrong;
}
