// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The dynamic linker loads the profiler, unless there is none or it does not trust the user.
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cmds/heap/command.h"
#include "common/message.h"

/* As many scripts may be interpreters of one another. */
#define SCRIPTS_MAX 5

static bool find_file(const char *name, char *path, size_t size)
{
	const char *rest = getenv("PATH");

	if (strchr(name, '/'))
		return snprintf(path, size, "%s", name) < (int)size;
	for (rest = rest ? rest : "/bin:/usr/bin"; *rest;) {
		size_t len = strcspn(rest, ":");

		if (snprintf(path, size, "%.*s/%s", (int)len, rest, name) < (int)size &&
		    !access(path, X_OK))
			return true;
		rest += len + (rest[len] == ':');
	}
	return false;
}

/* Replaces the path of a script by that of its interpreter. */
static bool find_interpreter(int fd, char *path, size_t size)
{
	char line[PATH_MAX], *word = line + 2;
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);

	if (n < 2 || memcmp(line, "#!", 2))
		return false;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	word += strspn(word, " \t");
	return snprintf(path, size, "%.*s", (int)strcspn(word, " \t"), word) < (int)size;
}

/* Whether an ELF file for this machine asks for no dynamic linker. */
static bool is_static(int fd)
{
	Elf64_Phdr segment;
	Elf64_Ehdr head;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64)
		return false;
	for (unsigned int i = 0; i < head.e_phnum; i++) {
		if (pread(fd, &segment, sizeof(segment),
			  (off_t)(head.e_phoff + (uint64_t)i * head.e_phentsize)) !=
		    sizeof(segment))
			return false;
		if (segment.p_type == PT_INTERP)
			return false;
	}
	return true;
}

/* What kind of program runs with more privileges than its caller; it need not be readable. */
static const char *privileged_kind(const char *path)
{
	struct stat st;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return NULL;
	if (st.st_mode & S_ISUID && st.st_uid != getuid())
		return "is a setuid program";
	/* Without the permission to execute, the bit once meant mandatory locks. */
	if (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getgid())
		return "is a setgid program";
	if (getuid() && getxattr(path, "security.capability", NULL, 0) > 0)
		return "has capabilities of its own";
	return NULL;
}

static int refuse(const char *path, const char *kind, const char *hint)
{
	mw_error(MW_EXIT_UNSUPPORTED, path, "%s, so that nothing can be preloaded into it", kind);
	mw_hint("%s", hint);
	return MW_EXIT_UNSUPPORTED;
}

int heap_command_check(const char *name)
{
	bool is_script = true, without_linker = false;
	char path[PATH_MAX];
	const char *kind;

	if (!find_file(name, path, sizeof(path)))
		return 0;
	for (unsigned int n = 0; is_script && n < SCRIPTS_MAX; n++) {
		/* What cannot be read can be a program, but no script. */
		int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

		is_script = fd >= 0 && find_interpreter(fd, path, sizeof(path));
		without_linker = fd >= 0 && !is_script && is_static(fd);
		if (fd >= 0)
			close(fd);
	}
	if (without_linker)
		return refuse(path, "is linked statically", "link it without -static");
	kind = privileged_kind(path);
	return kind ? refuse(path, kind, "profile a copy of it that has no privileges") : 0;
}
