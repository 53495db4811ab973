/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * libFuzzer target of the table reader, with NETWORK of a network's: whatever loads must be safe
 * to classify with, and give the same answer twice. The mutator mends length and checksum most of
 * the time, without which nothing would get past them.
 */
#include <stdlib.h>
#include <string.h>

#ifdef NETWORK
#include "cczoo_network.c"
#else
#include "cczoo_table.c"
#endif

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_u32(uint8_t *p, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		p[i] = value >> 8 * i;
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

#ifdef NETWORK
/* 1 to most as it is, and of anything else what is near. */
static uint32_t within(uint32_t value, uint32_t most)
{
	return value - 1 < most ? value : value % most + 1;
}

/* Cut or filled with zeros to the length that its counts ask for, so that all of it is looked at. */
static size_t mend_counts(uint8_t *data, size_t size, size_t most)
{
	uint32_t layers = within(u32_at(data + AT_PARTS), 4);
	uint32_t inputs = within(u32_at(data + AT_FEATURES), 16), width = 1;
	uint32_t entries = u32_at(data + AT_ITEMS) % 64;
	size_t wanted = HEAD_BYTES + layers * LAYER_BYTES + CHECKSUM_BYTES;

	if (most < wanted)
		return size;
	if (size < wanted)
		memset(data + size, 0, wanted - size);
	put_u32(data + AT_PARTS, layers);
	put_u32(data + AT_FEATURES, inputs);
	put_u32(data + AT_ITEMS, entries);
	wanted += entries ? CURVE_BYTES + entries * ENTRY_BYTES : 0;
	for (uint32_t i = 0; i < layers; i++) {
		uint8_t *head = data + HEAD_BYTES + i * LAYER_BYTES;

		width = within(head[0], 16);
		head[0] = width;
		head[1] = 0;
		if (i + 1 == layers)
			head[2] = head[3] = 0;
		wanted += width * (BIAS_BYTES + inputs * WEIGHT_BYTES);
		inputs = width;
	}
	if (width > 1 || data[AT_CLASSES] > 2)
		data[AT_CLASSES] = width;
	if (wanted > most)
		return size;
	if (size < wanted)
		memset(data + size, 0, wanted - size);
	return wanted;
}
#else
/* Counts as a body of this length would have them, so that the nodes are looked at. */
static size_t mend_counts(uint8_t *data, size_t size, size_t most)
{
	size_t body = size - HEAD_BYTES - CHECKSUM_BYTES;

	(void)most;
	if (data[AT_KIND] == CCZOO_TABLE_LINEAR) {
		put_u32(data + AT_ITEMS, body / WEIGHT_BYTES);
		put_u32(data + AT_FEATURES, body / WEIGHT_BYTES);
	} else if (body / ROOT_BYTES > u32_at(data + AT_PARTS)) {
		put_u32(data + AT_ITEMS, (body - u32_at(data + AT_PARTS) * ROOT_BYTES) / NODE_BYTES);
	}
	return size;
}
#endif

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
	uint32_t state = seed;
	int heal = next_random(&state) % 16;

	if (size > HEAD_BYTES && next_random(&state) % 2) {
		/* One field of the head or of a node: small numbers are what links and counts are. */
		uint8_t *field = data + next_random(&state) % ((size - 3) / 4) * 4;

		put_u32(field, next_random(&state) % 4 ? u32_at(field) + next_random(&state) % 5 - 2 :
							 next_random(&state) % 64);
	} else {
		size = LLVMFuzzerMutate(data, size, most);
	}
	if (!heal || size < HEAD_BYTES + CHECKSUM_BYTES)
		return size;
	memcpy(data, "CCZT\1", 6);
	if (heal > 4)
		size = mend_counts(data, size, most);
	put_u32(data + AT_SIZE, size);
	put_u32(data + size - CHECKSUM_BYTES, crc32c(data, size - CHECKSUM_BYTES));
	return size;
}

#ifdef NETWORK
/* A file that loads, with memory of just the size that it asks for. */
static void answer(const struct cczoo_network *network, const int32_t *x)
{
	int32_t *scratch = malloc(network->scratch * sizeof(*scratch));
	int64_t *scores = malloc(network->outputs * sizeof(*scores)), first;
	int class = cczoo_network_classify(network, x, scratch, scores);

	first = scores[0];
	for (uint32_t i = 0; i < network->scratch; i++)
		scratch[i] = -1;
	if (class < 0 || (uint32_t)class >= network->labels ||
	    class != cczoo_network_classify(network, x, scratch, scores) || first != scores[0])
		abort();
	free(scores);
	free(scratch);
}
#else
static void answer(const struct cczoo_table *table, const int32_t *x)
{
	int class = cczoo_table_classify(table, x);

	if (class != (cczoo_table_score(table, x) > table->cut) || class >> 1)
		abort();
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int32_t ends[] = { 0, 1, -1, 65536, -2147483647 - 1, 2147483647 };
	uint32_t features = size > AT_CUT ? u32_at(data + AT_FEATURES) : 1;
#ifdef NETWORK
	struct cczoo_network model;
#else
	struct cczoo_table model;
#endif
	int32_t *x;

	features = features < 2048 ? features : 1;
#ifdef NETWORK
	if (cczoo_network_load(&model, data, size, features, size > AT_CUT ? data[AT_CLASSES] : 2,
			       NULL))
		return 0;
#else
	if (cczoo_table_load(&model, data, size, features, NULL))
		return 0;
#endif
	/* Of just this size, so that a feature too many is seen. */
	x = malloc(features * sizeof(*x));
	for (size_t round = 0; round < sizeof(ends) / sizeof(*ends) + 2; round++) {
		for (uint32_t i = 0; i < features; i++)
			x[i] = round < sizeof(ends) / sizeof(*ends) ?
				       ends[round] :
				       s32_at(data + (i * 12 + round * 4) % (size - 3));
		answer(&model, x);
	}
	free(x);
	return 0;
}
