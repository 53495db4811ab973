/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Reads trees with several scores from a table file (.cct of kind 4): classes, actions or real
 * values. As cczoo_table.h: cczoo_scores_load() checks everything once, the rest checks nothing.
 */
#ifndef CCZOO_SCORES_H
#define CCZOO_SCORES_H

#include "cczoo_table.h"

#define CCZOO_SCORES_KIND 4
#define CCZOO_SCORES_MAX_LABELS 255

/* A loaded file; points into it. */
struct cczoo_scores {
	struct cczoo_table table; /* its trees */
	const uint8_t *into; /* per tree the label that it adds to, where there are no rows */
	const uint8_t *rows; /* per row what a leaf adds to each label's score */
	uint32_t row_count;
	uint32_t labels;
	uint32_t places; /* fractional bits of a score */
};

/* As cczoo_table_load(), for code that expects so many labels. */
int cczoo_scores_load(struct cczoo_scores *model, const uint8_t *file, size_t size,
		      uint32_t features, uint32_t labels, const uint8_t *schema_hash);

/* Scores of one observation, one per label. */
void cczoo_scores(const struct cczoo_scores *model, const int32_t *x, int64_t *scores);

/* The same, and the label with the first largest score. */
int cczoo_scores_classify(const struct cczoo_scores *model, const int32_t *x, int64_t *scores);

#endif
