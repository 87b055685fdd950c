# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# make all | demo | test | bench | check | coverage | fuzz | install | install_examples | deps | clean
# V=1 shows commands, CC=clang changes the compiler, SAN=address|undefined|thread builds into
# build/san-<SAN> with that sanitizer. Nothing here needs CUDA; nvcc is used where it is found.

CC     ?= gcc
ifeq ($(origin CC),default)
CC     := gcc
endif
ifeq ($(origin CXX),default)
CXX    := $(if $(findstring clang,$(CC)),clang++,g++)
endif
PREFIX ?= /usr/local
VERSION := $(shell sed -n 's/^.define GDK_VERSION "\(.*\)"/\1/p' core/gdk_version.h)
SAN    ?=
B      := build$(if $(SAN),/san-$(SAN))
NVCC   ?= $(firstword $(wildcard $(shell command -v nvcc 2>/dev/null) /usr/local/cuda/bin/nvcc))
CUDA_ARCH ?= 80 90 100

WARN   := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
OPT    ?= -O2 -g
SANFLAGS_address   := -fsanitize=address -fno-omit-frame-pointer
SANFLAGS_undefined := -fsanitize=undefined -fno-sanitize-recover=undefined
SANFLAGS_thread    := -fsanitize=thread
ifneq ($(SAN),)
SANFLAGS := $(or $(SANFLAGS_$(SAN)),$(error SAN is address, undefined or thread)) -DGDK_SAN
endif
CFLAGS_ALL := -std=gnu11 -D_GNU_SOURCE -fPIC -pthread $(WARN) $(OPT) $(SANFLAGS) $(COVFLAGS) \
	-MMD -MP -I$(B)/include $(CFLAGS)
CXXFLAGS_ALL := -std=c++17 -D_GNU_SOURCE -fPIC -pthread -Wall -Wextra -Werror $(OPT) \
	$(SANFLAGS) $(COVFLAGS) -MMD -MP -I$(B)/include $(CXXFLAGS)
LDFLAGS_ALL := -pthread $(SANFLAGS) $(COVFLAGS) $(LDFLAGS)

ifeq ($(V),)
Q := @
say = @printf '  %-5s %s\n' $(1) $(patsubst $(CURDIR)/%,%,$@)
else
say = @:
endif

