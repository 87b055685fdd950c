/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The path of a connection: converts an address handle attribute to the address path of the
 * QP context. Queries the device and the kernel for GID type, MTU and MAC. The UDP source
 * port is a hash of GIDs and QP numbers: it is the same at each attempt, and usually differs
 * between QPs, so that ECMP spreads them. Ports of a bond are in lag.c.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/log/log.h"
#include "core/nic/prm.h"
#include "qp/verbs/qp.h"

#define UDP_SPORT_MIN 0xc000u

/* FNV-1a. The caller mixes the result again, so that adjacent QP numbers get distant ports. */
static uint32_t hash_bytes(uint32_t h, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len--)
		h = (h ^ *p++) * 16777619u;
	return h;
}

uint16_t gdk_path_udp_sport(uint32_t local_qpn, uint32_t remote_qpn, const uint8_t sgid[16],
			    const uint8_t dgid[16])
{
	uint32_t h = 2166136261u;

	h = hash_bytes(h, &local_qpn, sizeof(local_qpn));
	h = hash_bytes(h, &remote_qpn, sizeof(remote_qpn));
	h = hash_bytes(h, sgid, 16);
	h = hash_bytes(h, dgid, 16);
	h ^= h >> 16;
	h *= 0x45d9f3bu;
	h ^= h >> 16;
	return (uint16_t)(UDP_SPORT_MIN | (h & 0x3fff));
}

static const char *gid_text(const uint8_t gid[16], char text[INET6_ADDRSTRLEN])
{
	return inet_ntop(AF_INET6, gid, text, INET6_ADDRSTRLEN);
}

static unsigned int mtu_bytes(unsigned int ib_code)
{
	return 128u << ib_code;
}

static doca_error_t query_port(const struct doca_verbs_qp_t *qp, struct ibv_port_attr *port)
{
	int rc = ibv_query_port(qp->dev->ctx, qp->port, port);

	if (!rc)
		return DOCA_SUCCESS;
	gdk_err("QP 0x%x: cannot query port %u: %s", qp->qpn, qp->port, strerror(rc));
	return DOCA_ERROR_DRIVER;
}

static doca_error_t check_mtu(const struct doca_verbs_qp_t *qp, enum doca_verbs_mtu_size mtu,
			      const struct ibv_port_attr *port)
{
	unsigned int want = (unsigned int)mtu + 1; /* DOCA counts from 0, IB from 1 */

	if (!port->active_mtu || want <= (unsigned int)port->active_mtu)
		return DOCA_SUCCESS;
	gdk_err("QP 0x%x: path_mtu %u is larger than the active MTU %u of port %u", qp->qpn,
		mtu_bytes(want), mtu_bytes(port->active_mtu), qp->port);
	return DOCA_ERROR_INVALID_VALUE;
}

struct source {
	union ibv_gid gid;
	bool roce_v2;
	uint32_t ifindex; /* 0: unknown */
};

static doca_error_t query_source(struct doca_verbs_qp_t *qp, unsigned int index, struct source *src)
{
	struct ibv_gid_entry entry;
	static const union ibv_gid empty;
	int rc = ibv_query_gid_ex(qp->dev->ctx, qp->port, index, &entry, 0);

	if (rc == 0) {
		src->gid = entry.gid;
		src->roce_v2 = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
		src->ifindex = entry.ndev_ifindex;
		return DOCA_SUCCESS;
	}
	/* Older kernels support only ibv_query_gid(), which does not return the GID type. */
	if (ibv_query_gid(qp->dev->ctx, qp->port, (int)index, &src->gid) ||
	    !memcmp(&src->gid, &empty, sizeof(empty))) {
		gdk_err("QP 0x%x: port %u has no GID at sgid_index %u: %s", qp->qpn, qp->port,
			index, strerror(rc > 0 ? rc : errno));
		return DOCA_ERROR_INVALID_VALUE;
	}
	src->roce_v2 = true;
	src->ifindex = 0;
	return DOCA_SUCCESS;
}

static int mac_of_interface(uint32_t ifindex, uint8_t mac[6])
{
	struct ifreq req = { 0 };
	int fd, rc = -1;

	if (!ifindex || !if_indextoname(ifindex, req.ifr_name))
		return -1;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (ioctl(fd, SIOCGIFHWADDR, &req) == 0) {
		memcpy(mac, req.ifr_hwaddr.sa_data, 6);
		rc = 0;
	}
	close(fd);
	return rc;
}

