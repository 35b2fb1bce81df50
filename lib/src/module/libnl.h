/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * libnl-3 and libnl-genl-3, which are loaded when notices are read first.
 */
#ifndef MW_MODULE_LIBNL_H
#define MW_MODULE_LIBNL_H

#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include "base/library.h"

/* The functions that are used. A further one is added here and below. */
#define MW_LIBNL_CALLS(X)                                                                          \
	X(genl_connect)                                                                            \
	X(genl_ctrl_resolve)                                                                       \
	X(genl_ctrl_resolve_grp)                                                                   \
	X(genl_send_simple)                                                                        \
	X(genlmsg_hdr)                                                                             \
	X(genlmsg_parse)                                                                           \
	X(genlmsg_valid_hdr)                                                                       \
	X(nl_geterror)                                                                             \
	X(nl_recvmsgs_default)                                                                     \
	X(nl_socket_add_memberships)                                                               \
	X(nl_socket_alloc)                                                                         \
	X(nl_socket_disable_seq_check)                                                             \
	X(nl_socket_free)                                                                          \
	X(nl_socket_get_fd)                                                                        \
	X(nl_socket_modify_cb)                                                                     \
	X(nl_socket_modify_err_cb)                                                                 \
	X(nl_socket_set_nonblocking)                                                               \
	X(nl_wait_for_ack)                                                                         \
	X(nla_get_string)                                                                          \
	X(nla_get_u32)                                                                             \
	X(nla_get_u64)                                                                             \
	X(nlmsg_hdr)

struct mw_libnl {
	MW_LIBRARY_POINTERS(MW_LIBNL_CALLS)
};

extern struct mw_libnl mw_libnl;

/* To be called before any other function. Returns 0 or -ELIBACC. */
int mw_libnl_load(struct memwatch_ctx *ctx);

#define genl_connect		    mw_libnl.genl_connect
#define genl_ctrl_resolve	    mw_libnl.genl_ctrl_resolve
#define genl_ctrl_resolve_grp	    mw_libnl.genl_ctrl_resolve_grp
#define genl_send_simple	    mw_libnl.genl_send_simple
#define genlmsg_hdr		    mw_libnl.genlmsg_hdr
#define genlmsg_parse		    mw_libnl.genlmsg_parse
#define genlmsg_valid_hdr	    mw_libnl.genlmsg_valid_hdr
#define nl_geterror		    mw_libnl.nl_geterror
#define nl_recvmsgs_default	    mw_libnl.nl_recvmsgs_default
#define nl_socket_add_memberships   mw_libnl.nl_socket_add_memberships
#define nl_socket_alloc		    mw_libnl.nl_socket_alloc
#define nl_socket_disable_seq_check mw_libnl.nl_socket_disable_seq_check
#define nl_socket_free		    mw_libnl.nl_socket_free
#define nl_socket_get_fd	    mw_libnl.nl_socket_get_fd
#define nl_socket_modify_cb	    mw_libnl.nl_socket_modify_cb
#define nl_socket_modify_err_cb	    mw_libnl.nl_socket_modify_err_cb
#define nl_socket_set_nonblocking   mw_libnl.nl_socket_set_nonblocking
#define nl_wait_for_ack		    mw_libnl.nl_wait_for_ack
#define nla_get_string		    mw_libnl.nla_get_string
#define nla_get_u32		    mw_libnl.nla_get_u32
#define nla_get_u64		    mw_libnl.nla_get_u64
#define nlmsg_hdr		    mw_libnl.nlmsg_hdr

#endif /* MW_MODULE_LIBNL_H */
