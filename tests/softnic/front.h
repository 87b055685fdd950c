/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private declarations of the front of the software NIC: handle tables, open
 * contexts, event queues, one call of the verbs ioctl, one firmware command. The
 * engine does not include this file; softnic.h is for both halves.
 */
#ifndef SOFTNIC_FRONT_H
#define SOFTNIC_FRONT_H

#include "softnic.h"

#include <rdma/rdma_user_ioctl_cmds.h>
#include <limits.h>
#include <stdio.h>
#include <sys/types.h>

#define SN_TABLE_SIZE	65536u
#define SN_HANDLES	262144u
#define SN_COMP_VECTORS 4u
#define SN_EQN_BASE	8u
#define SN_SM_LID	1u
/* Capability bits of the port, as an mlx5 port of the configured link layer reports them. */
#define SN_PORT_CAP(cfg)  ((cfg)->infiniband ? 0x2651e848u : 0x04010000u)
#define SN_GIDS		  8u /* entries of the GID table; the last ones are empty */
#define SN_MEMFD_NAME	  "uverbs0"
#define SN_MEMFD_SIZE	  (1ull << 30)
#define SN_TIMESTAMP_MASK 0x7fffffffffffffffull
#define SN_CDEV_MAJOR	  231
#define SN_CDEV_MINOR	  192
#define SN_MAX_QP_SZ	  32768u
#define SN_MAX_CQ_LOG	  22u
#define SN_MAX_KSM_LOG	  16u /* log2 of the entries of an indirect key */
#define SN_MAX_CQ_COUNT	  0xffffu
#define SN_MAX_CQ_PERIOD  0xfffu /* microseconds */
#define SN_MAX_SRQ_WR	  32767u
#define SN_MAX_SRQ_SGE	  31u

/* Maps indices to objects. A number (QPN, CQN, key index, umem id) is its index plus a base. */
struct sn_table {
	void *slot[SN_TABLE_SIZE];
	uint32_t next, used;
};

struct sn_handle {
	enum sn_kind kind;
	struct sn_ctx *ctx;
	void *obj;
};

/* A completion channel, an asynchronous event file, or a DEVX file of events or command outputs:
 * a pipe whose read end the application owns. drain is a second descriptor of that end, opened
 * non-blocking. */
struct sn_event_queue {
	uint32_t handle;
	enum sn_kind kind;
	struct sn_ctx *ctx;
	int wr, drain;
	ino_t ino; /* inode of the pipe, identifies the application's descriptor */
	bool closed;
	bool omit_data; /* DEVX events contain only the cookie */
	int users;
};

struct sn_ctx {
	struct sn_ctx *next;
	int memfd; /* the NIC's own descriptor of this open */
	dev_t dev;
	ino_t ino;
	int fds; /* number of the application's descriptors of this open */
	bool ready;
	struct sn_event_queue *async;
	struct sn_clock clock;
	struct sn_td *td; /* transport domain of its raw packet QPs, see sn_ctx_tis(); NULL: none */
};

struct sn_front {
	struct sn_table pds, mrs, umems, cqs, qps, srqs;
	struct sn_table tds, tiss, rqts, tirs, counter_sets, flow_counters;
	struct sn_handle handles[SN_HANDLES];
	uint32_t next_handle, live;
	uint32_t next_uar;
	uint8_t mr_variant;
	uint32_t no_dbr_qps;
	uint32_t lag_turn; /* number of libibverbs QPs that were assigned a port of the bond */
	struct sn_subscription *subscriptions;
	/* numbers of uverbs calls and firmware commands since the last sn_fail_next() */
	uint64_t ioctls, cmds;
	/* after a fork: the device and the contexts that the parent process inherited */
	struct sn_dev *inherited;
	struct sn_ctx *inherited_contexts;
};

/*
 * Enhanced connection establishment (ECE): libmlx5 creates a queue pair with options 0x10000000
 * (verbs.c), and real NICs reply 0x30000002 (NCCL's logs with ConnectX-7: query_ece). A
 * transition that gives the peer's options is answered with those that both sides have. The
 * options have no effect in this NIC.
 */