# ---- sources: one list per archive ----
ARCHIVES := core umem uar cq qp
SRCS_core := $(sort $(wildcard core/*.c))
SRCS_umem := $(sort $(wildcard umem/*.c))
SRCS_uar  := $(sort $(wildcard uar/*.c))
SRCS_cq   := $(sort $(wildcard cq/*.c))
SRCS_qp   := $(sort $(wildcard qp/*.c))
DB_STRATEGIES  := gpu_sm bf cpu_proxy
SRCS_db_gpu_sm    := doorbell/gpu_sm.c
SRCS_db_bf        := doorbell/bf.c
SRCS_db_cpu_proxy := $(sort $(wildcard doorbell/cpu_proxy*.c doorbell/service*.c))
SRCS_db_auto      := doorbell/auto.c
DB_ARCHIVES := $(addprefix db_,$(DB_STRATEGIES)) db_auto
SOFTNIC_SRCS := $(sort $(filter-out tests/softnic/softnic_run.c,$(wildcard tests/softnic/*.c)))

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
LIBS := $(patsubst %,$(B)/lib/libgdaki_%.a,$(ARCHIVES) $(DB_ARCHIVES) db_none)
NONE_OBJS := $(patsubst %,$(B)/obj/doorbell/none_%.o,$(DB_STRATEGIES))

# The order that links: everything in one group, the empty slots after it.
LINK_LIBS := -L$(B)/lib -Wl,--start-group $(patsubst %,-lgdaki_%,$(ARCHIVES) $(DB_ARCHIVES)) \
	-Wl,--end-group -lgdaki_db_none
SYS_LIBS := -lmlx5 -libverbs -lnuma -ldl -lpthread

# ---- what is built ----
EXAMPLE_MAINS := $(sort $(wildcard examples/gpunetio_*.c) examples/hello_put.c)
EXAMPLE_COMMON := $(filter-out $(EXAMPLE_MAINS),$(sort $(wildcard examples/*.c)))
EXAMPLES := $(patsubst examples/%.c,$(B)/bin/%,$(EXAMPLE_MAINS))
TESTS    := $(patsubst tests/unit/%.c,$(B)/tests/%,$(sort $(wildcard tests/unit/test_*.c)))
THREADS  := $(patsubst tests/thread/%.c,$(B)/thread/%,$(sort $(wildcard tests/thread/*.c)))
STANDIN_SDK := $(foreach d,sdk sdk_old sdk_broken,$(patsubst %,$(B)/standin/$(d)/libdoca_%.so,common verbs gpunetio))
STANDINS := $(foreach d,standin standin/old,$(B)/$(d)/libcuda.so.1 $(B)/$(d)/libgdrapi.so) $(STANDIN_SDK)
SOFTNIC  := $(B)/lib/libsoftnic.so $(B)/bin/softnic-run
SOAK     := $(B)/soak/soak
HW_PROBE := $(B)/hw/probe
BENCHES  := $(patsubst tests/bench/%.c,$(B)/bench/%,$(sort $(filter-out %/udp.c %/memory.c,$(wildcard tests/bench/*.c))))
CUDA_SO  := $(if $(SAN),,$(if $(NVCC),$(patsubst examples/%_kernel.cu,$(B)/lib/lib%_cuda.so,$(sort $(wildcard examples/*_kernel.cu)))))

.DEFAULT_GOAL := all
.PHONY: all libs demo test test-models check bench coverage fuzz install install_examples deps clean stage \
	build-tests build-fuzz gpu-tests run-demo run-tests link-line nvcc-link-line
.DELETE_ON_ERROR:

libs: $(LIBS)
all: libs $(SOFTNIC) $(EXAMPLES) $(CUDA_SO) $(B)/lib/gdaki.pc $(B)/lib/gdaki-static.pc

# ---- staged headers: symlinks, laid out exactly as they install ----
HDR_top    := $(wildcard core/doca_gpunetio_host.h core/doca_gpunetio_device.h core/doca_gpunetio_config.h)
HDR_common := $(wildcard core/doca_gpunetio_verbs_def.h core/doca_gpunetio_verbs_dev.h)
HDR_host   := $(wildcard core/gdaki.h core/gdk_version.h) $(filter-out $(HDR_top) $(HDR_common),$(wildcard core/doca_*.h)) \
	$(wildcard umem/doca_*.h uar/doca_*.h cq/doca_*.h qp/doca_*.h)
HDR_device := $(wildcard core/*.cuh cq/*.cuh qp/*.cuh doorbell/*.cuh)
HDR_gdk    := $(wildcard core/*_dev.h cq/*_dev.h qp/*_dev.h doorbell/*_dev.h core/platform*.h qp/wqe.h qp/state.h)
HDR_gdk    := $(filter-out $(HDR_top) $(HDR_common) $(HDR_host) core/net_dev.h,$(HDR_gdk))
link-into = $(foreach h,$(2),$(B)/include/$(1)$(notdir $(h)))
STAGED := $(call link-into,,$(HDR_top)) $(call link-into,common/,$(HDR_common)) \
	$(call link-into,host/,$(HDR_host)) $(call link-into,device/,$(HDR_device)) \
	$(call link-into,device/gdk/,$(HDR_gdk))
define stage-rule
$(B)/include/$(1)$(notdir $(2)): | $(2)
	@mkdir -p $$(@D) && ln -sfn $(CURDIR)/$(2) $$@
endef
$(foreach h,$(HDR_top),$(eval $(call stage-rule,,$(h))))
$(foreach h,$(HDR_common),$(eval $(call stage-rule,common/,$(h))))
$(foreach h,$(HDR_host),$(eval $(call stage-rule,host/,$(h))))
$(foreach h,$(HDR_device),$(eval $(call stage-rule,device/,$(h))))
$(foreach h,$(HDR_gdk),$(eval $(call stage-rule,device/gdk/,$(h))))
stage: $(STAGED)

# ---- compile and archive ----
$(B)/obj/%.o: %.c | stage
	$(call say,CC)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -c -o $@ $<

$(B)/obj/doorbell/none_%.o: doorbell/none.c | stage
	$(call say,CC)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -DSTRATEGY=$* -c -o $@ $<

define archive-rule
$(B)/lib/libgdaki_$(1).a: $(call obj,$(SRCS_$(1)))
	$$(call say,AR)
	@mkdir -p $$(@D) && rm -f $$@
	$(Q)ar rcs $$@ $$^
endef
$(foreach a,$(ARCHIVES) $(DB_ARCHIVES),$(eval $(call archive-rule,$(a))))
$(B)/lib/libgdaki_db_none.a: $(NONE_OBJS)
	$(call say,AR)
	@mkdir -p $(@D) && rm -f $@
	$(Q)ar rcs $@ $^

# ---- the software NIC ----
$(B)/lib/libsoftnic.so: $(call obj,$(SOFTNIC_SRCS))
	$(call say,LD)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(LDFLAGS_ALL) -o $@ $^ -lz -ldl -lpthread
$(B)/bin/softnic-run: $(call obj,tests/softnic/softnic_run.c tests/softnic/sysfs.c tests/softnic/addr.c tests/softnic/cfg.c \
		tests/softnic/models.c \
		tests/softnic/tmp.c)
	$(call say,LD)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^

# ---- examples ----
$(EXAMPLES): $(B)/bin/%: $(B)/obj/examples/%.o $(call obj,$(EXAMPLE_COMMON)) $(LIBS)
	$(call say,LD)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(LINK_LIBS) $(SYS_LIBS)

GENCODE := $(foreach a,$(CUDA_ARCH),-gencode arch=compute_$(a),code=sm_$(a))
$(B)/lib/lib%_cuda.so: examples/%_kernel.cu $(HDR_top) $(HDR_common) $(HDR_device) $(HDR_gdk) \
		$(wildcard examples/*.h) | stage
	$(call say,NVCC)
	@mkdir -p $(@D)
	$(Q)$(NVCC) -std=c++17 -O3 $(GENCODE) -I$(B)/include -Xcompiler -fPIC,-Wall -shared \
		-cudart static -o $@ $<

# ---- the test on a GPU: kernels are compiled once for each sharing mode, and some of them in
# the debug build ----
KERNEL_KINDS := EXCLUSIVE CTA GPU DEBUG
kernel-flags = -DGT_LAUNCH=gt_launch_$(1) \
	$(if $(filter DEBUG,$(1)),-DGT_MODE=GPU -DGT_DEBUG -DGDK_DEBUG,-DGT_MODE=$(1))
GPU_TEST := $(if $(NVCC),$(B)/gpu/device)
GPU_TEST_OBJS := $(call obj,$(sort $(wildcard tests/gpu/device*.c))) $(B)/gpu/device_gpu.o \
	$(foreach m,$(KERNEL_KINDS),$(B)/gpu/kernels_$(m).o)
GPU_TEST_DEPS := tests/gpu/device.h $(wildcard tests/gpu/*.cuh) $(HDR_top) $(HDR_common) $(HDR_device) $(HDR_gdk)
nvcc-obj = $(NVCC) -std=c++17 -O3 $(GENCODE) -I$(B)/include -Itests/gpu -Xcompiler -fPIC,-Wall \
	-Xptxas -v -c -o $@ $< >$@.log 2>&1 || { cat $@.log; exit 1; }
$(B)/gpu/kernels_%.o: tests/gpu/device_kernels.cu $(GPU_TEST_DEPS) | stage
	$(call say,NVCC)
	@mkdir -p $(@D)
	$(Q)$(subst -c -o,$(call kernel-flags,$*) -c -o,$(nvcc-obj))
$(B)/gpu/device_gpu.o: tests/gpu/device_gpu.cu $(GPU_TEST_DEPS) | stage
	$(call say,NVCC)
	@mkdir -p $(@D)
	$(Q)$(nvcc-obj)
$(B)/gpu/device: $(GPU_TEST_OBJS) $(call obj,$(sort $(wildcard tests/lib/*.c))) $(LIBS)
	$(call say,LD)
	$(Q)$(NVCC) -cudart static -o $@ $(filter %.o,$^) \
		$(NVCC_LIBS)
gpu-tests: $(GPU_TEST)

# ---- pkg-config ----
# Always written anew: they hold PREFIX, which install may be given another value of.
.PHONY: $(B)/lib/gdaki.pc $(B)/lib/gdaki-static.pc
$(B)/lib/gdaki.pc $(B)/lib/gdaki-static.pc:
	@mkdir -p $(@D)
	@{ printf 'prefix=%s\nlibdir=$${prefix}/lib\nincludedir=$${prefix}/include\napi_level=3.0.0\n\n' '$(PREFIX)'; \
	printf 'Name: gdaki\nDescription: GPU-initiated RDMA on mlx5\nVersion: $(VERSION)\n'; \
	printf 'Cflags: -I$${includedir}$(if $(findstring static,$@), -DRDMA_STATIC_PROVIDERS=mlx5)\n'; \
	printf 'Libs: -L$${libdir} -Wl,--start-group$(patsubst %, -lgdaki_%,$(ARCHIVES) $(DB_ARCHIVES)) -Wl,--end-group -lgdaki_db_none '; \
	$(if $(findstring static,$@),printf '%s\n' '-Wl$(comma)-Bstatic -Wl$(comma)--start-group -lmlx5 -libverbs -Wl$(comma)--end-group -Wl$(comma)-Bdynamic -lnl-route-3 -lnl-3 -lnuma -ldl -lpthread',printf '%s\n' '$(SYS_LIBS)'); } > $@
comma := ,

link-line: ; @echo '$(LINK_LIBS) $(SYS_LIBS)'
# nvcc has a group of its own around all archives, in which the empty slots would come
# before the strategies: those are asked for first.
NVCC_LIBS = $(DB_STRATEGIES:%=-Xlinker --undefined=gdk_doorbell_%) \
	$(filter-out -Wl%,$(LINK_LIBS)) $(SYS_LIBS)
nvcc-link-line: ; @echo '$(NVCC_LIBS)'

# ---- tests ----
# Under a sanitizer the NIC is linked into each test, otherwise softnic-run preloads it.
TEST_NIC := $(if $(SAN),$(call obj,$(SOFTNIC_SRCS)))
TEST_LIB := $(call obj,$(sort $(wildcard tests/lib/*.c)))
# The NIC without its front: the engine tests and two fuzzers have a front of their own.
ENGINE_SRCS := $(addprefix tests/softnic/,engine.c waiting.c writers.c uar_watch.c sq.c requester.c \
	window.c response.c responder.c resource.c rq.c cqe.c mem.c mem_gpu.c guard.c wire.c addr.c ipid.c icrc.c pcap.c \
	fault.c trace.c)
ENGINE_TEST_OBJS := $(call obj,$(ENGINE_SRCS))
ENGINE_TESTS := $(filter $(addprefix $(B)/tests/test_softnic_,engine faults requester responder slow sq unreliable wire),$(TESTS))
$(filter-out $(ENGINE_TESTS),$(TESTS)): $(B)/tests/%: $(B)/obj/tests/unit/%.o $(TEST_LIB) $(TEST_NIC) $(LIBS)
	$(call say,LD)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) $(if $(SAN),-rdynamic) -o $@ $(filter %.o,$^) $(LINK_LIBS) $(SYS_LIBS) -lcriterion -lz -lm
$(ENGINE_TESTS): $(B)/tests/%: $(B)/obj/tests/unit/%.o $(call obj,$(wildcard tests/unit/engine_fake.c)) $(ENGINE_TEST_OBJS)
	$(call say,LD)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcriterion -lz -ldl -lpthread
# Its functions are those of the program for whoever looks: not for the SDK.
$(B)/tests/test_sdk: LDFLAGS_ALL += -rdynamic
$(B)/tests/test_softnic_addr: $(call obj,tests/softnic/addr.c tests/softnic/icrc.c)
# A call for each argument of each public function, from the headers.
API_ARGS := $(B)/obj/tests/lib/api_args.inc
$(API_ARGS): tests/lib/api_args.py $(HDR_host)
	$(call say,GEN)
	@mkdir -p $(@D)
	$(Q)python3 $< $(HDR_host) > $@
$(B)/obj/tests/unit/test_api_args.o: $(API_ARGS)
$(B)/obj/tests/unit/test_api_args.o: CFLAGS_ALL += -I$(dir $(API_ARGS))
$(THREADS): $(B)/thread/%: $(B)/obj/tests/thread/%.o $(TEST_LIB) $(TEST_NIC) $(LIBS)
	$(call say,LD)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(LINK_LIBS) $(SYS_LIBS) -lz -lm
$(B)/bench/nic: $(call obj,tests/bench/udp.c)
$(B)/bench/control_path: $(call obj,tests/bench/memory.c)
$(B)/bench/%: $(B)/obj/tests/bench/%.o $(TEST_LIB) $(LIBS)
	$(call say,LD)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(LINK_LIBS) $(SYS_LIBS) -lm
# The kernels of the GPU test on CPU threads, at both widths of a warp: with less payload, and
# WQEs that carry less, so that an operation soon takes several; the token as on a GPU.
KERNEL_FLAGS := -DGT_PART='(1u << 19)' -DGT_CHUNK_SHIFT=8 -DGDK_TOKEN_FIRST=1
KERNELS := $(B)/thread/kernels_1 $(B)/thread/kernels_32
KERNEL_C := $(sort $(filter-out %/device.c %/device_cases.c %/device_huge.c,$(wildcard tests/gpu/device_*.c)) \
	$(wildcard tests/kernels/*.c))
kernel-objs = $(patsubst %,$(B)/obj/warp_$(1)/%.o,$(basename $(KERNEL_C)) tests/kernels/host_gpu \
	$(foreach m,$(KERNEL_KINDS),tests/kernels/kernels_$(m)))
define kernel-rules
$(B)/obj/warp_$(1)/%.o: %.c | stage
	$$(call say,CC)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CFLAGS_ALL) $(KERNEL_FLAGS) -DGDK_WARP=$(1) -DGT_WARP=$(1) -DGT_BOUND_S=60 -c -o $$@ $$<
$(B)/obj/warp_$(1)/%.o: %.cpp | stage
	$$(call say,CXX)
	@mkdir -p $$(@D)
	$$(Q)$$(CXX) $$(CXXFLAGS_ALL) $(KERNEL_FLAGS) -DGDK_WARP=$(1) -c -o $$@ $$<
$(foreach m,$(KERNEL_KINDS),$(B)/obj/warp_$(1)/tests/kernels/kernels_$(m).o): \
		$(B)/obj/warp_$(1)/tests/kernels/kernels_%.o: tests/gpu/device_kernels.cu | stage
	$$(call say,CXX)
	@mkdir -p $$(@D)
	$$(Q)$$(CXX) -x c++ $$(CXXFLAGS_ALL) $(KERNEL_FLAGS) -DGDK_WARP=$(1) $$(call kernel-flags,$$*) \
		-c -o $$@ $$<
$(B)/thread/kernels_$(1): $$(call kernel-objs,$(1)) $$(TEST_LIB) $$(TEST_NIC) $$(LIBS)
	$$(call say,LD)
	@mkdir -p $$(@D)
	$$(Q)$$(CXX) $$(LDFLAGS_ALL) -o $$@ $$(filter %.o,$$^) $$(LINK_LIBS) $$(SYS_LIBS) -lz -lm
endef
$(foreach w,1 32,$(eval $(call kernel-rules,$(w))))
$(HW_PROBE): $(call obj,$(sort $(wildcard tests/hw/probe*.c))) $(TEST_LIB) $(LIBS)
	$(call say,LD)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(LINK_LIBS) $(SYS_LIBS) -lm
$(SOAK): $(B)/obj/tests/soak/soak.o
	$(call say,LD)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ -libverbs
# In the folder old, each without a function that is needed.
STANDIN_FLAGS_old := -DCUDA_OLD -DGDR_OLD
standin-so = $(CC) $(CFLAGS_ALL) $(STANDIN_FLAGS_$(notdir $(@D))) -shared $(LDFLAGS_ALL) -Wl,-soname,$(1) \
	-Wl,-Bsymbolic -o $@ $<
$(B)/standin/libcuda.so.1 $(B)/standin/old/libcuda.so.1: tests/standin/cuda.c tests/standin/cuda_record.h | stage
	$(call say,LD)
	@mkdir -p $(@D)
	$(Q)$(call standin-so,libcuda.so.1)
$(B)/standin/libgdrapi.so $(B)/standin/old/libgdrapi.so: tests/standin/gdrapi.c | stage
	$(call say,LD)
	@mkdir -p $(@D)
	$(Q)$(call standin-so,libgdrapi.so.2)
# The SDK's folders: as it is, an old one, and one that lacks what is needed. Its
# libraries find common's symbols where that is loaded already, as the real ones do.
SDK_FLAGS_sdk_old    := -DSDK_OLD
SDK_FLAGS_sdk_broken := -DSDK_WITHOUT_MODIFY
$(STANDIN_SDK): $(B)/standin/%.so: $(wildcard tests/standin/sdk*) | stage
	$(call say,LD)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(SDK_FLAGS_$(notdir $(@D))) -shared $(LDFLAGS_ALL) -Wl,-soname,$(@F) \
		-o $@ $(patsubst libdoca_%.so,tests/standin/sdk_%.c,$(@F))

# ---- fuzzers ----
# Each is tests/fuzz/fuzz_X.c with what it drives; the functions named in FUZZ_WRAP are
# those of tests/fuzz/stage.c, so that no thread, clock or network is involved.
FUZZ_X := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
FUZZ_FRONT := $(filter-out tests/softnic/preload%.c,$(SOFTNIC_SRCS))
FUZZ_OF_wire := tests/fuzz/stage.c tests/fuzz/input.c tests/fuzz/rig.c tests/unit/engine_fake.c $(ENGINE_SRCS)
FUZZ_OF_wqe := $(FUZZ_OF_wire)
FUZZ_OF_cmd := tests/fuzz/stage.c tests/fuzz/input.c tests/fuzz/nic.c tests/fuzz/boxes.c $(FUZZ_FRONT)
FUZZ_OF_uverbs := $(FUZZ_OF_cmd) tests/fuzz/uverbs_calls.c
FUZZ_OF_cqe := tests/fuzz/input.c qp/dump.c qp/error.c core/log.c
FUZZ_WRAP := $(foreach f,pthread_create pthread_timedjoin_np clock_gettime bind sendmmsg recvmmsg \
	dlopen sn_wait sn_wait_setup sn_uar_list,-Wl,--wrap=$(f))
FUZZ_WRAP_MEM := $(foreach f,sn_mem_readable sn_mem_writable sn_mem_write,-Wl,--wrap=$(f))
FUZZ_WRAP_cmd := $(FUZZ_WRAP_MEM)
FUZZ_WRAP_uverbs := $(FUZZ_WRAP_MEM)
fuzz-srcs = tests/fuzz/fuzz_$(1).c $(FUZZ_OF_$(1))
# Without libFuzzer, to run the inputs of tests/fuzz/corpus: in any build.
REPLAYS := $(patsubst %,$(B)/fuzz/replay_%,$(FUZZ_X))
define replay-rule
$(B)/fuzz/replay_$(1): $(call obj,tests/fuzz/replay.c $(fuzz-srcs))
	$$(call say,LD)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(LDFLAGS_ALL) $(FUZZ_WRAP) $(FUZZ_WRAP_$(1)) -o $$@ $$^ -lz -ldl -lpthread
endef
$(foreach x,$(FUZZ_X),$(eval $(call replay-rule,$(x))))
# With libFuzzer, which needs clang; what several have in common is compiled once.
FUZZ_CC := $(if $(findstring clang,$(CC)),$(CC),clang)
FUZZ_CFLAGS := -std=gnu11 -D_GNU_SOURCE -DGDK_SAN -g -O1 -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=undefined $(FUZZ_COV) -pthread -MMD -MP -I$(B)/include
FUZZERS := $(patsubst %,$(B)/fuzz/fuzz_%,$(FUZZ_X))
fuzz-obj = $(patsubst %.c,$(B)/fuzz/obj/%.o,$(1))
$(B)/fuzz/obj/%.o: %.c | stage
	$(call say,FUZZ)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(FUZZ_CFLAGS) -c -o $@ $<
define fuzzer-rule
$(B)/fuzz/fuzz_$(1): $(call fuzz-obj,$(fuzz-srcs))
	$$(call say,LD)
	$$(Q)$$(FUZZ_CC) -fsanitize=fuzzer,address,undefined $(FUZZ_COV) -pthread $(FUZZ_WRAP) $(FUZZ_WRAP_$(1)) -o $$@ $$^ -lz -ldl
endef
$(foreach x,$(FUZZ_X),$(eval $(call fuzzer-rule,$(x))))
build-fuzz: $(FUZZERS)
build-tests: all $(if $(filter thread,$(SAN)),,$(TESTS) $(REPLAYS)) $(THREADS) $(KERNELS) $(STANDINS) $(if $(SAN),,$(SOAK) $(HW_PROBE))

# demo and test first install what is missing, then start make again, so that what was
# just installed is seen.
demo:
	@tests/deps.sh build demo
	@$(MAKE) --no-print-directory all
	@$(MAKE) --no-print-directory run-demo
run-demo:
	@examples/demo.sh

test:
	@tests/deps.sh build demo test fuzz
	@$(MAKE) --no-print-directory build-tests
	@$(MAKE) --no-print-directory run-tests
run-tests:
	@B=$(B) SAN=$(SAN) CC=$(CC) NVCC=$(NVCC) tests/run.sh

# Every card model of the software NIC, all of it; `make test` has a short form.
test-models: build-tests
	@B=$(B) tests/models.sh

check: all
	@B=$(B) CC=$(CC) NVCC=$(NVCC) tests/run.sh check

bench: all $(BENCHES)
	@B=$(B) tests/bench/run.sh

# FUZZ_SECONDS in all, shared by the fuzzers; FUZZ_JOBS processes of each at a time. A
# finding is a non-zero exit and a file in build/fuzz/found.
FUZZ_SECONDS ?= 150
FUZZ_JOBS ?= 1
fuzz:
	@tests/deps.sh build fuzz
	@$(MAKE) --no-print-directory build-fuzz
	@B=$(B) tests/fuzz/run.sh $(FUZZ_SECONDS) $(FUZZ_JOBS)

coverage:
	@tests/deps.sh build demo test
	@$(MAKE) --no-print-directory B=build/coverage COVFLAGS=--coverage OPT='-O0 -g' NVCC= build-tests
	@B=build/coverage tests/coverage.sh

deps:
	@tests/deps.sh build demo test

# ---- install ----
install: all
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(LIBS) $(DESTDIR)$(PREFIX)/lib
	install -m 644 $(B)/lib/gdaki.pc $(B)/lib/gdaki-static.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig
	cd $(B)/include && find . -type l -exec install -D -m 644 {} $(DESTDIR)$(PREFIX)/include/{} \;
install_examples: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib
	install -m 755 $(EXAMPLES) $(DESTDIR)$(PREFIX)/bin
	$(if $(CUDA_SO),install -m 755 $(CUDA_SO) $(DESTDIR)$(PREFIX)/lib)

clean:
	rm -rf build

-include $(shell find $(B)/obj $(B)/fuzz/obj -name '*.d' 2>/dev/null)
