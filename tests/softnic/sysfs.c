/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The sysfs tree of the software NIC, generated as ordinary files: a PCI device with
 * its infiniband and infiniband_verbs children, and the class links to them, relative
 * as the kernel makes them. Also the entries of nvidia_peermem and of /dev/infiniband.
 * preload.c redirects paths into the tree. This file is also linked into softnic-run.
 */
#include "front.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BAR_ZERO "0x0000000000000000 0x0000000000000000 0x0000000000000000"
#define BAR	 BAR_ZERO "\n"
#define PCI_DIR	 "devices/" SN_PCI_ROOT "/" SN_PCI_ADDR

struct tree {
	const char *root;
	char base[256]; /* folder in which tree_file() creates files */
	int err;
};

static void tree_mkdir(struct tree *t, const char *path)
{
	char full[PATH_MAX], *p;

	snprintf(full, sizeof(full), "%s/%s", t->root, path);
	for (p = full + strlen(t->root) + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		mkdir(full, 0755);
	}
	if (mkdir(full, 0755) && errno != EEXIST)
		t->err = -errno;
}

static void tree_file(struct tree *t, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void tree_file(struct tree *t, const char *name, const char *fmt, ...)
{
	char full[PATH_MAX];
	va_list ap;
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s/%s", t->root, t->base, name);
	f = fopen(full, "w");
	if (!f) {
		t->err = -errno;
		return;
	}
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	fputc('\n', f);
	fclose(f);
}

static void tree_link(struct tree *t, const char *target, const char *name)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s/%s", t->root, name);
	if (symlink(target, full) && errno != EEXIST)
		t->err = -errno;
}

static void tree_base(struct tree *t, const char *path)
{
	tree_mkdir(t, path);
	snprintf(t->base, sizeof(t->base), "%s", path);
}

/* Formats 16-bit groups: 8 for a GID, 4 for a GUID. */
static void hex_groups(char *text, const uint8_t *b, unsigned int groups)
{
	unsigned int i;

	for (i = 0; i < groups; i++)
		text += sprintf(text, "%s%02x%02x", i ? ":" : "", b[2 * i], b[2 * i + 1]);
}

/* Reading an attribute of an unused GID index must fail with EINVAL. The attribute is then a link
 * to a file with this property: the speed of the loopback interface. */
static void tree_gid_attr(struct tree *t, const char *kind, unsigned int i, const char *value)
{
	char name[160];

	snprintf(name, sizeof(name), "gid_attrs/%s/%u", kind, i);
	if (value[0]) {
		tree_file(t, name, "%s", value);
		return;
	}
	snprintf(name, sizeof(name), "%.128s/gid_attrs/%s/%u", t->base, kind, i);
	tree_link(t, "/sys/class/net/lo/speed", name);
}

static void tree_gids(struct tree *t, const struct sn_cfg *cfg)
{
	struct sn_gid gid;
	char name[64], text[64];
	unsigned int i;
	bool used;

	for (i = 0; i < SN_GIDS; i++) {
		memset(&gid, 0, sizeof(gid));
		used = sn_gid_at(cfg, i, &gid);
		hex_groups(text, gid.raw, 8);
		snprintf(name, sizeof(name), "gids/%u", i);
		tree_file(t, name, "%s", text);
		tree_gid_attr(t, "types", i, !used ? "" : gid.v2 ? "RoCE v2" : "IB/RoCE v1");
		tree_gid_attr(t, "ndevs", i, used && !cfg->infiniband ? cfg->ndev : "");
	}
}

