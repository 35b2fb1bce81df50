// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The answer of a confined child.
 */
#include "heap/answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"

#define ANSWER_MAX (256U << 10)

struct answer_frame {
	uint64_t address;
	uint32_t line, inlined;
	uint32_t lengths[3]; /* of function, file and module */
};

void mw_answer_write_frame(FILE *out, const struct memwatch_heap_frame *frame)
{
	const char *texts[3] = { frame->function, frame->file, frame->module };
	struct answer_frame head = { .address = frame->address,
				     .line = frame->line,
				     .inlined = frame->inlined };

	for (int i = 0; i < 3; i++)
		head.lengths[i] = (uint32_t)strnlen(texts[i], MW_ANSWER_TEXT_MAX);
	fwrite(&head, sizeof(head), 1, out);
	for (int i = 0; i < 3; i++)
		fwrite(texts[i], 1, head.lengths[i], out);
}

int mw_answer_read(struct mw_answer *answer, int fd)
{
	char part[4096];
	ssize_t n;

	while ((n = read(fd, part, sizeof(part))) > 0) {
		if (answer->len + (size_t)n > ANSWER_MAX)
			return -EBADMSG;
		if (mw_array_reserve(answer->bytes, answer->capacity, answer->len + (size_t)n))
			return -ENOMEM;
		memcpy(answer->bytes + answer->len, part, (size_t)n);
		answer->len += (size_t)n;
	}
	if (n && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n ? -errno : 1;
}

void mw_answer_uninit(struct mw_answer *answer)
{
	free(answer->bytes);
	*answer = (struct mw_answer){ 0 };
}

bool mw_answer_take(struct mw_answer *answer, void *to, size_t bytes)
{
	if (answer->len - answer->taken < bytes)
		return false;
	memcpy(to, answer->bytes + answer->taken, bytes);
	answer->taken += bytes;
	return true;
}

static int take_frame(struct mw_answer *answer, struct mw_answer_stack *stack)
{
	char **texts = stack->texts[stack->nr];
	struct answer_frame head;

	if (!mw_answer_take(answer, &head, sizeof(head)))
		return -EBADMSG;
	for (int i = 0; i < 3; i++) {
		if (head.lengths[i] > MW_ANSWER_TEXT_MAX ||
		    head.lengths[i] > answer->len - answer->taken)
			return -EBADMSG;
		texts[i] = strndup(answer->bytes + answer->taken, head.lengths[i]);
		if (!texts[i])
			return -ENOMEM;
		answer->taken += head.lengths[i];
	}
	stack->frames[stack->nr++] = (struct memwatch_heap_frame){
		.sz = sizeof(struct memwatch_heap_frame),
		.function = texts[0],
		.file = texts[1],
		.module = texts[2],
		.line = head.line,
		.inlined = head.inlined,
		.address = head.address
	};
	return 0;
}

int mw_answer_take_stack(struct mw_answer *answer, uint32_t frames, struct mw_answer_stack *ret)
{
	int err = frames > MW_ANSWER_FRAMES_MAX ? -EBADMSG : 0;

	for (uint32_t i = 0; !err && i < frames; i++)
		err = take_frame(answer, ret);
	return err;
}

void mw_answer_stack_uninit(struct mw_answer_stack *stack)
{
	for (uint32_t i = 0; i < MW_ANSWER_FRAMES_MAX; i++)
		for (int k = 0; k < 3; k++)
			free(stack->texts[i][k]);
	*stack = (struct mw_answer_stack){ 0 };
}
