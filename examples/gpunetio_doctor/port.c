/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Checks of a port that need no open device: state, link layer, addresses, GIDs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic.h"

#define PORT_DIR "/sys/class/infiniband/%s/ports/%d"
#define GIDS_MAX 256
#define ATTR_LEN 80
#define IFF_UP	 1u

struct port {
	const struct dr_env *env;
	struct dr_report *r;
	const char *device;
	int number;
	bool ethernet;
	char scope[DR_NAME_LEN + 16];
	char netdev[DR_NAME_LEN]; /* "": not known */
};

static int read_port(const struct port *p, char *text, const char *name)
{
	return dr_read(p->env, text, ATTR_LEN, PORT_DIR "/%s", p->device, p->number, name);
}

/* Returns the part behind "4: " of an attribute such as "4: ACTIVE". */
static const char *word_of(const char *text)
{
	const char *colon = strstr(text, ": ");

	return colon ? colon + 2 : text;
}

int dr_port_netdev(const struct dr_env *env, const char *device, int port, char *netdev)
{
	struct dr_names names;
	char text[ATTR_LEN];

	netdev[0] = '\0';
	if (!dr_read(env, text, sizeof(text), PORT_DIR "/gid_attrs/ndevs/0", device, port) &&
	    *text) {
		snprintf(netdev, DR_NAME_LEN, "%.60s", text);
		return 0;
	}
	if (dr_list(env, &names, "/sys/class/infiniband/%s/device/net", device))
		return -ENOENT;
	for (int i = 0; i < names.num; i++) {
		if (dr_read(env, text, sizeof(text), "/sys/class/net/%s/dev_port", names.name[i]))
			strcpy(text, "0");
		if (atoi(text) != port - 1)
			continue;
		strcpy(netdev, names.name[i]);
		return 0;
	}
	return -ENOENT;
}

/* ---- state ---- */

static bool netdev_is_down(const struct port *p)
{
	char flags[ATTR_LEN];

	return *p->netdev &&
	       !dr_read(p->env, flags, sizeof(flags), "/sys/class/net/%s/flags", p->netdev) &&
	       !(strtoul(flags, NULL, 16) & IFF_UP);
}

static void fix_of_state(const struct port *p, const char *state, const char *physical, char *fix,
			 size_t size)
{
	if (!p->ethernet && (strstr(state, "INIT") || strstr(state, "ARMED")))
		snprintf(fix, size,
			 "start a subnet manager, for example opensm, on a host or a "
			 "switch of this fabric");
	else if (netdev_is_down(p))
		snprintf(fix, size, "ip link set dev %s up", p->netdev);
	else if (strstr(physical, "Disabled"))
		snprintf(fix, size, "mlxlink -d %s -p %d --port_state UP", p->device, p->number);
	else
		snprintf(fix, size, "check cable and switch: mlxlink -d %s -p %d shows the cause",
			 p->device, p->number);
}

static void check_state(const struct port *p)
{
	char state[ATTR_LEN], physical[ATTR_LEN], fix[2 * ATTR_LEN];
	int rc = read_port(p, state, "state");

	if (rc) {
		dr_add(p->r, p->scope, "state", DR_UNKNOWN, NULL, "cannot read the state: %s",
		       strerror(-rc));
		return;
	}
	if (read_port(p, physical, "phys_state"))
		strcpy(physical, "?");
	fix_of_state(p, state, physical, fix, sizeof(fix));
	if (!strcmp(word_of(state), "ACTIVE"))
		dr_add(p->r, p->scope, "state", DR_OK, NULL, "%s, %s", word_of(state),
		       word_of(physical));
	else
		dr_add(p->r, p->scope, "state", DR_FAIL, fix, "%s, not ACTIVE; the link is %s",
		       word_of(state), word_of(physical));
}

static void check_link_layer(struct port *p)
{
	char layer[ATTR_LEN], rate[ATTR_LEN];
	int rc = read_port(p, layer, "link_layer");

	if (rc) {
		dr_add(p->r, p->scope, "link-layer", DR_UNKNOWN, NULL,
		       "cannot read the link layer: %s", strerror(-rc));
		return;
	}
	p->ethernet = !strcmp(layer, "Ethernet");
	(void)dr_port_netdev(p->env, p->device, p->number, p->netdev);
	if (read_port(p, rate, "rate"))
		strcpy(rate, "unknown rate");
	dr_add(p->r, p->scope, "link-layer", DR_NOTE, NULL, "%s, %s%s%s", layer, rate,
	       *p->netdev ? ", interface " : "", p->netdev);
}

