// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The native protocol of the journal, as systemd documents it: a field is a line "KEY=value",
 * or, if the value contains a newline, the key, a newline, the length of the value as 64 bits
 * in little-endian order, the value, and a newline. So no name of a process can forge a field.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmds/events/journal.h"
#include "common/root.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* Others may have set the variable, and standard output may have been redirected since. */
bool mw_journal_is_stdout(void)
{
	const char *stream = secure_getenv("JOURNAL_STREAM");
	uint64_t device, inode;
	struct stat st;

	return stream && sscanf(stream, "%" SCNu64 ":%" SCNu64, &device, &inode) == 2 &&
	       !fstat(STDOUT_FILENO, &st) && st.st_dev == device && st.st_ino == inode;
}

int mw_journal_open(const struct mw_cli *cli)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, err;

	mw_root_path(cli, JOURNAL_SOCKET, address.sun_path, sizeof(address.sun_path));
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static void put_text(FILE *out, const char *key, const char *value)
{
	uint64_t len = htole64(strlen(value));

	if (!strchr(value, '\n')) {
		fprintf(out, "%s=%s\n", key, value);
		return;
	}
	fprintf(out, "%s\n", key);
	fwrite(&len, sizeof(len), 1, out);
	fprintf(out, "%s\n", value);
}

static void put_number(FILE *out, const char *key, uint64_t value)
{
	fprintf(out, "%s=%" PRIu64 "\n", key, value);
}

static void put_notice(FILE *out, const struct memwatch_notice_message *notice)
{
	put_number(out, "MEMWATCH_CPU", notice->cpu);
	put_number(out, "MEMWATCH_COUNT", notice->count);
	put_number(out, "MEMWATCH_VALUE", notice->value);
	put_number(out, "MEMWATCH_SUPPRESSED", notice->suppressed);
	put_number(out, "MEMWATCH_LOST", notice->lost);
}

static void put_alert(FILE *out, const struct memwatch_record_growth *alert,
		      const struct memwatch_growth_group *group)
{
	char comm[sizeof(alert->comm) + 1] = "";

	memcpy(comm, alert->comm, sizeof(alert->comm));
	if (group) {
		put_text(out, "MEMWATCH_CGROUP", group->path);
		put_text(out, "MEMWATCH_CLASS", memwatch_growth_class_name(group->kind));
	} else {
		put_number(out, "MEMWATCH_TGID", alert->tgid);
		put_text(out, "MEMWATCH_COMM", comm);
	}
	put_number(out, "MEMWATCH_CONFIDENCE", alert->confidence);
	put_number(out, "MEMWATCH_SIGNAL_BYTES", alert->signal_bytes);
}

static void put_event(FILE *out, const struct mw_event *event)
{
	put_text(out, "MESSAGE", event->sentence);
	put_number(out, "PRIORITY", event->priority);
	put_text(out, "SYSLOG_IDENTIFIER", "memwatchctl");
	put_text(out, "MEMWATCH_EVENT", event->name);
	put_text(out, "MEMWATCH_SOURCE", event->notice ? "module" : "growth");
	put_number(out, "MEMWATCH_TIME_NS", event->time_ns);
	if (event->notice)
		put_notice(out, event->notice);
	else
		put_alert(out, event->alert, event->group);
}

int mw_journal_send(int fd, const struct mw_event *event)
{
	char *entry = NULL;
	size_t size;
	FILE *out = open_memstream(&entry, &size);
	int err = 0;

	if (!out)
		return -ENOMEM;
	put_event(out, event);
	if (fclose(out))
		err = -ENOMEM;
	else if (send(fd, entry, size, MSG_NOSIGNAL) < 0)
		err = -errno;
	free(entry);
	return err;
}
