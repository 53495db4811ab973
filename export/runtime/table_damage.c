/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Damages a table file in many ways, all of which its reader must refuse: table_damage FILE
 * FEATURES LABELS BYTES. Each byte inverted in turn and each truncation, or as many, evenly spread,
 * as cost BYTES bytes of reading. On stdout: bytes inverted, truncations, how many were accepted.
 * Which reader: with NETWORK a network's, with SCORES that of several scores.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(NETWORK)
#include "cczoo_network.h"
#elif defined(SCORES)
#include "cczoo_scores.h"
#else
#include "cczoo_table.h"
#endif

static int accepts(const uint8_t *content, size_t size, uint32_t features, uint32_t labels)
{
	/* A copy of just this size, so that a sanitizer sees a read behind its end. */
	uint8_t *copy = malloc(size + !size);
	int error;

	(void)labels;
	memcpy(copy, content, size);
#if defined(NETWORK)
	error = cczoo_network_load(&(struct cczoo_network){ 0 }, copy, size, features, labels, NULL);
#elif defined(SCORES)
	error = cczoo_scores_load(&(struct cczoo_scores){ 0 }, copy, size, features, labels, NULL);
#else
	error = cczoo_table_load(&(struct cczoo_table){ 0 }, copy, size, features, NULL);
#endif
	free(copy);
	return !error;
}

int main(int argc, char **argv)
{
	size_t most = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
	uint32_t labels = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	uint32_t features = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	FILE *stream = argc > 4 ? fopen(argv[1], "rb") : NULL;
	size_t size, tries, step, inverted = 0, cut = 0, accepted = 0;
	uint8_t *file;

	if (!stream || fseek(stream, 0, SEEK_END) || !(size = ftell(stream)) ||
	    fseek(stream, 0, SEEK_SET) || !(file = malloc(size)) ||
	    fread(file, 1, size, stream) != size || !accepts(file, size, features, labels)) {
		fprintf(stderr, "usage: table_damage FILE FEATURES LABELS BYTES, with a FILE that loads\n");
		return 2;
	}
	tries = most / size + 1;
	step = tries < size ? size / tries : 1;
	for (size_t at = 0; at < size; at += step, inverted++) {
		file[at] ^= 0xff;
		accepted += accepts(file, size, features, labels);
		file[at] ^= 0xff;
	}
	for (size_t end = 0; end < size; end += step, cut++)
		accepted += accepts(file, end, features, labels);
	printf("%zu %zu %zu\n", inverted, cut, accepted);
	free(file);
	fclose(stream);
	return 0;
}