/* ---- InfiniBand ---- */

static void check_lid(const struct port *p)
{
	char lid[ATTR_LEN], sm[ATTR_LEN];

	if (read_port(p, lid, "lid") || read_port(p, sm, "sm_lid"))
		dr_add(p->r, p->scope, "lid", DR_UNKNOWN, NULL, "cannot read LID and SM LID");
	else if (!strtoul(lid, NULL, 0))
		dr_add(p->r, p->scope, "lid", DR_FAIL,
		       "start a subnet manager, for example opensm, on a host or a switch of this "
		       "fabric",
		       "the port has no LID");
	else if (!strtoul(sm, NULL, 0))
		dr_add(p->r, p->scope, "lid", DR_WARN,
		       "start a subnet manager: it also reacts to changes of the fabric",
		       "LID %lu, but no subnet manager", strtoul(lid, NULL, 0));
	else
		dr_add(p->r, p->scope, "lid", DR_OK, NULL, "LID %lu, subnet manager at LID %lu",
		       strtoul(lid, NULL, 0), strtoul(sm, NULL, 0));
}

/* ---- GIDs of Ethernet ---- */

enum gid_kind { GID_V2_IPV4, GID_V2_IPV6, GID_V2_LINK_LOCAL, GID_V1, NUM_KINDS };

struct gids {
	int num[NUM_KINDS], first[NUM_KINDS];
	char text[NUM_KINDS][2 * ATTR_LEN]; /* of the first GID */
	char others[4 * ATTR_LEN];	    /* further ones with IPv4 */
};

/* Converts "0000:0000:0000:0000:0000:ffff:c0a8:0101" to "192.168.1.1". */
static bool ipv4_of(const char *gid, char *text)
{
	unsigned int high, low;

	if (sscanf(gid, "0000:0000:0000:0000:0000:ffff:%4x:%4x", &high, &low) != 2)
		return false;
	snprintf(text, ATTR_LEN, "%u.%u.%u.%u", high >> 8, high & 255, low >> 8, low & 255);
	return true;
}

static void add_gid(const struct port *p, struct gids *g, int index, const char *gid)
{
	char type[ATTR_LEN], netdev[ATTR_LEN], address[ATTR_LEN], text[2 * ATTR_LEN];
	size_t used = strlen(g->others);
	enum gid_kind kind;

	if (dr_read(p->env, type, sizeof(type), PORT_DIR "/gid_attrs/types/%d", p->device,
		    p->number, index))
		return;
	if (dr_read(p->env, netdev, sizeof(netdev), PORT_DIR "/gid_attrs/ndevs/%d", p->device,
		    p->number, index))
		strcpy(netdev, "?");
	snprintf(address, sizeof(address), "%s", gid);
	if (strcmp(type, "RoCE v2"))
		kind = GID_V1;
	else if (ipv4_of(gid, address))
		kind = GID_V2_IPV4;
	else
		kind = strncmp(gid, "fe80:", 5) ? GID_V2_IPV6 : GID_V2_LINK_LOCAL;
	snprintf(text, sizeof(text), "%.45s, %.30s", address, netdev);
	if (!g->num[kind]++) {
		g->first[kind] = index;
		strcpy(g->text[kind], text);
	} else if (kind == GID_V2_IPV4) {
		snprintf(g->others + used, sizeof(g->others) - used, "; also %d (%s)", index, text);
	}
}