#define SN_ECE_ASK     0x10000000u
#define SN_ECE_OPTIONS 0x30000002u
static inline uint32_t sn_ece_created(uint32_t options)
{
	return options == SN_ECE_ASK ? SN_ECE_OPTIONS : options & SN_ECE_OPTIONS;
}

struct sn_ah {
	uint32_t handle;
	uint32_t pd;
	uint8_t dgid[16];
};

/* ---- models.c: also linked into softnic-run ---- */
/* A card model's value of a SOFTNIC_* variable; NULL: the same as without a model. */
const char *sn_model_value(const char *model, const char *variable);
bool sn_model_known(const char *model);
void sn_models_text(char *text, size_t len); /* "one of" and the names, separated by commas */
void sn_models_list(FILE *f);		     /* each model with its differences and their sources */

/* ---- addr.c, sysfs.c: also linked into softnic-run ---- */
/* Finds a free loopback address. lid: its last 16 bits must be a valid LID. Returns 0 or -errno. */
int sn_addr_pick(struct in6_addr *ip, bool lid);
bool sn_addr_is_local(const struct in6_addr *ip); /* 127.x.y.z */
bool sn_addr_parse(const char *text, struct in6_addr *ip);
/* Marks the register pages for programs: SOFTNIC_MARK of lossless.h. */
#define SN_UAR_MARK_AT 0x648u
#define SN_UAR_MARK    0x696e74666f736764ull
void sn_guid_of_ip(const struct in6_addr *ip, uint8_t guid[8]);
int sn_sysfs_build(const char *root, const struct sn_cfg *cfg);
void sn_sysfs_remove(const char *root);
int sn_tmp_make(char dir[PATH_MAX]); /* tmp.c: creates a folder for this process; 0 or -errno */
#define SN_PCI_DOMAIN "5043"
#define SN_PCI_ROOT   "pci" SN_PCI_DOMAIN ":00"
#define SN_PCI_ADDR   SN_PCI_DOMAIN ":00:01.0"

/* ---- preload.c: paths of the device and of the generated tree ---- */
const char *sn_redirect(const char *path, char buf[PATH_MAX]);
void sn_unredirect(char *path);

/* ---- uverbs_context.c: opens of the device file ---- */
int sn_ctx_open(int flags);	     /* returns a descriptor for the application or -errno */
struct sn_ctx *sn_ctx_of_fd(int fd); /* NULL: not a descriptor of the NIC */
void sn_ctx_dup(int fd);	     /* call it for each descriptor that dup() etc. made */
void sn_fd_closing(int fd);	     /* call it before the application's close */
bool sn_any_open(void);

/* ---- preload_net.c ---- */
/* Answers an ioctl() about the NIC's network interface: *rc is 0 or -errno. Returns false for
 * other requests and interfaces, and in processes that did not open the NIC. */
bool sn_net_ioctl(unsigned long request, void *arg, long *rc);
void sn_net_opened(int fd);	 /* a netlink socket for links and routes */
void sn_net_closing(int fd);	 /* call it before the application's close */
const char *sn_sysfs_root(void); /* the folder to which /sys is redirected; never NULL */
long sn_ctx_ioctl(struct sn_ctx *ctx, void *arg);

/* ---- objects.c (lock held) ---- */
uint32_t sn_table_add(struct sn_table *t, void *obj); /* returns the index; UINT32_MAX: full */
void sn_table_del(struct sn_table *t, uint32_t idx);
void *sn_table_get(const struct sn_table *t, uint32_t idx);
/* Assigns a number (an index of the table) and a handle to obj. If that fails, obj has neither,
 * and the result is -ENOMEM. */
int sn_obj_publish(struct sn_dev *dev, struct sn_ctx *ctx, enum sn_kind kind, struct sn_table *t,
		   void *obj, uint32_t *idx, uint32_t *handle);
