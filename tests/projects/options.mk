# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Options for the two programs of each project: put has the merged archive with all doorbell
# strategies, put_proxy the separate archives with one strategy.
PKG_CONFIG ?= pkg-config
GDAKI_CFLAGS := $(shell $(PKG_CONFIG) --cflags gdaki)
GDAKI_LIBS := $(shell $(PKG_CONFIG) --libs gdaki)
PROXY_LIBS := -L$(shell $(PKG_CONFIG) --variable=libdir gdaki) -lgdaki_qp -lgdaki_db_auto \
	-lgdaki_db_cpu_proxy -lgdaki_db_none -lgdaki_cq -lgdaki_uar -lgdaki_umem -lgdaki_core \
	$(shell $(PKG_CONFIG) --variable=system_libs gdaki)