/* These counters stay zero. stats.c reports the counters of the NIC. */
static const char *const counters[] = {
	"VL15_dropped",
	"excessive_buffer_overrun_errors",
	"link_downed",
	"link_error_recovery",
	"local_link_integrity_errors",
	"multicast_rcv_packets",
	"multicast_xmit_packets",
	"port_rcv_constraint_errors",
	"port_rcv_data",
	"port_rcv_errors",
	"port_rcv_packets",
	"port_rcv_remote_physical_errors",
	"port_rcv_switch_relay_errors",
	"port_xmit_constraint_errors",
	"port_xmit_data",
	"port_xmit_discards",
	"port_xmit_packets",
	"port_xmit_wait",
	"symbol_error",
	"unicast_rcv_packets",
	"unicast_xmit_packets",
};
static const char *const hw_counters[] = {
	"duplicate_request",
	"implied_nak_seq_err",
	"lifespan",
	"local_ack_timeout_err",
	"out_of_buffer",
	"out_of_sequence",
	"packet_seq_err",
	"req_cqe_error",
	"req_cqe_flush_error",
	"req_remote_access_errors",
	"req_remote_invalid_request",
	"resp_cqe_error",
	"resp_cqe_flush_error",
	"resp_local_length_error",
	"resp_remote_access_errors",
	"rnr_nak_retry_err",
	"rx_atomic_requests",
	"rx_icrc_encapsulated",
	"rx_read_requests",
	"rx_write_requests",
};

static void tree_zeros(struct tree *t, const char *dir, const char *const *names, size_t n)
{
	char path[96];

	while (n--) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[n]);
		tree_file(t, path, "0");
	}
}

static void tree_port(struct tree *t, const char *ib, const struct sn_cfg *cfg)
{
	static const char *const dirs[] = { "gids",  "gid_attrs/types", "gid_attrs/ndevs",
					    "pkeys", "counters",	"hw_counters" };
	char path[256];
	size_t i;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		snprintf(path, sizeof(path), "%s/ports/1/%s", ib, dirs[i]);
		tree_mkdir(t, path);
	}
	snprintf(path, sizeof(path), "%s/ports/1", ib);
	tree_base(t, path);
	tree_file(t, "state", "4: ACTIVE");
	tree_file(t, "phys_state", "5: LinkUp");
	tree_file(t, "rate", "100 Gb/sec (4X EDR)");
	tree_file(t, "link_layer", "%s", cfg->infiniband ? "InfiniBand" : "Ethernet");
	tree_file(t, "lid", "0x%x", cfg->infiniband ? sn_lid_of_ip(&cfg->ip) : 0);
	tree_file(t, "lid_mask_count", "0");
	tree_file(t, "sm_lid", "0x%x", cfg->infiniband ? SN_SM_LID : 0);
	tree_file(t, "sm_sl", "0");
	tree_file(t, "cap_mask", "0x%08x", SN_PORT_CAP(cfg));
	tree_file(t, "pkeys/0", "0xffff");
	tree_zeros(t, "counters", counters, sizeof(counters) / sizeof(counters[0]));
	tree_zeros(t, "hw_counters", hw_counters, sizeof(hw_counters) / sizeof(hw_counters[0]));
	tree_gids(t, cfg);
}

static void tree_pci(struct tree *t, unsigned int device)
{
	tree_base(t, PCI_DIR);
	/* Six BARs and the ROM: start, end, flags. Programs reach the device through verbs only. */
	tree_file(t, "resource", BAR BAR BAR BAR BAR BAR BAR_ZERO);
	tree_file(t, "vendor", "0x15b3");
	tree_file(t, "device", "0x%04x", device);
	tree_file(t, "subsystem_vendor", "0x15b3");
	tree_file(t, "subsystem_device", "0x0041");
	tree_file(t, "class", "0x020700");
	tree_file(t, "revision", "0x00");
	tree_file(t, "enable", "1");
	tree_file(t, "irq", "0");
	tree_file(t, "uevent",
		  "DRIVER=mlx5_core\nPCI_CLASS=20700\nPCI_ID=15B3:%04X\n"
		  "PCI_SLOT_NAME=" SN_PCI_ADDR,
		  device);
	tree_file(t, "modalias", "pci:v000015B3d0000%04Xsv000015B3sd00000041bc02sc07i00", device);
	tree_file(t, "numa_node", "0");
	tree_file(t, "local_cpus", "ffffffff");
	tree_file(t, "local_cpulist", "0-31");
	tree_file(t, "max_link_speed", "32.0 GT/s PCIe");
	tree_file(t, "max_link_width", "16");
	tree_file(t, "current_link_speed", "32.0 GT/s PCIe");
	tree_file(t, "current_link_width", "16");
}

