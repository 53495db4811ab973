/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Feeds connections of SUBFLOWS subflows to an exported feature computation. Calls on stdin
 * (struct call, in time order, each connection begun by one of kind BEGIN); for each complete
 * window int64 numbers on stdout, COLUMNS a row: one row for each pair that has features
 * (connection, window, a, b, class, features) and one for the partition (connection, window, -1,
 * number of sets, verdict of all windows until then, group of each subflow). On stderr the bytes of the state and, with ROUNDS,
 * four times in ns: per call, and per features, class and partition of a window.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sbd_unit.h"

enum kind { BEGIN, SAMPLE, ACK };

struct call {
	uint64_t time_us;
	uint64_t acked_bytes;
	uint32_t rtt_us;
	int32_t ca_state;
	int32_t subflow; /* BEGIN: wifi */
	int32_t kind;
};

enum { KEPT = 8 /* windows to time */, HEAD = 5, TIMES = 4, LOST = -2 };

static size_t columns, features;

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

#if SUBFLOWS > 2
#define features_of unit_features
#define class_of unit_classify
#define partition_of unit_partition
#else
/* There is one pair, and each question takes the window: it is put back for the next one. */
static int features_of(void *s, int a, int b, int32_t *x)
{
	int found = unit_features(s, x);

	(void)a;
	(void)b;
	if (unit_ready(s))
		return LOST;
	if (found)
		unit_again(s);
	return found;
}

static int class_of(void *s, int a, int b)
{
	int class = unit_classify(s);

	(void)a;
	(void)b;
	if (unit_ready(s))
		return LOST;
	if (class >= 0)
		unit_again(s);
	return class;
}

static int partition_of(void *s, uint8_t *group)
{
	int class = unit_classify(s);

	if (class < 0)
		return -1;
	group[0] = 0;
	group[1] = class != 1;
	return 1 + group[1];
}
#endif

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
static int answer(void *s, int64_t connection, int64_t *out, int32_t *x)
{
	uint8_t group[SUBFLOWS] = { 0 };
	int sets, verdict;

	for (int a = 0; a < SUBFLOWS; a++) {
		for (int b = a + 1; b < SUBFLOWS; b++) {
			int class = class_of(s, a, b), found = features_of(s, b, a, x);

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
	verdict = unit_verdict(s);
	unit_again(s);
	sets = partition_of(s, group);
	row(out, connection, unit_window(s), -1, sets, verdict);
	for (int i = 0; i < SUBFLOWS; i++)
		out[HEAD + i] = group[i];
	fwrite(out, sizeof(*out), columns, stdout);
	return unit_ready(s) || features_of(s, 0, 1, x) || class_of(s, 0, 1) != -1 ||
	       partition_of(s, group) != -1;
}

static double shorter(double *best, double begun, size_t times)
{
	double now = now_ns(), each = (now - begun) / times;

	if (each < *best)
		*best = each;
	return now;
}

/*
 * The shortest of many rounds, which is what the machine does when nobody disturbs it, and of the
 * windows the dearest: the first ones of a connection may have less to look back on.
 */
static void measure(void *s, const struct call *calls, size_t n, void **kept, int windows,
		    int rounds, int32_t *x)
{
	double best[TIMES] = { 1e300 };
	uint8_t group[SUBFLOWS];

	for (int round = 0; round < rounds; round++) {
		double begun = now_ns();

		for (size_t i = 0; i < n; i++)
			feed(s, calls + i);
		shorter(best, begun, n);
	}
	for (int w = 0; w < windows; w++) {
		double mine[TIMES] = { 0, 1e300, 1e300, 1e300 };

		for (int round = 0; round < rounds; round++) {
			double begun;

			unit_again(kept[w]);
			begun = now_ns();
			features_of(kept[w], 0, 1, x);
			begun = shorter(mine + 1, begun, 1);
			class_of(kept[w], 0, 1);
			begun = shorter(mine + 2, begun, 1);
			partition_of(kept[w], group);
			shorter(mine + 3, begun, 1);
		}
		for (int i = 1; i < TIMES; i++)
			best[i] = mine[i] > best[i] ? mine[i] : best[i];
	}
	fprintf(stderr, "%.2f %.2f %.2f %.2f\n", best[0], best[1], best[2], best[3]);
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	int rounds = argc > 4 ? atoi(argv[4]) : 0, windows = 0, wrong = 0;
	struct call *calls = malloc(n * sizeof(*calls) + 1);
	void *s = malloc(unit_bytes()), *kept[KEPT];
	int64_t *out, connection = -1;
	int32_t *x;

	features = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	columns = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	out = malloc(columns * sizeof(*out) + 1);
	x = malloc(features * sizeof(*x) + 1);
	if (!features || columns < HEAD + features || columns < HEAD + SUBFLOWS || !calls || !s ||
	    !out || !x || fread(calls, sizeof(*calls), n, stdin) != n ||
	    (n && calls[0].kind != BEGIN)) {
		fprintf(stderr, "usage: sbd_driver CALLS FEATURES COLUMNS [ROUNDS] < calls\n");
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
		wrong = answer(s, connection, out, x);
	}
	if (wrong)
		fprintf(stderr, "a window was taken and still waits, or was lost before it was taken\n");
	else if (rounds)
		measure(s, calls, n, kept, windows, rounds, x);
	while (windows)
		free(kept[--windows]);
	free(calls);
	free(out);
	free(x);
	free(s);
	return wrong;
}