uint32_t sn_handle_add(struct sn_dev *dev, struct sn_ctx *ctx, enum sn_kind kind, void *obj);
void *sn_handle_get(struct sn_dev *dev, struct sn_ctx *ctx, uint64_t handle, enum sn_kind kind);
void sn_handle_del(struct sn_dev *dev, uint32_t handle);
void sn_handle_hide(struct sn_dev *dev, uint32_t handle); /* makes the object an SN_PART */
int sn_obj_destroy(struct sn_dev *dev, enum sn_kind kind, void *obj);
void sn_ctx_destroy_objects(struct sn_dev *dev, struct sn_ctx *ctx);

struct sn_pd *sn_pd_create(struct sn_dev *dev, struct sn_ctx *ctx);
int sn_pd_destroy(struct sn_dev *dev, struct sn_pd *pd);
struct sn_pd *sn_find_pd(struct sn_dev *dev, uint32_t pdn);
/* Creates a region and returns it, or NULL. If from->ksm is set, creates an indirect key, which
 * then owns the ksm; from->lkey gives the low byte of its key. */
struct sn_mr *sn_mr_create(struct sn_dev *dev, struct sn_ctx *ctx, const struct sn_mr *from);
void sn_mr_move(struct sn_dev *dev, struct sn_mr *mr, uint32_t pdn); /* moves it to another PD */
int sn_mr_destroy(struct sn_dev *dev, struct sn_mr *mr);
struct sn_umem *sn_umem_create(struct sn_dev *dev, struct sn_ctx *ctx, const struct sn_umem *from);
void sn_unmap(struct sn_mapping *map);
int sn_umem_destroy(struct sn_dev *dev, struct sn_umem *umem);
struct sn_umem *sn_find_umem(struct sn_dev *dev, uint32_t id);
struct sn_uar *sn_uar_create(struct sn_dev *dev, struct sn_ctx *ctx);
int sn_uar_destroy(struct sn_dev *dev, struct sn_uar *uar);
struct sn_uar *sn_find_uar(struct sn_dev *dev, uint32_t id);
/* sn_*_add() take ownership of a filled object and return 0. On -errno the caller still owns it. */
int sn_cq_add(struct sn_dev *dev, struct sn_ctx *ctx, struct sn_cq *cq);
int sn_cq_destroy(struct sn_dev *dev, struct sn_cq *cq);
int sn_qp_add(struct sn_dev *dev, struct sn_ctx *ctx, struct sn_qp *qp);
/* As sn_qp_add(), with a handle of another kind: SN_SQ, SN_RQ or SN_WQ. */
int sn_qp_add_as(struct sn_dev *dev, struct sn_ctx *ctx, struct sn_qp *qp, enum sn_kind kind);
int sn_qp_destroy(struct sn_dev *dev, struct sn_qp *qp);
int sn_srq_add(struct sn_dev *dev, struct sn_ctx *ctx, struct sn_srq *srq);
int sn_srq_destroy(struct sn_dev *dev, struct sn_srq *srq);
struct sn_srq *sn_find_srq(struct sn_dev *dev, uint32_t srqn);
int sn_ah_destroy(struct sn_dev *dev, struct sn_ah *ah);

/* ---- uverbs_events.c (lock held) ---- */
struct sn_event_queue *sn_events_create(struct sn_dev *dev, struct sn_ctx *ctx, enum sn_kind kind,
					int *fd);
/* decrements users; frees a closed queue without users */
void sn_events_put(struct sn_dev *dev, struct sn_event_queue *q);
void sn_events_free(struct sn_dev *dev, struct sn_event_queue *q);
struct sn_event_queue *sn_events_of_fd(struct sn_dev *dev, int fd);
/* Removes unread events of one object and returns their number. In an asynchronous event file,
 * removes only event types from first_type to last_type. */
uint32_t sn_events_drain(struct sn_event_queue *q, uint64_t element, int first_type, int last_type);

