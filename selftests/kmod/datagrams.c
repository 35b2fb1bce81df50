// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * datagrams PATH: makes a Unix socket at PATH, as that of the journal is, prints "ready", and
 * then each datagram and a line "--", until it is killed.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	static char buffer[65536];
	ssize_t len;

	if (argc != 2 || strlen(argv[1]) >= sizeof(address.sun_path))
		return 2;
	strcpy(address.sun_path, argv[1]);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		perror("datagrams");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while ((len = recv(fd, buffer, sizeof(buffer), 0)) >= 0) {
		fwrite(buffer, (size_t)len, 1, stdout);
		puts("--");
		fflush(stdout);
	}
	return 1;
}