/* A link-local address (fe80::/64) with an interface id derived from the MAC contains the MAC. */
static bool mac_of_link_local(const uint8_t gid[16], uint8_t mac[6])
{
	static const uint8_t prefix[8] = { 0xfe, 0x80 };

	if (memcmp(gid, prefix, sizeof(prefix)) || gid[11] != 0xff || gid[12] != 0xfe)
		return false;
	memcpy(mac, gid + 8, 3);
	memcpy(mac + 3, gid + 13, 3);
	mac[0] ^= 2;
	return true;
}

/* Lets the kernel resolve the MAC: creates an address handle, reads its MAC and destroys it.
 * Returns 0 or an errno value. */
static int mac_by_ah(struct doca_verbs_qp_t *qp, const struct doca_verbs_ah_attr_t *ah,
		     uint8_t hop_limit, uint8_t mac[6])
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = qp->port };
	struct mlx5dv_ah dv = { 0 };
	struct mlx5dv_obj obj = { 0 };
	struct ibv_ah *ibah;
	int rc;

	memcpy(attr.grh.dgid.raw, ah->gid.raw, 16);
	attr.grh.sgid_index = ah->sgid_index;
	attr.grh.hop_limit = hop_limit;
	attr.grh.traffic_class = ah->traffic_class;
	ibah = ibv_create_ah(qp->dev->pd, &attr);
	if (!ibah)
		return errno ? errno : EINVAL;
	obj.ah.in = ibah;
	obj.ah.out = &dv;
	rc = mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH);
	if (!rc && dv.av)
		memcpy(mac, dv.av->rmac, 6);
	else
		rc = rc ? rc : EINVAL;
	/* While the address handle exists, the protection domain cannot be freed: try twice. */
	if (ibv_destroy_ah(ibah) && ibv_destroy_ah(ibah))
		gdk_warn("QP 0x%x: cannot destroy the address handle of its path: %s", qp->qpn,
			 strerror(errno));
	return rc;
}

static doca_error_t resolve_mac(struct doca_verbs_qp_t *qp, const struct doca_verbs_ah_attr_t *ah,
				const struct source *src, uint8_t hop_limit, uint8_t mac[6])
{
	char text[INET6_ADDRSTRLEN];
	int rc;

	if (mac_of_link_local(ah->gid.raw, mac))
		return DOCA_SUCCESS;
	rc = mac_by_ah(qp, ah, hop_limit, mac);
	if (!rc)
		return DOCA_SUCCESS;
	if (!memcmp(ah->gid.raw, src->gid.raw, 16) && !mac_of_interface(src->ifindex, mac))
		return DOCA_SUCCESS;
	gdk_err("QP 0x%x: cannot resolve the MAC of remote GID %s: %s (is there a route to it?)",
		qp->qpn, gid_text(ah->gid.raw, text), strerror(rc));
	return DOCA_ERROR_NOT_FOUND;
}

bool gdk_gid_is_v4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, mapped, sizeof(mapped));
}

/* Checks that both GIDs have the same IP version. RoCE v1 does not use IP. */
static doca_error_t check_family(const struct doca_verbs_qp_t *qp, const struct source *src,
				 const uint8_t remote[16])
{
	char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];

	if (!src->roce_v2 || gdk_gid_is_v4(src->gid.raw) == gdk_gid_is_v4(remote))
		return DOCA_SUCCESS;
	gdk_err("QP 0x%x: source GID %s and destination GID %s have different IP versions", qp->qpn,
		gid_text(src->gid.raw, from), gid_text(remote, to));
	return DOCA_ERROR_INVALID_VALUE;
}

static uint16_t sport_in_range(const struct gdk_caps *caps, uint16_t sport)
{
	uint32_t min = caps->r_roce_min_src_udp_port, max = caps->r_roce_max_src_udp_port;

	if (!max || max < min || (sport >= min && sport <= max))
		return sport;
	return (uint16_t)(min + sport % (max - min + 1));
}

static doca_error_t fill_roce(struct doca_verbs_qp_t *qp, const struct doca_verbs_ah_attr_t *ah,
			      const struct source *src, uint32_t remote_qpn, uint8_t hop_limit,
			      uint8_t *path)
{
	doca_error_t err = check_family(qp, src, ah->gid.raw);
	uint8_t mac[6];
	uint16_t sport;

	if (err == DOCA_SUCCESS)
		err = resolve_mac(qp, ah, src, hop_limit, mac);
	if (err != DOCA_SUCCESS)
		return err;
	prm_set(path, PRM_ADS_RMAC_47_32, (uint32_t)mac[0] << 8 | mac[1]);
	prm_set(path, PRM_ADS_RMAC_31_0,
		(uint32_t)mac[2] << 24 | mac[3] << 16 | mac[4] << 8 | mac[5]);
	prm_set(path, PRM_ADS_ETH_PRIO, ah->sl & 7u);
	if (!src->roce_v2)
		return DOCA_SUCCESS;
	sport = gdk_path_udp_sport(qp->qpn, remote_qpn, src->gid.raw, ah->gid.raw);
	prm_set(path, PRM_ADS_UDP_SPORT, sport_in_range(&qp->dev->caps, sport));
	prm_set(path, PRM_ADS_DSCP, ah->traffic_class >> 2);
	return DOCA_SUCCESS;
}

