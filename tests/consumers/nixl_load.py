#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Loads the bindings of an unpacked wheel nixl-cu13 without the rest of its package, which needs
# numpy. NIXL must load the plugin GPUNETIO from NIXL_PLUGIN_DIR and report its parameters.
# usage: nixl_load.py WHEEL  (the folder)
# Exit status 77: the wheel is for another version of Python.
import glob
import importlib.machinery
import importlib.util
import os
import sys

PARAMETERS = {"network_devices", "oob_interface", "gpu_devices", "cuda_streams"}

suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
found = glob.glob(f"{sys.argv[1]}/nixl_cu13/_bindings{suffix}")
if not found:
    sys.exit(77)
loader = importlib.machinery.ExtensionFileLoader("_bindings", found[0])
nixl = importlib.util.module_from_spec(importlib.util.spec_from_loader("_bindings", loader))
loader.exec_module(nixl)
agent = nixl.nixlAgent("agent", nixl.nixlAgentConfig(False, False))
parameters, memory = agent.getPluginParams("GPUNETIO")
plugin = os.path.join(os.path.realpath(os.environ["NIXL_PLUGIN_DIR"]), "libplugin_GPUNETIO.so")
with open("/proc/self/maps", encoding="utf-8") as f:
    if plugin not in f.read():
        sys.exit(f"another plugin than {plugin} was loaded")
if set(parameters) != PARAMETERS or "VRAM_SEG" not in memory:
    sys.exit(f"unexpected parameters: {parameters}, {memory}")
print(f"NIXL loads the plugin: parameters {', '.join(sorted(parameters))}")
