/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Runs a policy's feature code over rows of observations: each is a flag that an episode begins,
 * then what was observed. Writes what the model sees, and its class.
 *
 * Compiled with MODEL, OBSERVE (headers), MEMORY, BEGIN, OBSERVE_ONE, CLASSIFY, OBSERVED, FEATURES.
 */
#include <stdio.h>
#include <stdlib.h>

#include MODEL
#include OBSERVE

int main(void)
{
	int32_t row[1 + OBSERVED], answer[FEATURES + 1];
	struct MEMORY *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return 1;
	while (fread(row, sizeof(row), 1, stdin) == 1) {
		if (row[0])
			BEGIN(memory);
		OBSERVE_ONE(memory, row + 1, answer);
		answer[FEATURES] = CLASSIFY(answer);
		if (fwrite(answer, sizeof(answer), 1, stdout) != 1)
			return 1;
	}
	free(memory);
	return 0;
}
