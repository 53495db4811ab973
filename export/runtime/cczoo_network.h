/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Reads a feed-forward network from a table file (.cct of kind 5): two classes, more of them,
 * actions or real values. As cczoo_table.h: cczoo_network_load() checks everything once, the rest
 * checks nothing. Memory for what its layers answer comes from the caller.
 */
#ifndef CCZOO_NETWORK_H
#define CCZOO_NETWORK_H

#include "cczoo_table.h"

#define CCZOO_NETWORK_KIND 5
#define CCZOO_NETWORK_MAX_LABELS 255
#define CCZOO_NETWORK_MAX_LAYERS 16
#define CCZOO_NETWORK_MAX_WIDTH 1024
#define CCZOO_NETWORK_MAX_ENTRIES (1u << 17)
/* The most that scratch of a loaded file can be. */
#define CCZOO_NETWORK_MAX_SCRATCH (2 * CCZOO_NETWORK_MAX_WIDTH)

/* A loaded file; points into it. Fields are the reader's own but for those named here. */
struct cczoo_network {
	const uint8_t *layers;
	const uint8_t *entries;
	const uint8_t *sums;
	const uint8_t *model_hash; /* CCZOO_TABLE_HASH_BYTES of them: which model this is */
	int64_t cut; /* where two labels have one score: above it is class 1 */
	uint32_t layer_count;
	uint32_t features;
	uint32_t labels;
	uint32_t outputs; /* scores: one per label, or one for two labels */
	uint32_t places; /* fractional bits of a score */
	uint32_t scratch; /* int32_t numbers of memory that an answer takes; may be 0 */
	uint32_t entry_count;
	uint32_t q, mul, down, frac;
};

/* As cczoo_table_load(), for code that expects so many labels. */
int cczoo_network_load(struct cczoo_network *network, const uint8_t *file, size_t size,
		       uint32_t features, uint32_t labels, const uint8_t *schema_hash);

/*
 * Scores of one observation, network->outputs of them. Nobody else may use scratch, of
 * network->scratch numbers, meanwhile; what stands in it before and afterwards means nothing.
 */
void cczoo_network_scores(const struct cczoo_network *network, const int32_t *x, int32_t *scratch,
			  int64_t *scores);

/* The same, and the class: by the cut of one score, or the label with the first largest. */
int cczoo_network_classify(const struct cczoo_network *network, const int32_t *x,
			   int32_t *scratch, int64_t *scores);

#endif
