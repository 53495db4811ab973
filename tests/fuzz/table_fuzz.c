/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * libFuzzer target of the table reader: whatever loads must be safe to classify with, and give
 * the same answer twice. The mutator mends length and checksum most of the time, without which
 * nothing would get past them.
 */
#include <stdlib.h>
#include <string.h>

#include "cczoo_table.c"

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

/* Counts as a body of this length would have them, so that the nodes are looked at. */
static void mend_counts(uint8_t *data, size_t size)
{
	size_t body = size - HEAD_BYTES - CHECKSUM_BYTES;

	if (data[AT_KIND] == CCZOO_TABLE_LINEAR) {
		put_u32(data + AT_ITEMS, body / WEIGHT_BYTES);
		put_u32(data + AT_FEATURES, body / WEIGHT_BYTES);
	} else if (body / ROOT_BYTES > u32_at(data + AT_PARTS)) {
		put_u32(data + AT_ITEMS, (body - u32_at(data + AT_PARTS) * ROOT_BYTES) / NODE_BYTES);
	}
}

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
	put_u32(data + AT_SIZE, size);
	if (heal > 4)
		mend_counts(data, size);
	put_u32(data + size - CHECKSUM_BYTES, crc32c(data, size - CHECKSUM_BYTES));
	return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int32_t ends[] = { 0, 1, -1, 65536, -2147483647 - 1, 2147483647 };
	uint32_t features = size > AT_CUT ? u32_at(data + AT_FEATURES) : 1;
	struct cczoo_table table;
	int32_t *x;

	features = features < 2048 ? features : 1;
	if (cczoo_table_load(&table, data, size, features, NULL))
		return 0;
	/* Of just this size, so that a feature too many is seen. */
	x = malloc(features * sizeof(*x));
	for (size_t round = 0; round < sizeof(ends) / sizeof(*ends) + 2; round++) {
		int class;

		for (uint32_t i = 0; i < features; i++)
			x[i] = round < sizeof(ends) / sizeof(*ends) ?
				       ends[round] :
				       s32_at(data + (i * 12 + round * 4) % (size - 3));
		class = cczoo_table_classify(&table, x);
		if (class != (cczoo_table_score(&table, x) > table.cut) || class >> 1)
			abort();
	}
	free(x);
	return 0;
}