/* ---- uverbs_devx_events.c (lock held) ---- */
void sn_devx_completion(struct sn_dev *dev, const struct sn_cq *cq);
void sn_devx_async(struct sn_dev *dev, const void *obj, uint32_t number, int ibv_event_type);
/* Removes the subscriptions of an object or of a queue that is being destroyed. The other
 * argument is NULL. */
void sn_devx_unsubscribe(struct sn_dev *dev, const void *obj, const struct sn_event_queue *queue);

/* ---- uverbs.c: attributes of one call ---- */
struct sn_call {
	struct sn_dev *dev;
	struct sn_ctx *ctx;
	struct ib_uverbs_ioctl_hdr *hdr;
};

struct ib_uverbs_attr *sn_attr(struct sn_call *c, uint16_t id);
/* Returns an allocated copy of an attribute and its length. NULL: it is absent, or no memory. */
void *sn_attr_dup(struct sn_call *c, uint16_t id, size_t *len);
/* Copies an attribute to dst and fills the rest of the len bytes with zeros. Returns the
 * attribute's length; 0: absent. */
size_t sn_attr_in(struct sn_call *c, uint16_t id, void *dst, size_t len);
uint64_t sn_attr_num(struct sn_call *c, uint16_t id); /* 0 if absent */
int sn_attr_out(struct sn_call *c, uint16_t id, const void *src, size_t len);
void sn_attr_set_handle(struct sn_call *c, uint16_t id, int64_t value);
void *sn_attr_obj(struct sn_call *c, uint16_t id, enum sn_kind kind);
/* If the attribute is absent, *q is the context's own asynchronous queue, or NULL for other
 * kinds. -EBADF: the descriptor is not of this kind or belongs to another context. */
int sn_attr_events(struct sn_call *c, uint16_t id, enum sn_kind kind, struct sn_event_queue **q);
int sn_uverbs_call(struct sn_dev *dev, struct sn_ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr);

typedef int (*sn_method_fn)(struct sn_call *c);
struct sn_method {
	uint16_t object, method;
	/* accepted attributes: bit i is id i (core) or 0x1000 + i (driver) */
	uint32_t core, driver;
	sn_method_fn fn;
};
extern const struct sn_method sn_methods_dev[], sn_methods_obj[], sn_methods_srq[], sn_methods_mr[],
	sn_methods_devx[], sn_methods_devx_events[], sn_methods_flow[], sn_methods_counters[],
	sn_methods_wq[];

/* ---- uverbs_mr.c ---- */
/* True for GPU memory that cannot be registered by address in this configuration. */
bool sn_no_peermem(const struct sn_call *c, uint64_t va, uint64_t len);
/* Gives the NIC access to len bytes at off of a dmabuf and returns their address in *va.
 * -EOPNOTSUPP: dmabufs are not enabled; a kernel without support returns this, too. */
int sn_map_dmabuf(struct sn_call *c, int fd, uint64_t off, uint64_t len, uint32_t access,
		  struct sn_mapping *map, uint64_t *va);

/* uverbs_devx.c: returns the object whose handle is in attribute id, if DEVX commands may use it
 * (QP, CQ, RMP or SRQ, indirect key, Ethernet objects); otherwise NULL. */
void *sn_devx_obj(struct sn_call *c, uint16_t id, enum sn_kind *kind);

/* uverbs_write.c, uverbs_qp.c and others: commands of the older write() interface, which
 * libibverbs sends through the ioctl */
int sn_write_call(struct sn_call *c);
int sn_write_modify_qp(struct sn_call *c, bool ex);
int sn_write_query_qp(struct sn_call *c);
int sn_write_resize_cq(struct sn_call *c);
int sn_write_modify_cq(struct sn_call *c);
int sn_write_reg_mr(struct sn_call *c);
int sn_write_rereg_mr(struct sn_call *c);
int sn_write_modify_srq(struct sn_call *c);
int sn_write_query_srq(struct sn_call *c);
int sn_write_create_flow(struct sn_call *c);
int sn_write_destroy_flow(struct sn_call *c);