static void fill_ib(const struct doca_verbs_ah_attr_t *ah, bool global, uint8_t *path)
{
	prm_set(path, PRM_ADS_RLID, ah->dlid);
	prm_set(path, PRM_ADS_SL, ah->sl);
	prm_set(path, PRM_ADS_GRH, global);
}

static void fill_global(const struct doca_verbs_ah_attr_t *ah, uint8_t hop_limit, uint8_t *path)
{
	prm_set(path, PRM_ADS_SRC_ADDR_INDEX, ah->sgid_index);
	prm_set(path, PRM_ADS_HOP_LIMIT, hop_limit);
	prm_set(path, PRM_ADS_TCLASS, ah->traffic_class);
	memcpy(path + PRM_ADS_RGID_AT, ah->gid.raw, 16);
}

static doca_error_t check_link_layer(const struct doca_verbs_qp_t *qp, bool is_roce,
				     const struct ibv_port_attr *port)
{
	bool ethernet = port->link_layer == IBV_LINK_LAYER_ETHERNET;

	if (is_roce == ethernet)
		return DOCA_SUCCESS;
	gdk_err("QP 0x%x: cannot use addr_type %s on port %u: its link layer is %s", qp->qpn,
		is_roce ? "IPv4 or IPv6" : "IB_GRH or IB_NO_GRH", qp->port,
		ethernet ? "Ethernet" : "InfiniBand");
	return DOCA_ERROR_INVALID_VALUE;
}

/* Decides whether packets have a GRH. A port may require one in every packet
 * (IBV_QPF_GRH_REQUIRED); then a path that has only a LID also gets a GRH, and needs a
 * GID. */
static doca_error_t decide_grh(const struct doca_verbs_qp_t *qp,
			       const struct doca_verbs_ah_attr_t *ah,
			       const struct ibv_port_attr *port, bool *global)
{
	static const uint8_t none[16];

	*global = ah->addr_type != DOCA_VERBS_ADDR_TYPE_IB_NO_GRH ||
		  port->flags & IBV_QPF_GRH_REQUIRED;
	if (ah->addr_type != DOCA_VERBS_ADDR_TYPE_IB_NO_GRH || !*global)
		return DOCA_SUCCESS;
	if (!memcmp(ah->gid.raw, none, sizeof(none))) {
		gdk_err("QP 0x%x: port %u requires a GRH, but the address has no gid "
			"(doca_verbs_ah_attr_set_gid)",
			qp->qpn, qp->port);
		return DOCA_ERROR_INVALID_VALUE;
	}
	gdk_info("QP 0x%x: port %u requires a GRH: adding one to the path", qp->qpn, qp->port);
	return DOCA_SUCCESS;
}

doca_error_t gdk_path_fill(struct doca_verbs_qp_t *qp, const doca_verbs_qp_attr_t *attr, void *qpc)
{
	const struct doca_verbs_ah_attr_t *ah = &attr->ah;
	uint8_t *path = (uint8_t *)qpc + PRM_QPC_PATH_AT;
	uint8_t hop_limit = ah->hop_limit ? ah->hop_limit : GDK_HOP_LIMIT_DEFAULT;
	bool is_roce = ah->addr_type <= DOCA_VERBS_ADDR_TYPE_IPv6, global;
	struct ibv_port_attr port;
	struct source src;
	doca_error_t err;

	err = query_port(qp, &port);
	if (err == DOCA_SUCCESS)
		err = check_mtu(qp, attr->path_mtu, &port);
	if (err == DOCA_SUCCESS)
		err = check_link_layer(qp, is_roce, &port);
	if (err == DOCA_SUCCESS)
		err = decide_grh(qp, ah, &port, &global);
	if (err == DOCA_SUCCESS && global)
		err = query_source(qp, ah->sgid_index, &src);
	if (err != DOCA_SUCCESS)
		return err;
	prm_set(path, PRM_ADS_STAT_RATE, ah->static_rate);
	if (global)
		fill_global(ah, hop_limit, path);
	if (is_roce)
		return fill_roce(qp, ah, &src, attr->dest_qp_num, hop_limit, path);
	fill_ib(ah, global, path);
	return DOCA_SUCCESS;
}
