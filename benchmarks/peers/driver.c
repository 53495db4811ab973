/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Asks a model about int32 rows: its answers as digits on stdout, then the shortest round's
 * nanoseconds per row on stderr. The model is a unit of its own, so that nothing is inlined into
 * the loop, for nobody.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "row.h"

int answer(ROW *x);

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv)
{
	long n = argc > 3 ? atol(argv[1]) : 0;
	long timed = argc > 3 ? atol(argv[2]) : 0, rounds = argc > 3 ? atol(argv[3]) : 0;
	int32_t *raw = malloc(n * COLUMNS * sizeof(*raw) + 1);
	ROW *rows = malloc(n * COLUMNS * sizeof(*rows) + 1);
	volatile long sink = 0;
	double best = 1e300;

	if (!n || !raw || !rows || fread(raw, COLUMNS * sizeof(*raw), n, stdin) != (size_t)n)
		return 2;
	for (long i = 0; i < n * COLUMNS; i++)
		SET(rows[i], raw[i]);
	for (long i = 0; i < n; i++)
		putchar('0' + answer(rows + i * COLUMNS));
	for (long r = 0; r < rounds; r++) {
		double start = now_ns(), each;
		long sum = 0;

		for (long i = 0; i < timed; i++)
			sum += answer(rows + i * COLUMNS);
		sink += sum;
		each = (now_ns() - start) / timed;
		if (each < best)
			best = each;
	}
	fprintf(stderr, "%f", best);
	free(rows);
	free(raw);
	return 0;
}