/* ---- uverbs_flow.c, uverbs_counters.c ---- */
struct sn_rule;
struct sn_flow_counter;
bool sn_net_raw(void); /* the thread has CAP_NET_RAW, which raw QPs and flow rules require */
int sn_flow_refuse(int rc, const char *why); /* traces the reason and returns rc */
/* Creates a rule. -EEXIST: it contradicts one with the same order, mask and match. */
int sn_flow_add(struct sn_call *c, struct sn_rule *from, struct sn_rule **rule);
/* True if a match on the Ethernet or IPv4 destination selects multicast only. */
bool sn_flow_multicast(const uint8_t *match, const uint8_t *mask);
/* Binds a counters object to a new rule, whose driver data is in UHW_IN. Returns 0 or -errno; on
 * success *counter is what the rule counts in. */
int sn_counters_bind(struct sn_call *c, void *counters, struct sn_flow_counter **counter);

/* ---- uverbs_raw.c, uverbs_wq.c: queues of Ethernet frames, see eth.h ---- */
struct sn_raw;
struct ib_uverbs_ex_modify_qp;
struct ib_uverbs_query_qp_resp;
/* The part of the verbs methods of QPs for raw packet and RSS QPs. */
int sn_raw_create(struct sn_call *c);
int sn_raw_destroy_call(struct sn_call *c, struct sn_raw *raw);
/* to: the state that the call requests; its attribute mask contains known bits only. */
int sn_raw_modify(struct sn_call *c, struct sn_raw *raw, const struct ib_uverbs_ex_modify_qp *in,
		  enum sn_qp_state to);
int sn_raw_query(const struct sn_raw *raw, struct ib_uverbs_query_qp_resp *r);
/* Allocates an SQ or RQ; NULL: no memory. sn_eth_qp_own() gives it to the device or frees it. */
struct sn_qp *sn_eth_qp_alloc(enum sn_qp_type type);
int sn_eth_qp_own(struct sn_call *c, struct sn_qp *qp, enum sn_kind kind);
/* uverbs_objs.c: the time stamp format of a queue that uses cq, or -EOPNOTSUPP. */
int sn_cq_ts_format(const struct sn_cfg *cfg, const struct sn_cq *cq);
int sn_write_modify_wq(struct sn_call *c);
int sn_write_create_rwq_ind_table(struct sn_call *c);

/* ---- cmd.c: firmware ---- */
/* Number and handle of an object that DEVX commands can use. */
uint32_t sn_obj_number(enum sn_kind kind, const void *obj);
uint32_t sn_obj_handle(enum sn_kind kind, const void *obj);
enum sn_status {
	SN_OK = 0,
	SN_ST_BAD_OP = 0x2,
	SN_ST_BAD_PARAM = 0x3,
	SN_ST_BAD_RES = 0x5,
	SN_ST_BUSY = 0x6,
	SN_ST_LIMIT = 0x8,
	SN_ST_INDEX = 0xa,
	SN_ST_NO_RES = 0xf,
	SN_ST_BAD_QP_STATE = 0x10,
	SN_ST_BAD_INP_LEN = 0x50,
	SN_ST_BAD_OUTP_LEN = 0x51,
};

/*
 * The status and syndrome of a ConnectX-4 that had no QP left: CREATE_QP failed with 0x05, not
 * 0x0f (firmware 12.28.2006; linux-rdma list, 27 June 2022).
 */
#define SN_SYND_NO_QP 0x65b500u

struct sn_cmd {
	struct sn_dev *dev;
	struct sn_ctx *ctx;
	const uint8_t *in;
	size_t in_len;
	uint8_t *out;
	size_t out_len;
	uint16_t opcode;
	uint32_t syndrome; /* set together with a status other than SN_OK */
	/* the object that the handle names (query, modify) or that was created */
	enum sn_kind kind;
	void *obj;
};

