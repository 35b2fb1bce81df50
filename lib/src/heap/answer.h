/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The answer of a confined child: numbers and call stacks, through a pipe. The parent does not
 * wait for it, and trusts nothing in it.
 */
#ifndef MW_HEAP_ANSWER_H
#define MW_HEAP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <memwatch/heap.h>

#define MW_ANSWER_TEXT_MAX   1024U
#define MW_ANSWER_FRAMES_MAX 64U

/* What has come so far. A zeroed structure is empty. */
struct mw_answer {
	char *bytes;
	size_t len, capacity;
	size_t taken;
};

/* A call stack of an answer. A zeroed structure is empty. */
struct mw_answer_stack {
	uint32_t nr;
	struct memwatch_heap_frame frames[MW_ANSWER_FRAMES_MAX];
	char *texts[MW_ANSWER_FRAMES_MAX][3]; /* function, file and module; owned */
};

/* In the child. */
void mw_answer_write_frame(FILE *out, const struct memwatch_heap_frame *frame);

/*
 * Reads what there is from @fd, which does not block. Returns 1 at the end of the answer, 0 if
 * there is more to come, or a negative errno.
 */
int mw_answer_read(struct mw_answer *answer, int fd);
void mw_answer_uninit(struct mw_answer *answer);

/* Splits @bytes off the answer. Returns false if it is not so long. */
bool mw_answer_take(struct mw_answer *answer, void *to, size_t bytes);

/* Splits the frames of a stack off. Returns 0, -EBADMSG or -ENOMEM. */
int mw_answer_take_stack(struct mw_answer *answer, uint32_t frames, struct mw_answer_stack *ret);
void mw_answer_stack_uninit(struct mw_answer_stack *stack);

#endif /* MW_HEAP_ANSWER_H */
