/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The functions of the connection manager. There is none: RDMA CM belongs to another library
 * (librdmacm), which cannot connect queue pairs that are created by DEVX commands. */
#include "qp/rdma/rdma.h"

#include "core/log/log.h"

static doca_error_t no_cm(const char *func)
{
	gdk_err("%s: there is no RDMA connection manager; exchange the descriptions of "
		"doca_rdma_export() over a socket and call doca_rdma_connect()",
		func);
	return DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_rdma_addr_create(enum doca_rdma_addr_type addr_type, const char *address,
				   uint16_t port, struct doca_rdma_addr **addr)
{
	(void)addr_type;
	(void)port;
	GDK_CHECK_PTR(address);
	GDK_CHECK_PTR(addr);
	return no_cm(__func__);
}

doca_error_t doca_rdma_addr_destroy(struct doca_rdma_addr *addr)
{
	GDK_CHECK_PTR(addr);
	return no_cm(__func__);
}

doca_error_t doca_rdma_connect_to_addr(struct doca_rdma *rdma, struct doca_rdma_addr *addr,
				       union doca_data connection_user_data)
{
	(void)connection_user_data;
	(void)addr;
	GDK_CHECK_PTR(rdma);
	return no_cm(__func__);
}

doca_error_t doca_rdma_connection_accept(struct doca_rdma_connection *rdma_connection,
					 void *private_data, uint8_t private_data_len)
{
	(void)private_data;
	(void)private_data_len;
	GDK_CHECK_PTR(rdma_connection);
	return no_cm(__func__);
}

doca_error_t doca_rdma_start_listen_to_port(struct doca_rdma *rdma, uint16_t port)
{
	(void)port;
	GDK_CHECK_PTR(rdma);
	return no_cm(__func__);
}

doca_error_t doca_rdma_stop_listen_to_port(struct doca_rdma *rdma, uint16_t port)
{
	(void)port;
	GDK_CHECK_PTR(rdma);
	return no_cm(__func__);
}
