/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Feeds connections to an exported feature computation. Calls on stdin (struct call, in time
 * order, each connection begun by one of kind BEGIN); for each complete window int64 numbers on
 * stdout: connection, window, class, features. On stderr the bytes of the state and, with ROUNDS,
 * three times in ns: per sbd_sample (or sbd_ack), per sbd_features and per sbd_classify.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

size_t unit_bytes(void);
void unit_init(void *s, int wifi);
void unit_sample(void *s, int subflow, uint64_t time_us, uint32_t rtt_us, int ca_state);
void unit_ack(void *s, int subflow, uint64_t time_us, uint64_t acked_bytes);
int unit_ready(const void *s);
int unit_features(void *s, int32_t *x);
int unit_classify(void *s);
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

enum { KEPT = 8 }; /* windows to time */

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

static void shorter(double *best, double begun, size_t times)
{
	double each = (now_ns() - begun) / times;

	if (each < *best)
		*best = each;
}

/* The shortest of many rounds: what the machine does when nobody disturbs it. */
static void measure(void *s, const struct call *calls, size_t n, void **kept, int windows,
		    int rounds, int32_t *x)
{
	double best[3] = { 1e300, 1e300, 1e300 };

	for (int round = 0; round < rounds; round++) {
		double begun = now_ns();

		for (size_t i = 0; i < n; i++)
			feed(s, calls + i);
		shorter(best, begun, n);
		for (int w = 0; w < windows; w++) {
			begun = now_ns();
			unit_again(kept[w]);
			unit_features(kept[w], x);
			shorter(best + 1, begun, 1);
			begun = now_ns();
			unit_again(kept[w]);
			unit_classify(kept[w]);
			shorter(best + 2, begun, 1);
		}
	}
	fprintf(stderr, "%.2f %.2f %.2f\n", best[0], best[1], best[2]);
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	size_t features = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	int rounds = argc > 3 ? atoi(argv[3]) : 0, windows = 0;
	struct call *calls = malloc(n * sizeof(*calls) + 1);
	int32_t *x = malloc(features * sizeof(*x));
	int64_t *answer = malloc((features + 3) * sizeof(*answer)), connection = -1;
	void *s = malloc(unit_bytes()), *kept[KEPT];

	if (!features || !calls || !x || !answer || !s ||
	    fread(calls, sizeof(*calls), n, stdin) != n || (n && calls[0].kind != BEGIN)) {
		fprintf(stderr, "usage: sbd_driver CALLS FEATURES [ROUNDS] < calls\n");
		return 2;
	}
	fprintf(stderr, "%zu\n", unit_bytes());
	for (size_t i = 0; i < n; i++) {
		connection += calls[i].kind == BEGIN;
		feed(s, calls + i);
		if (!unit_ready(s))
			continue;
		if (rounds && windows < KEPT && (kept[windows] = malloc(unit_bytes())))
			memcpy(kept[windows++], s, unit_bytes());
		unit_features(s, x);
		answer[0] = connection;
		answer[1] = unit_window(s);
		if (unit_ready(s) || unit_features(s, x) || unit_classify(s) != -1) {
			fprintf(stderr, "a window was taken and still waits\n");
			return 1;
		}
		unit_again(s);
		answer[2] = unit_classify(s);
		for (size_t f = 0; f < features; f++)
			answer[3 + f] = x[f];
		fwrite(answer, sizeof(*answer), features + 3, stdout);
	}
	if (rounds)
		measure(s, calls, n, kept, windows, rounds, x);
	while (windows)
		free(kept[--windows]);
	free(calls);
	free(x);
	free(answer);
	free(s);
	return 0;
}
