/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Who may read what the module reports about the processes of the host: the text files and
 * the notices. The mode of a file does not keep a container out, whose root may have user
 * id 0 of the host; so the reader must be in the initial namespaces.
 */
#ifndef _MW_ACCESS_H
#define _MW_ACCESS_H

#include <linux/cred.h>
#include <linux/types.h>
#include <linux/uidgid.h>

/* @gid: the group that may read, in the initial user namespace; U32_MAX: none */
void mw_access_init(u32 gid);

/* Not valid if there is none. */
kgid_t mw_access_group(void);

/* May the caller read? */
bool mw_access_may_read(void);

/* The same with the privileges @cred: of who has opened a file that the caller uses. */
bool mw_access_may_read_as(const struct cred *cred);

#endif /* _MW_ACCESS_H */