static void report_gids(const struct port *p, const struct gids *g)
{
	char fix[4 * ATTR_LEN];
	const char *netdev = *p->netdev ? p->netdev : "INTERFACE";

	snprintf(fix, sizeof(fix), "ip addr add ADDRESS/PREFIX dev %s", netdev);
	if (g->num[GID_V2_IPV4]) {
		dr_add(p->r, p->scope, "gid", DR_OK, NULL, "use -l %d: RoCE v2, %s%s",
		       g->first[GID_V2_IPV4], g->text[GID_V2_IPV4], g->others);
	} else if (g->num[GID_V2_IPV6]) {
		dr_add(p->r, p->scope, "gid", DR_OK, NULL, "use -l %d: RoCE v2, %s",
		       g->first[GID_V2_IPV6], g->text[GID_V2_IPV6]);
	} else if (g->num[GID_V2_LINK_LOCAL]) {
		dr_add(p->r, p->scope, "gid", DR_WARN, fix,
		       "use -l %d: RoCE v2, %s; it is link-local, so it reaches only hosts of the "
		       "same network",
		       g->first[GID_V2_LINK_LOCAL], g->text[GID_V2_LINK_LOCAL]);
	} else if (g->num[GID_V1]) {
		dr_add(p->r, p->scope, "gid", DR_WARN,
		       "enable RoCE v2 in the driver, or use RoCE v1 on both sides",
		       "only RoCE v1: -l %d (%s) reaches only hosts of the same network that also "
		       "use RoCE v1",
		       g->first[GID_V1], g->text[GID_V1]);
	} else {
		snprintf(fix, sizeof(fix),
			 "ip link set dev %s up; ip addr add ADDRESS/PREFIX dev %s. If RoCE is "
			 "disabled (rdma link; devlink dev param show), enable it",
			 netdev, netdev);
		dr_add(p->r, p->scope, "gid", DR_FAIL, fix, "the port has no GID");
	}
}

static void check_gids(const struct port *p)
{
	struct gids g = { 0 };
	char gid[ATTR_LEN];

	for (int i = 0; i < GIDS_MAX; i++) {
		if (dr_read(p->env, gid, sizeof(gid), PORT_DIR "/gids/%d", p->device, p->number, i))
			break;
		if (strspn(gid, "0:") != strlen(gid))
			add_gid(p, &g, i, gid);
	}
	report_gids(p, &g);
}

/* ---- MTU ---- */

/* The kernel subtracts the largest RoCE headers (iboe_get_mtu in rdma/ib_addr.h). */
#define ROCE_HEADERS 96
#define MTU_LARGEST  4096

static int roce_mtu(int netdev_mtu)
{
	int mtu = MTU_LARGEST;

	while (mtu > 256 && mtu > netdev_mtu - ROCE_HEADERS)
		mtu /= 2;
	return mtu;
}

void dr_report_mtu(const struct dr_env *env, struct dr_report *r, const char *device, int port,
		   int active, int max)
{
	char scope[DR_NAME_LEN + 16], netdev[DR_NAME_LEN], mtu[ATTR_LEN] = "", text[2 * ATTR_LEN];
	char fix[3 * ATTR_LEN], layer[ATTR_LEN];

	snprintf(scope, sizeof(scope), "%s port %d", device, port);
	if (dr_read(env, layer, sizeof(layer), PORT_DIR "/link_layer", device, port) ||
	    strcmp(layer, "Ethernet") || dr_port_netdev(env, device, port, netdev) ||
	    dr_read(env, mtu, sizeof(mtu), "/sys/class/net/%s/mtu", netdev))
		*mtu = '\0';
	if (!active && !*mtu) {
		dr_add(r, scope, "mtu", DR_UNKNOWN, NULL, "only an open device has the MTU");
		return;
	}
	active = active ? active : roce_mtu(atoi(mtu));
	max = max ? max : MTU_LARGEST;
	snprintf(text, sizeof(text), "%s%.60s%s%.20s", *mtu ? "; interface " : "",
		 *mtu ? netdev : "", *mtu ? " has MTU " : "", mtu);
	if (*mtu)
		snprintf(fix, sizeof(fix),
			 "ip link set dev %s mtu 9000, also at the peer and the "
			 "switches (RoCE needs %d for %d)",
			 netdev, max + ROCE_HEADERS, max);
	else
		snprintf(fix, sizeof(fix), "set the MTU of the partition in the subnet manager");
	dr_add(r, scope, "mtu", active < max ? DR_WARN : DR_OK, active < max ? fix : NULL,
	       "%d bytes%s%s", active, active < max ? ", the device can do more" : "", text);
}

void dr_check_port_files(const struct dr_env *env, struct dr_report *r, const char *device,
			 int number)
{
	struct port p = { .env = env, .r = r, .device = device, .number = number };

	snprintf(p.scope, sizeof(p.scope), "%s port %d", device, number);
	check_link_layer(&p);
	check_state(&p);
	if (p.ethernet)
		check_gids(&p);
	else
		check_lid(&p);
	if (!env->probe && p.ethernet)
		dr_report_mtu(env, r, device, number, 0, 0);
}