static void tree_ib(struct tree *t, const char *ib, const struct sn_cfg *cfg)
{
	uint8_t guid[8];
	char text[32];

	sn_guid_of_ip(&cfg->ip, guid);
	hex_groups(text, guid, 4);
	tree_base(t, ib);
	tree_file(t, "node_type", "1: CA");
	tree_file(t, "node_guid", "%s", text);
	tree_file(t, "sys_image_guid", "%s", text);
	tree_file(t, "node_desc", "software mlx5 NIC");
	tree_file(t, "fw_ver", "%s", cfg->fw_ver);
	tree_file(t, "hw_rev", "0");
	tree_file(t, "hca_type", "MT%u", cfg->pci_device);
	tree_file(t, "board_id", "GDK0000000001");
}

/*
 * The module that gives NICs access to GPU memory by address. Programs check its version before
 * they register such memory (NCCL, net_ib/gdr.cc). preload.c shows it only if CUDA is present.
 */
static void tree_peermem(struct tree *t)
{
	FILE *f = fopen("/sys/module/nvidia/version", "r");
	char version[64] = "";

	if (f) {
		if (fgets(version, sizeof(version), f))
			version[strcspn(version, "\n")] = '\0';
		fclose(f);
	}
	tree_base(t, "module/nvidia_peermem");
	tree_file(t, "version", "%s", version);
}

static void tree_net(struct tree *t, const char *ndev)
{
	char target[64], path[128];

	tree_mkdir(t, PCI_DIR "/net");
	snprintf(target, sizeof(target), "/sys/class/net/%s", ndev);
	snprintf(path, sizeof(path), PCI_DIR "/net/%s", ndev);
	if (ndev[0])
		tree_link(t, target, path);
}

int sn_sysfs_build(const char *root, const struct sn_cfg *cfg)
{
	struct tree t = { .root = root };
	const char *name = cfg->name;
	char ib[128], path[256];

	if (mkdir(root, 0755) && errno != EEXIST)
		return -errno;
	snprintf(ib, sizeof(ib), PCI_DIR "/infiniband/%.32s", name);
	tree_pci(&t, cfg->pci_device);
	tree_ib(&t, ib, cfg);
	tree_port(&t, ib, cfg);
	tree_net(&t, cfg->ndev); /* of an InfiniBand port: its IPoIB interface */
	if (!cfg->no_peermem)
		tree_peermem(&t);
	tree_link(&t, "../../../bus/pci", PCI_DIR "/subsystem");
	tree_mkdir(&t, "bus/pci/drivers/mlx5_core");
	tree_link(&t, "../../../bus/pci/drivers/mlx5_core", PCI_DIR "/driver");

	tree_base(&t, PCI_DIR "/infiniband_verbs/uverbs0");
	tree_file(&t, "ibdev", "%s", name);
	tree_file(&t, "dev", "%d:%d", SN_CDEV_MAJOR, SN_CDEV_MINOR);
	tree_file(&t, "abi_version", "1");
	tree_base(&t, "class/infiniband_verbs");
	tree_file(&t, "abi_version", "6");
	tree_mkdir(&t, "class/infiniband");
	tree_mkdir(&t, "bus/pci/devices");
	tree_base(&t, "dev/infiniband");
	tree_file(&t, "uverbs0", "%s", name);

	snprintf(path, sizeof(path), "%s/device", ib);
	tree_link(&t, "../../../" SN_PCI_ADDR, path);
	tree_link(&t, "../../../" SN_PCI_ADDR, PCI_DIR "/infiniband_verbs/uverbs0/device");
	snprintf(path, sizeof(path), "class/infiniband/%.32s", name);
	snprintf(ib, sizeof(ib), "../../" PCI_DIR "/infiniband/%.32s", name);
	tree_link(&t, ib, path);
	tree_link(&t, "../../" PCI_DIR "/infiniband_verbs/uverbs0",
		  "class/infiniband_verbs/uverbs0");
	tree_link(&t, "../../../" PCI_DIR, "bus/pci/devices/" SN_PCI_ADDR);
	return t.err;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

void sn_sysfs_remove(const char *root)
{
	nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
