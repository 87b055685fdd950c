#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""
Reads the public host headers and writes the calls of test_api_args.c: for each invalid
value of each argument, a call with this value and with valid values of the other arguments.
Invalid values are NULL for a pointer that is not in NULLABLE, values without an enumerator
for an enum, and those in the table BAD for a number. A function without a comment, a number
without an entry in BAD or a type without a valid value is an error, so that a new function
cannot stay without a test.

With --sdk, for the headers of the SDK's interface, an opaque object that is not in GOOD is zeroed
memory: the functions check all arguments before they use one.

usage: api_args.py [--sdk] HOST_HEADERS...
"""
import re
import sys

# Valid arguments by type: members of the test's fixture.
GOOD = {
    "doca_gpu_t *": "g.gpu",
    "doca_dev_t *": "g.nic.dev",
    "struct ibv_context *": "g.nic.ctx",
    "struct ibv_pd *": "g.nic.pd",
    "doca_verbs_umem_t *": "g.umem",
    "doca_verbs_uar_t *": "g.hl->external_uar",
    "doca_verbs_cq_t *": "g.hl->cq_sq",
    "doca_verbs_cq_attr_t *": "g.cq_attr",
    "doca_verbs_qp_t *": "g.hl->qp",
    "doca_verbs_qp_attr_t *": "g.qp_attr",
    "doca_verbs_qp_init_attr_t *": "g.init_attr",
    "doca_verbs_ah_attr_t *": "g.ah_attr",
    "struct doca_verbs_srq *": "g.srq",
    "struct doca_verbs_srq_init_attr *": "g.srq_attr",
    "struct doca_verbs_device_attr *": "g.device_attr",
    "struct doca_gpu_verbs_qp_init_attr_hl *": "&g.hl_attr",
    "struct doca_gpu_verbs_qp_hl *": "g.hl",
    "struct doca_gpu_verbs_qp_group_hl *": "g.group",
    "struct doca_gpu_verbs_qp *": "g.hl->qp_gverbs",
    "struct doca_gpu_dev_verbs_qp *": "g.qp_dev",
    "struct gdk_service_attr *": "&g.service_attr",
    "struct gdk_events *": "g.events",
    "struct doca_verbs_gid": "g.gid",
    "doca_gpu_verbs_service_t": "g.service",
    "char *": "g.text",
    "void *": "g.page",
    "bool": "true",
}
# Valid arguments by FUNCTION.ARGUMENT, where the type is not specific enough.
GOOD_ARG = {
    "doca_gpu_create.gpu_bus_id": '"host"',
    "doca_gpu_verbs_can_gpu_register_uar.db": "g.db_reg",
    "doca_gpu_verbs_export_uar.sq_db": "g.db_reg",
    "doca_gpu_verbs_unexport_uar.uar_addr_gpu": "g.db_reg",
    "doca_gpu_verbs_export_qp.qp": "g.bare->qp",
    "doca_gpu_verbs_export_qp.cq_sq": "g.bare->cq_sq",
    "*.qps": "&g.hl->qp_gverbs",
    "*.qp_list": "&g.hl",
    "*.dmabuf_id": "-1",
    "*.device_code_version": "DOCA_GPUNETIO_VERSION",
    "*.host_code_version": "DOCA_GPUNETIO_VERSION",
    "*.nic_handler": "g.bare->nic_handler",
    "*.send_dbr_mode_ext": "g.bare->send_dbr_mode_ext",
    "*.qp_type": "DOCA_VERBS_QP_TYPE_RC",
    "*.size": "64",
    "*.mtype": "DOCA_GPU_MEM_TYPE_CPU_GPU",
}
# Pointers for which NULL is valid, and what NULL means or why it is valid.
NULLABLE = {
    "doca_verbs_umem_create.gpu": "host memory",
    "doca_gpu_verbs_export_qp.gpu_qp_umem_dev_ptr": "the umem knows it",
    "doca_gpu_verbs_cpu_proxy_progress.out_progressed": "need not be known",
    "doca_verbs_qp_query.attr_mask": "need not be known",
    "*.cq_context": "the caller's own",
    "*.qp_context": "the caller's own",
    "doca_verbs_*_attr_set_external_*.external_*": "takes it back",
    "doca_verbs_qp_init_attr_set_*.srq": "takes it back",
    "doca_verbs_qp_init_attr_set_*.send_cq": "takes it back",
    "doca_verbs_qp_init_attr_set_*.receive_cq": "takes it back",
    "doca_verbs_qp_init_attr_set_pd.net_dev": "that of the QP's device",
}
# Numbers that are out of range, by FUNCTION.ARGUMENT. The list is empty if every number is
# in range, or if the range depends on the other arguments, which other tests cover.
BAD = {
    "doca_gpu_mem_alloc.size": ["0"],
    "doca_gpu_mem_alloc.alignment": ["3", "4097"],
    "doca_gpu_get_dmabuf_fd.size": ["0"],
    "gdk_gpu_get_dmabuf_fd_pcie.size": ["0"],
    "doca_verbs_umem_create.size": ["0"],
    "doca_verbs_umem_create.dmabuf_offset": [],
    "doca_verbs_umem_create.access_flags": [],
    "*.dmabuf_id": ["-2"],
    "*.device_code_version": ["0", "0xffffffff"],
    "*.host_code_version": ["0", "0xffffffff"],
    "*.num_elems": ["0"],
    "*.num_qps": ["0"],
    "*.dlid": ["0x10000"],
    "*.sl": ["16"],
    "*.static_rate": ["16"],
    "*.sgid_index": [],
    "*.hop_limit": [],
    "*.traffic_class": [],
    "*.cq_size": ["0"],
    "*.cc": ["2"],
    "*.qp_type": ["2", "0xffffffff"],
    "*.sq_sig_all": [],
    "*.sq_wr": [],
    "*.rq_wr": [],
    "*.send_max_sges": [],
    "doca_verbs_qp_init_attr_set_receive_max_sges.*": [],
    "*.max_inline_data": [],
    "*.user_index": ["1 << 24"],
    "*.core_direct_master": ["2"],
    "*.cqe_inline": ["2"],
    "*.copy_engine": ["2"],
    "*.rq_psn": [],
    "*.sq_psn": [],
    "*.dest_qp_num": ["1 << 24"],
    "*.allow_remote_*": [],
    "*.pkey_index": [],
    "*.port_num": ["0", "256"],
    "*.ack_timeout": ["32"],
    "*.retry_cnt": ["8"],
    "*.rnr_retry": ["8"],
    "*.min_rnr_timer": ["32"],
    "*.max_rd_atomic": [],
    "*.max_dest_rd_atomic": [],
    "doca_verbs_qp_modify.attr_mask": ["1 << 18", "-1"],
    "doca_verbs_srq_init_attr_set_srq_wr.srq_wr": ["0"],
    "doca_verbs_srq_init_attr_set_receive_max_sges.*": ["0"],
    "doca_verbs_cq_attr_set_external_umem.external_umem_offset": ["1", "63"],
    "*.external_umem_offset": [],
    "*.ns": [],
    "*.syndrome": ["-1", "0", "256"],
    "gdk_verbs_qp_attr_set_lag_port.port": ["16"],
    "gdk_verbs_qp_attr_set_log_ack_req_freq.log": ["9"],
    "*.index": [],
    "gdk_dump_*.size": [],
    "gdk_verbs_qp_dump_*.size": ["0"],
    "gdk_dump_wqe.slots": [],
    "gdk_verbs_create_qp*_hl.flags": ["4", "0x80000001"],
}
SDK_GOOD = {
    "struct doca_dev *": "g.dev",
    "struct doca_gpu *": "g.gpu",
    "struct doca_verbs_gid": "g.gid",
    "union doca_data": "g.data",
    "struct doca_verbs_context *": "g.context",
    "FILE *": "stderr",
}
SDK_GOOD_ARG = {
    "doca_verbs_bridge_verbs_context_create.flags": "0",
    "doca_eth_rxq_*.type": "DOCA_ETH_RXQ_TYPE_CYCLIC",
}
SDK_NULLABLE = {
    "doca_flow_pipe_cfg_set_match.match*": "takes it back",
    "doca_flow_pipe_create.fwd_miss": "none",
    "doca_flow_pipe_basic_add_entry.(match|actions|monitor|fwd|usr_ctx)": "none, or the pipe's",
    "doca_flow_pipe_control_add_entry.(match*|condition|actions*|action_descs|monitor|usr_ctx)":
        "none",
    "gdk_eth_txq_get_nic_handler.reasons": "need not be known",
    "gdk_dma_get_engine.max_bytes": "need not be known",
    "doca_buf_dec_refcount.refcount": "need not be known",
    "doca_mmap_create_from_export.user_data": "not used",
    "doca_rdma_set_connection_state_callbacks.*_cb": "none",
    "doca_gpu_verbs_export_qp.(gpu_qp_umem_dev_ptr|cq_rq)": "the umem knows it; not exported",
    "doca_verbs_*_attr_set_external_*.external_*": "takes it back",
    "doca_verbs_qp_init_attr_set_(pd|send_cq|receive_cq).(pd|send_cq|receive_cq)": "takes it back",
    "doca_rdma_(addr_create|connect_to_addr|connection_accept).*": "they are not supported",
    "doca_devinfo_rep_create_list.filter": "representors are not supported",
}
SDK_BAD = {
    "doca_eth_rxq_*.max_burst_size": ["0"],
    "doca_eth_txq_create.max_burst_size": ["0", "32769"],
    "*.max_packet_size": ["0", "16385"],
    "*.enable_l[34]_chksum_offload": ["2"],
    "doca_eth_rxq_estimate_packet_buf_size.max_(packet|burst)_size": ["0"],
    "doca_flow_port_cfg_set_port_id.port_id": [],
    "*.num_elem*": ["0"],
    "*.elem_size": ["0"],
    "*.element_size": ["0"],
    "*.external_datapath_en": ["0", "2"],
    "*.nr_counters": [],
    "*.num_items": ["0"],
    "gdk_dma_set_queue_size.requests": ["0"],
    "doca_dma_task_memcpy_set_conf.num_tasks": ["0"],
    "doca_gpu_dmabuf_fd.size": ["0"],
    "doca_u*_create.size": ["0"],
    "*.max_num_connections": ["0"],
    "*.level": ["1"],
    "*": [],  # every number is in range, or it depends on the object: other tests
}
# Names of arguments in the log, if they are not those of the header.
SDK_LOGGED_AS = {
    "doca_verbs_(cq|qp|qp_init)_attr_create.*": "verbs_{}",
    "doca_verbs_qp_(destroy|modify).verbs_qp": "qp",
    "doca_buf_inventory_buf_get_by_data.data": "addr",
}
NUMBER = re.compile(r"(u?int\d*(_t)?|unsigned int|size_t)$")
TEXT = {"doca_error_get_name", "doca_error_get_descr", "gdk_handler_name", "gdk_event_text",
        "gdk_syndrome_text", "gdk_syndrome_cause", "gdk_dma_engine_text"}


def look_up(table, fn, arg):
    """Returns the most specific entry that matches: the one with the fewest '*'."""
    for key in sorted(table, key=lambda k: k.count("*")):
        if re.fullmatch(key.replace(".", r"\.").replace("*", ".*"), f"{fn}.{arg}"):
            return table[key]
    return None


def prototypes(path):
    """Yields return type, name, name of the symbol, which the log has, and arguments."""
    text = re.sub(r"/\*.*?\*/", "", open(path, encoding="utf-8").read(), flags=re.S)
    text = re.sub(r"#ifdef __cplusplus\n(.*?)(?:#else\n(.*?))?#endif",
                  lambda m: m.group(2) or "", text, flags=re.S)
    # of two versions of the SDK, the newer one
    text = re.sub(r"#ifndef GDK_DOCA_FLOW_3_2\n(.*?)#else\n.*?#endif", r"\1", text, flags=re.S)
    text = re.sub(r"^#.*(?:\\\n.*)*$", "", text, flags=re.M)
    for m in re.finditer(r"([A-Za-z_][\w\s*]*?)\b((?:doca|gdk)_\w+)\s*\(([^()]*)\)"
                         r"\s*(?:GDK_DOCA_NAME\((\w+)\)\s*)?;", text):
        args = [re.match(r"(.*?)(\w+)$", re.sub(r"(\w+)\[\]", r"*\1", " ".join(a.split()))).groups()
                for a in m.group(3).split(",") if a.strip() != "void"]
        yield (" ".join(m.group(1).split()), m.group(2), m.group(4) or m.group(2),
               [(t.strip(), n) for t, n in args])


def good(fn, kind, name):
    plain = kind.replace("const ", "")
    found = look_up(GOOD_ARG, fn, name) or GOOD.get(plain)
    if found:
        return found
    if kind.endswith("_cb_t"):
        return f"({kind})(void *)g.object"
    if sdk and re.fullmatch(r"struct (doca|gdk|ibv)_\w+ \*", plain):
        return "(void *)g.object"
    if plain.endswith("*"):
        return "(void *)api_out"
    if NUMBER.match(plain) or plain.startswith("enum ") or plain == "doca_error_t":
        return "1"
    sys.exit(f"api_args.py: {fn}: no valid value of type {kind} is known for {name}")


def wrong(fn, kind, name):
    if kind.endswith(("*", "_cb_t")) or kind == "doca_gpu_verbs_service_t":
        return [] if look_up(NULLABLE, fn, name) else ["NULL"]
    if kind.startswith("enum ") or kind == "doca_error_t":
        return [] if look_up(NULLABLE, fn, name) else ["-1", "99"]
    if not NUMBER.match(kind):
        return []
    values = look_up(BAD, fn, name)
    if values is None:
        sys.exit(f"api_args.py: {fn}: no entry in BAD for the number {name}")
    return values


WIDTH = {"uint8_t": 8, "uint16_t": 16, "size_t": 64, "uint64_t": 64}


def printed(kind, bad):
    """Returns the value as a log line prints it."""
    if bad == "NULL":
        return bad
    number = eval(bad)
    if number >= 0 or not kind.startswith("u"):
        return str(number)
    return str(number % (1 << WIDTH.get(kind, 32)))


def calls(result, fn, args):
    judge = "HAS_TEXT" if fn in TEXT else {"doca_error_t": "REFUSES", "void": "DOES_NOTHING"}.get(
        result, "IS_ZERO")
    for i, (kind, name) in enumerate(args):
        for bad in wrong(fn, kind, name):
            value = f"({kind})({bad})" if bad != "NULL" else bad
            given = [good(fn, k, n) if i != j else value for j, (k, n) in enumerate(args)]
            logged = (look_up(LOGGED_AS, fn, name) or "{}").format(name)
            yield f'\t{judge}("{logged}", "{printed(kind, bad)}", {fn}({", ".join(given)}));'


def undocumented(path):
    """Yields functions without a comment before them in their paragraph of the header."""
    text = re.sub(r"\n#.*", "", open(path, encoding="utf-8").read())
    for part in re.split(r"\n\s*\n", text):
        code = re.sub(r"/\*.*?\*/", lambda m: " " * len(m.group()), part, flags=re.S)
        for m in re.finditer(r"\b((?:doca|gdk)_\w+)\s*\([^()]*\)\s*;", code):
            if "/*" not in part[:m.start()]:
                yield m.group(1)


sdk = sys.argv[1] == "--sdk"
LOGGED_AS = {}
if sdk:
    GOOD = {"void *": "g.page", "char *": "g.text", "bool": "true", **SDK_GOOD}
    GOOD_ARG = SDK_GOOD_ARG
    NULLABLE, BAD, LOGGED_AS = SDK_NULLABLE, {**BAD, **SDK_BAD}, SDK_LOGGED_AS
names = []
for header in sys.argv[1 + sdk:]:
    bare = list(undocumented(header))
    if bare:
        sys.exit(f"api_args.py: {header}: no comment above: {' '.join(bare)}")
    for ret, function, symbol, arguments in prototypes(header):
        print(f"static void wrong_{function}(void)\n{{")
        print(f"\tstatic const char fn[] = \"{symbol}\";\n")
        print("\t(void)fn;\n" + "\n".join(calls(ret, function, arguments)) + "\n}")
        names.append(function)
print("static const struct wrong wrongs[] = {")
print("\n".join(f'\t{{ "{n}", wrong_{n} }},' for n in names) + "\n};")