/* The DEVX method that carries a command. */
enum sn_cmd_class { SN_CMD_GENERAL, SN_CMD_CREATE, SN_CMD_MODIFY, SN_CMD_QUERY };
/* Executes one command. Returns 0; -EREMOTEIO with status and syndrome in the output; or -EINVAL
 * if the command does not name the object of its handle. */
int sn_cmd_exec(struct sn_cmd *cmd, enum sn_cmd_class class);
/* Stores the syndrome, traces the reason and returns status. */
uint8_t sn_cmd_fail(struct sn_cmd *cmd, uint8_t status, uint32_t syndrome, const char *why);
/* True if the context of the command created the object with this handle. The kernel gives each
 * context a user ID, and the firmware refuses numbers of objects of another one. */
bool sn_cmd_owns(const struct sn_cmd *cmd, uint32_t handle);
/* Requires zeros in all bits of the input that are not set in mask, and after the mask. words:
 * length of mask. */
uint8_t sn_cmd_reserved(struct sn_cmd *cmd, const uint32_t *mask, uint32_t words);
/* As sn_cmd_reserved(), but does not check the input after the mask: a list follows there. */
uint8_t sn_cmd_reserved_head(struct sn_cmd *cmd, const uint32_t *mask, uint32_t words);
/* Requires zeros from byte `from` to the end of the input. */
uint8_t sn_cmd_reserved_rest(struct sn_cmd *cmd, size_t from);
/* As sn_cmd_reserved(), for a part of the input that begins at byte `at`. */
uint8_t sn_cmd_reserved_at(struct sn_cmd *cmd, size_t at, const uint32_t *mask, uint32_t words);
/* Address of len bytes at off in a umem; 0: no such umem, or outside it. */
uint64_t sn_cmd_umem(struct sn_cmd *cmd, uint32_t id, uint64_t off, uint64_t len);

/* ---- umem.c ---- */
/* The page size that the kernel chooses for a umem of len bytes at a DMA address; 0: refused. */
uint64_t sn_umem_page(const struct sn_cfg *cfg, uint64_t dma, uint64_t len, uint64_t bitmap);
/* The place of a ring in a umem: `offset` bytes, plus page_offset * 1/64 of the umem's page. */
struct sn_ring {
	uint32_t umem;
	uint64_t offset, len;
	uint32_t page_offset;
};
/* Finds the ring's address. Returns SN_OK or a status. */
uint8_t sn_cmd_ring(struct sn_cmd *cmd, const struct sn_ring *ring, uint32_t syndrome,
		    uint64_t *va);

uint8_t sn_cmd_query_hca_cap(struct sn_cmd *cmd);
uint8_t sn_cmd_query_roce_address(struct sn_cmd *cmd);
uint8_t sn_cmd_query_lag(struct sn_cmd *cmd);
uint8_t sn_cmd_create_cq(struct sn_cmd *cmd);
uint8_t sn_cmd_modify_cq(struct sn_cmd *cmd);
uint8_t sn_cmd_query_cq(struct sn_cmd *cmd);
uint8_t sn_cmd_create_qp(struct sn_cmd *cmd);
uint8_t sn_cmd_modify_qp(struct sn_cmd *cmd);
uint8_t sn_cmd_query_qp(struct sn_cmd *cmd);
/* Reads, checks and reports the fields of a QP context that permit received data in CQEs. */
uint8_t sn_cmd_qp_inline(struct sn_cmd *cmd, struct sn_qp *qp);
/* cmd_mmo.c: reserved bits of a command with a context and its extension; the permission that the
 * extension gives; that of INIT2INIT */
uint8_t sn_cmd_qp_reserved(struct sn_cmd *cmd, const uint32_t *mask);
bool sn_cmd_qp_mmo(const struct sn_cmd *cmd);
uint8_t sn_cmd_init2init_mmo(struct sn_cmd *cmd, struct sn_qp *qp);
void sn_cmd_query_inline(uint8_t *q, const struct sn_qp *qp);
uint8_t sn_cmd_create_rmp(struct sn_cmd *cmd);
uint8_t sn_cmd_modify_rmp(struct sn_cmd *cmd);
uint8_t sn_cmd_query_rmp(struct sn_cmd *cmd);
/* cmd_qp.c: whether a device with capability cap supports a queue's ts_format */
bool sn_ts_format_ok(uint8_t cap, uint32_t format);
uint8_t sn_cmd_create_mkey(struct sn_cmd *cmd);
uint8_t sn_cmd_query_mkey(struct sn_cmd *cmd);
uint8_t sn_cmd_alloc_td(struct sn_cmd *cmd);
uint8_t sn_cmd_alloc_q_counter(struct sn_cmd *cmd);
uint8_t sn_cmd_query_q_counter(struct sn_cmd *cmd);
uint8_t sn_cmd_create_tis(struct sn_cmd *cmd);
uint8_t sn_cmd_modify_tis(struct sn_cmd *cmd);
uint8_t sn_cmd_query_tis(struct sn_cmd *cmd);
uint8_t sn_cmd_create_rqt(struct sn_cmd *cmd);
uint8_t sn_cmd_modify_rqt(struct sn_cmd *cmd);
uint8_t sn_cmd_query_rqt(struct sn_cmd *cmd);
uint8_t sn_cmd_create_tir(struct sn_cmd *cmd);
uint8_t sn_cmd_modify_tir(struct sn_cmd *cmd);
uint8_t sn_cmd_query_tir(struct sn_cmd *cmd);
uint8_t sn_cmd_create_sq(struct sn_cmd *cmd);
uint8_t sn_cmd_modify_sq(struct sn_cmd *cmd);
uint8_t sn_cmd_query_sq(struct sn_cmd *cmd);
uint8_t sn_cmd_create_rq(struct sn_cmd *cmd);
uint8_t sn_cmd_modify_rq(struct sn_cmd *cmd);
uint8_t sn_cmd_query_rq(struct sn_cmd *cmd);
uint8_t sn_cmd_alloc_flow_counter(struct sn_cmd *cmd);
uint8_t sn_cmd_query_flow_counter(struct sn_cmd *cmd);

/* ---- for tests, which find these by dlsym ---- */
/* The nth command from now on fails with this status and syndrome, and the nth uverbs call fails
 * with ENOMEM; 0: none. */
void sn_fail_next(uint32_t nth_cmd, uint8_t status, uint32_t syndrome, uint32_t nth_ioctl);
const struct sn_stats *sn_stats_get(void);
uint32_t sn_objects_live(void);

/* ---- cuda_calls.c ---- */
/* Memory that CUDA exported as a dmabuf. sn_export_of() returns false if no export of this dmabuf
 * was recorded. If several were, it prefers one that has len bytes at off. */
struct sn_export {
	uint64_t va, len;
	bool pcie; /* exported with the PCIe mapping type */
};
bool sn_export_of(int fd, uint64_t off, uint64_t len, struct sn_export *found);

/* ---- stats.c ---- */
void sn_stats_save(struct sn_dev *dev);
void sn_stats_text(struct sn_dev *dev, int fd);
/* Makes room for entry n of an array of records. False: n is SN_GONE_MAX, or no memory. */
bool sn_stats_grow(void **array, uint32_t n, size_t size);

/* ---- stats_eth.c: SQs, RQs and flow rules ---- */
struct sn_rule;
void sn_stats_eth_gone(struct sn_dev *dev, const struct sn_qp *qp); /* call before destruction */
void sn_stats_rule_gone(struct sn_dev *dev, const struct sn_rule *rule);
void sn_stats_eth_forget(struct sn_dev *dev); /* the destroyed ones */
void sn_stats_eth_json(struct sn_dev *dev, FILE *f);
void sn_stats_eth_text(struct sn_dev *dev, int fd);

#endif
