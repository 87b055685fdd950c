# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The programs that the tests consist of, and the targets that run them.
TESTS    := $(patsubst tests/unit/%.c,$(B)/tests/%,$(sort $(wildcard tests/unit/test_*.c)))
THREADS  := $(patsubst tests/thread/%.c,$(B)/thread/%,$(sort $(wildcard tests/thread/*.c)))
STANDIN_SDK := $(foreach d,sdk sdk_old sdk_broken,$(patsubst %,$(B)/standin/$(d)/libdoca_%.so,common verbs gpunetio)) $(B)/standin/sdk/libdoca_other.so
STANDINS := $(foreach d,standin standin/old,$(B)/$(d)/libcuda.so.1 $(B)/$(d)/libgdrapi.so) $(STANDIN_SDK)
SOAK     := $(B)/soak/soak $(B)/soak/eth_peer
RECV_QUEUE := $(B)/soak/recv_queue
RDMA_CONNS := $(B)/soak/rdma_conns
RESPONDER := $(B)/responder/responder
HW_PROBE := $(B)/hw/probe
BENCHES  := $(patsubst tests/bench/%.c,$(B)/bench/%,$(sort $(filter-out %/udp.c %/memory.c,$(wildcard tests/bench/*.c))))
TEST_LIB := $(call obj,$(sort $(wildcard tests/lib/*.c)))
# They find a missing lock (lib/unlock.c).
UNLOCK := -Wl,--wrap=pthread_mutex_unlock,--wrap=pthread_spin_unlock
# softnic-run preloads the NIC, except in a build with a sanitizer: there each program links it.
TEST_NIC := $(if $(SAN),$(call obj,$(SOFTNIC_SRCS)))
# Without inlining the compiler cannot see that lanes that set no variable do not read it either.
FEWER_INLINED := -include tests/lib/fewer_inlined.h \
	$(if $(findstring clang,$(CXX)),-Wno-unneeded-internal-declaration,-Wno-maybe-uninitialized)
# No optimization of unit tests, no variables in the debug information and fewer inlined functions, so
# that the tests compile in less than half the time. Device functions in *_dev.c are optimized; those
# in thread/*.c are compiled as in a program. Three tests that compute most of the time are optimized, too.
# `make OPT=...` overrides all of this.
TEST_OBJS = $(patsubst %,$(B)/obj/tests/%.o,$(1))
TEST_UNIT_OPT := $(if $(SAN),-O1,-O0) -g1 $(FEWER_INLINED)
TEST_OPT := -O1 -g1
TEST_DEV_OPT := -O2 -g1
$(call TEST_OBJS,lib/% gpu/% hw/% fuzz/%): OPT = $(TEST_OPT)
$(call TEST_OBJS,unit/%): OPT = $(TEST_UNIT_OPT)
$(call TEST_OBJS,unit/test_doca_semaphore unit/test_qp_mixed unit/test_softnic_slow): OPT = $(TEST_OPT) $(FEWER_INLINED)
$(call TEST_OBJS,unit/%_dev): OPT = $(TEST_DEV_OPT) $(FEWER_INLINED)
$(call TEST_OBJS,thread/%): OPT = $(TEST_DEV_OPT)
ALL_LIBS := $(LINK_LIBS) $(SYS_LIBS)
# gold links a test in a third of ld's time.
TEST_LD = $(eval TEST_LD := $(shell $(CC) -fuse-ld=gold -Wl,--version >/dev/null 2>&1 && echo -fuse-ld=gold))$(TEST_LD)
$(TESTS) $(THREADS): LDFLAGS_ALL += $(TEST_LD)

# ---- unit tests ----
ENGINE_TESTS := $(filter $(B)/tests/test_eth_% $(addprefix $(B)/tests/test_softnic_,dma engine faults lost peer requester responder slow sq unreliable wait wire),$(TESTS))
$(B)/tests/test_report: $(call obj,$(sort $(wildcard examples/common/report*.c)))
$(B)/tests/test_report: ALL_LIBS += -ljson-c
$(filter-out $(ENGINE_TESTS),$(TESTS)): $(B)/tests/%: $(B)/obj/tests/unit/%.o $(TEST_LIB) $(TEST_NIC) $(LIBS)
	$(call link,$(if $(SAN),-rdynamic) $(UNLOCK) $(ALL_LIBS) -lcriterion -lz -lm)
# The tests of the watch drive its clock.
$(B)/tests/test_watch $(B)/tests/test_watch_connect: ALL_LIBS += -Wl,--wrap=pthread_cond_timedwait
$(B)/tests/test_watch: ALL_LIBS += -Wl,--wrap=gdk_cpu_wait_ns
# Tests of the SDK's interface.
DOCA_TESTS := $(filter $(B)/tests/test_doca_%,$(TESTS))
$(call TEST_OBJS,unit/test_doca_% thread/doca_%): INC += $(INC_DOCA)
$(DOCA_TESTS): ALL_LIBS := -L$(B)/lib $(SDK_LINK_LIBS) $(ALL_LIBS)
$(DOCA_TESTS): $(SDK_LIBS)
$(ENGINE_TESTS): $(B)/tests/%: $(B)/obj/tests/unit/%.o $(call obj,tests/unit/engine_fake.c $(SOFTNIC_ENGINE))
	$(call link,$(WRAPPED:%=-Wl,--wrap=%) -lcriterion -lz -ldl -lpthread)
# The tests of Ethernet send queues define these functions.
$(filter $(B)/tests/test_eth_send%,$(ENGINE_TESTS)): WRAPPED = sn_eth_transmit sn_frame_get sn_frame_put sn_clock_stamp \
	sn_gpu_read sn_gpu_read_ahead
# The tests of the wire of raw Ethernet replace the receive queues.
$(addprefix $(B)/tests/test_eth_,wire wire6 peers pause pause_peer packet): WRAPPED = sn_eth_receive sn_eth_wants sn_eth_sq_due
$(B)/tests/test_softnic_addr: $(call obj,tests/softnic/addr.c tests/softnic/icrc.c)
# api_args.py generates, from the headers, a call for each argument of each public function.
API_ARGS := $(B)/obj/tests/lib/api_args.inc $(B)/obj/tests/lib/doca_api_args.inc
HDR_doca_host := $(filter-out %_dev.h %_shape.h,$(filter %.h,$(HDR_doca))) $(wildcard qp/doca/include/doca_dev.h)
$(B)/obj/tests/lib/api_args.inc: $(filter %.h,$(foreach d,$(LAYERS),$(filter $(d)/include/host/%,$(HDR))))
$(B)/obj/tests/lib/doca_api_args.inc: API_KIND := --sdk
$(B)/obj/tests/lib/doca_api_args.inc: $(HDR_doca_host)
$(API_ARGS): tests/lib/api_args.py
	$(call say,GEN)
	@mkdir -p $(@D)
	$(Q)python3 $< $(API_KIND) $(filter %.h,$^) > $@
$(B)/obj/tests/unit/test_api_args.o $(B)/obj/tests/unit/test_doca_api_args.o: $(API_ARGS)
$(B)/obj/tests/unit/test_api_args.o $(B)/obj/tests/unit/test_doca_api_args.o: CFLAGS_ALL += -I$(dir $(firstword $(API_ARGS)))

# ---- programs of threads, hardware comparison, soak, benchmarks ----
$(THREADS): $(B)/thread/%: $(B)/obj/tests/thread/%.o $(TEST_LIB) $(TEST_NIC) $(LIBS)
	$(call link,$(UNLOCK) $(ALL_LIBS) -lz -lm)
RDMA_THREADS := $(filter $(B)/thread/rdma_%,$(THREADS))
$(call TEST_OBJS,thread/rdma_%): INC += $(INC_DOCA)
$(RDMA_THREADS): ALL_LIBS := -L$(B)/lib $(SDK_LINK_LIBS) $(ALL_LIBS)
$(RDMA_THREADS): $(SDK_LIBS)
$(HW_PROBE): $(call obj,$(sort $(wildcard tests/hw/probe*.c))) $(TEST_LIB) $(LIBS)
	$(call link,$(ALL_LIBS) -lm)
$(SOAK): $(B)/soak/%: $(B)/obj/tests/soak/%.o
	$(call link,-libverbs)
$(RECV_QUEUE): $(B)/obj/tests/soak/recv_queue.o $(TEST_LIB) $(LIBS)
	$(call link,$(ALL_LIBS) -lm)
$(RDMA_CONNS): $(B)/obj/tests/soak/rdma_conns.o $(LIBS) $(SDK_LIBS)
	$(call link,-L$(B)/lib $(SDK_LINK_LIBS) $(ALL_LIBS) -lm)
$(B)/obj/tests/soak/rdma_conns.o: INC += $(INC_DOCA)
$(RESPONDER): $(call obj,tests/responder/answer.c tests/responder/responder.c)
	$(call link,-libverbs -lz)
$(B)/bench/nic $(B)/bench/eth_pair: $(call obj,tests/bench/udp.c)
$(B)/bench/control_path: $(call obj,tests/bench/memory.c)
$(B)/obj/tests/bench/rdma.o: INC += $(INC_DOCA)
$(B)/bench/rdma: ALL_LIBS := -L$(B)/lib $(SDK_LINK_LIBS) $(ALL_LIBS)
$(B)/bench/rdma: $(SDK_LIBS)
# Has only code of the device path, so that it can be built on a machine without rdma-core.
$(B)/bench/recv: $(B)/obj/tests/bench/recv.o
	$(call link,-lpthread)
$(B)/obj/tests/bench/dma.o: INC += $(INC_DOCA)
$(B)/bench/dma: $(B)/obj/tests/bench/dma.o
	$(call link,-lpthread)
$(B)/bench/%: $(B)/obj/tests/bench/%.o $(TEST_LIB) $(LIBS)
	$(call link,$(ALL_LIBS) -lm)

# ---- the test on a GPU ----
# Kernels are compiled once for each sharing mode of queue pairs; some also in a debug build.
KERNEL_KINDS := EXCLUSIVE CTA GPU DEBUG
kernel-flags = -DGT_LAUNCH=gt_launch_$(1) \
	$(if $(filter DEBUG,$(1)),-DGT_MODE=GPU -DGT_DEBUG -DGDK_DEBUG,-DGT_MODE=$(1))
GPU_TEST_OBJS := $(call obj,$(sort $(wildcard tests/gpu/device*.c))) $(B)/gpu/device_gpu.o \
	$(foreach m,$(KERNEL_KINDS),$(B)/gpu/kernels_$(m).o)
$(call TEST_OBJS,gpu/device_rdma): INC += $(INC_DOCA)
GPU_TEST_DEPS := tests/gpu/device.h $(wildcard tests/gpu/*.cuh) $(HDR) $(NVCC_OPTIONS)
define nvcc-obj # $(1): added to the options
	$(call say,NVCC)
	@mkdir -p $(@D)
	$(Q)$(NVCC) -std=c++17 -O3 $(GENCODE) $(INC_PUBLIC) $(INC_DOCA) -Itests/gpu -Xcompiler -fPIC $(NVCC_WARN) \
		-Xptxas -v $(1) -c -o $@ $< >$@.log 2>&1 || { cat $@.log; exit 1; }
endef
$(B)/gpu/kernels_%.o: tests/gpu/device_kernels.cu $(GPU_TEST_DEPS) | stage
	$(call nvcc-obj,$(call kernel-flags,$*))
$(B)/gpu/device_gpu.o: tests/gpu/device_gpu.cu $(GPU_TEST_DEPS) | stage
	$(call nvcc-obj)
$(B)/gpu/device: $(GPU_TEST_OBJS) $(TEST_LIB) $(LIBS)
	$(call say,LD)
	$(Q)$(NVCC) $(CUDAHOSTCXX:%=-ccbin %) -cudart static -o $@ $(filter %.o,$^) $(LINK_LIBS) $(SYS_LIBS)
$(B)/gpu/spin.o: tests/gpu/spin.cu tests/gpu/spin_c.h $(NVCC_OPTIONS) | stage
	$(call nvcc-obj)
$(B)/gpu/spin: $(B)/gpu/spin.o $(call obj,tests/gpu/spin_nic.c) $(TEST_LIB) $(LIBS)
	$(call say,LD)
	$(Q)$(NVCC) $(CUDAHOSTCXX:%=-ccbin %) -cudart static -o $@ $(filter %.o,$^) $(LINK_LIBS) $(SYS_LIBS)
# The test of Ethernet queues.
ETH_TEST_C := $(sort $(wildcard tests/gpu/eth_*.c))
ETH_TEST_MODES := EXCLUSIVE CTA GPU
ETH_TEST_DEPS := tests/gpu/eth.h $(HDR_doca) $(HDR) $(NVCC_OPTIONS)
$(call obj,$(ETH_TEST_C)): INC += $(INC_DOCA)
$(B)/gpu/eth_send_%.o: tests/gpu/eth_kernels.cu $(ETH_TEST_DEPS) | stage
	$(call nvcc-obj,$(INC_DOCA) -DET_MODE=$*)
$(B)/gpu/eth_recv.o: tests/gpu/eth_recv.cu $(ETH_TEST_DEPS) | stage
	$(call nvcc-obj,$(INC_DOCA))
$(B)/gpu/eth: $(call obj,$(ETH_TEST_C)) $(B)/gpu/eth_recv.o $(ETH_TEST_MODES:%=$(B)/gpu/eth_send_%.o) $(SDK_LIBS) $(LIBS)
	$(call say,LD)
	$(Q)$(NVCC) $(CUDAHOSTCXX:%=-ccbin %) -cudart static -o $@ $(filter %.o,$^) -L$(B)/lib $(SDK_LINK_LIBS) $(LINK_LIBS) $(SYS_LIBS)
## gpu-tests          build the programs that tests/gpu/run starts on a GPU (needs nvcc)
gpu-tests: $(if $(NVCC),$(B)/gpu/device $(B)/gpu/eth $(B)/gpu/spin)

# ---- the same kernels on CPU threads, in warps of 1 and of 32 threads ----
# With less payload, WQEs that carry less (so that short operations need several), and the token
# as on a GPU.
KERNEL_FLAGS := $(FEWER_INLINED) -DGT_PART='(1u << 19)' -DGT_CHUNK_SHIFT=8 -DGDK_TOKEN_FIRST=1
KERNELS := $(foreach w,1 32,$(B)/thread/kernels_$(w) $(B)/thread/eth_kernels_$(w))
KERNEL_C := $(sort $(filter-out %/device.c %/device_cases.c %/device_huge.c,$(wildcard tests/gpu/device_*.c)) \
	$(wildcard tests/kernels/*.c))
kernel-objs = $(patsubst %,$(B)/obj/warp_$(1)/%.o,$(basename $(KERNEL_C)) tests/kernels/host_gpu \
	$(foreach m,$(KERNEL_KINDS),tests/kernels/kernels_$(m)))
define kernel-rules # $(1): threads of a warp
$(B)/obj/warp_$(1)/%.o: OPT = $(TEST_DEV_OPT)
$(B)/obj/warp_$(1)/%.o: INC += $(INC_DOCA)
$(B)/obj/warp_$(1)/%.o: %.c $(B)/settings/cc $(B)/settings/cxx | stage
	$$(call compile,$(KERNEL_FLAGS) -DGDK_WARP=$(1) -DGT_WARP=$(1) -DGT_BOUND_S=60)
$(B)/obj/warp_$(1)/%.o: %.cpp $(B)/settings/cxx | stage
	$$(call say,CXX)
	@mkdir -p $$(@D)
	$$(Q)$$(CXX) $$(CXXFLAGS_ALL) $(KERNEL_FLAGS) -DGDK_WARP=$(1) -c -o $$@ $$<
$(foreach m,$(KERNEL_KINDS),$(B)/obj/warp_$(1)/tests/kernels/kernels_$(m).o): \
		$(B)/obj/warp_$(1)/tests/kernels/kernels_%.o: tests/gpu/device_kernels.cu tests/softnic/lossless.h $(B)/settings/cxx | stage
	$$(call say,CXX)
	@mkdir -p $$(@D)
	$$(Q)$$(CXX) -x c++ $$(CXXFLAGS_ALL) $(KERNEL_FLAGS) -DGDK_WARP=$(1) $$(call kernel-flags,$$*) \
		-include tests/softnic/lossless.h -c -o $$@ $$<
$(patsubst %,$(B)/obj/warp_$(1)/tests/gpu/eth_%.o,$(basename $(ETH_TEST_C:tests/gpu/eth_%=%)) recv $(ETH_TEST_MODES)): INC += $(INC_DOCA)
$(B)/obj/warp_$(1)/tests/gpu/eth_recv.o: tests/gpu/eth_recv.cu $(B)/settings/cxx | stage
	$$(call say,CXX)
	@mkdir -p $$(@D)
	$$(Q)$$(CXX) -x c++ $$(CXXFLAGS_ALL) $(KERNEL_FLAGS) -DGDK_WARP=$(1) -c -o $$@ $$<
$(foreach m,$(ETH_TEST_MODES),$(B)/obj/warp_$(1)/tests/gpu/eth_$(m).o): \
		$(B)/obj/warp_$(1)/tests/gpu/eth_%.o: tests/gpu/eth_kernels.cu $(B)/settings/cxx | stage
	$$(call say,CXX)
	@mkdir -p $$(@D)
	$$(Q)$$(CXX) -x c++ $$(CXXFLAGS_ALL) $(KERNEL_FLAGS) -DGDK_WARP=$(1) -DET_MODE=$$* -c -o $$@ $$<
$(B)/thread/eth_kernels_$(1): $(patsubst %,$(B)/obj/warp_$(1)/tests/gpu/eth_%.o,$(basename $(ETH_TEST_C:tests/gpu/eth_%=%)) recv $(ETH_TEST_MODES)) $$(TEST_NIC) $$(SDK_LIBS) $$(LIBS)
	$$(call say,LD)
	@mkdir -p $$(@D)
	$$(Q)$$(CXX) $$(LDFLAGS_ALL) -o $$@ $$(filter %.o,$$^) -L$(B)/lib $$(SDK_LINK_LIBS) $$(ALL_LIBS) -lz -lm
$(B)/thread/kernels_$(1): $$(call kernel-objs,$(1)) $$(TEST_LIB) $$(TEST_NIC) $$(LIBS)
	$$(call say,LD)
	@mkdir -p $$(@D)
	$$(Q)$$(CXX) $$(LDFLAGS_ALL) -o $$@ $$(filter %.o,$$^) $$(ALL_LIBS) -lz -lm
endef
$(foreach w,1 32,$(eval $(call kernel-rules,$(w))))

# ---- stand-ins for CUDA, GDRCopy and the SDK ----
# The libraries in the folder old lack a function that is needed.
STANDIN_FLAGS_old := -DCUDA_OLD -DGDR_OLD
define standin # $(1): the library's name for the loader
	$(call say,LD)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(STANDIN_FLAGS_$(notdir $(@D))) -shared $(LDFLAGS_ALL) -Wl,-soname,$(1) \
		-Wl,-Bsymbolic -o $@ $<
endef
$(B)/standin/libcuda.so.1 $(B)/standin/old/libcuda.so.1: tests/standin/cuda.c $(wildcard tests/standin/cuda_*.h) | stage
	$(call standin,libcuda.so.1)
$(B)/standin/libgdrapi.so $(B)/standin/old/libgdrapi.so: tests/standin/gdrapi.c | stage
	$(call standin,libgdrapi.so.2)
# Three SDKs: a current one, an old one, and one without a needed function. As in the real SDK, the
# libraries are not linked with libdoca_common: they use its symbols if it is already loaded.
STANDIN_FLAGS_sdk_old    := -DSDK_OLD
STANDIN_FLAGS_sdk_broken := -DSDK_WITHOUT_MODIFY
$(STANDIN_SDK): $(B)/standin/%.so: $(wildcard tests/standin/sdk*) | stage
	$(call say,LD)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(STANDIN_FLAGS_$(notdir $(@D))) -shared $(LDFLAGS_ALL) -Wl,-soname,$(@F) \
		-o $@ $(patsubst libdoca_%.so,tests/standin/sdk_%.c,$(@F))

# ---- targets ----
$(STANDINS): $(B)/settings/cc
# What CC or CXX links.
PROGRAMS := $(TESTS) $(THREADS) $(KERNELS) $(STANDINS) $(SOAK) $(RECV_QUEUE) $(RDMA_CONNS) $(RESPONDER) $(HW_PROBE) $(BENCHES) $(REPLAYS)
.PHONY: build-tests standins test test-more run-tests test-models check build-bench bench coverage gpu-tests doc
##= T                 make test T=PATTERN runs the tests whose names contain this shell pattern
##= LONG              make test LONG=1 also runs the long forms of the tests, and uses more time
##= JOBS              tests that `make test` runs at a time (processors + 1)
standins: $(STANDINS)
## build-tests        build everything that `make test` runs
build-tests: all $(if $(filter thread,$(SAN)),,$(TESTS) $(REPLAYS)) $(THREADS) $(KERNELS) $(STANDINS) $(if $(SAN),,$(SOAK) $(RECV_QUEUE) $(RDMA_CONNS) $(RESPONDER) $(HW_PROBE) $(B)/bench/recv $(B)/bench/dma)
## test               install missing packages, build, run all tests; T=PATTERN runs some of them
# `make test` in a new build folder compiles the examples for one architecture, because ptxas needs
# most of the time of the build. In another folder it keeps the architectures for which there is
# code. gpu/compile.sh compiles the device functions for ARCHS.
TEST_ARCH = $(or $(CUDA_ARCH),$(if $(wildcard $(NVCC_OPTIONS).key),$(shell sed -n '1s/,.*//p' $(NVCC_OPTIONS).key),90))
TEST_ENV = B=$(B) SAN=$(SAN) CC=$(CC) NVCC=$(NVCC) CUDA_ARCH='$(TEST_ARCH)' ARCHS='$(CUDA_ARCH)' CUDAHOSTCXX='$(CUDAHOSTCXX)' \
	T='$(T)' JOBS=$(JOBS) LONG='$(LONG)'
test:
	@tests/deps.sh build demo test fuzz
	@targets=$$($(TEST_ENV) tests/run.sh targets) && mkdir -p $(B) && \
		$(MAKE) --no-print-directory CUDA_ARCH='$(TEST_ARCH)' $$targets && times >$(B)/build.times
	@$(MAKE) --no-print-directory run-tests
run-tests:
	@$(TEST_ENV) tests/run.sh
## test-more          run the tests that build much: for AArch64, with a current rdma-core, in other
##                    projects, in clean folders, the GPU benchmarks; the fuzzers for 20 s; larger models
test-more:
	@tests/deps.sh build demo test fuzz
	@$(MAKE) --no-print-directory CUDA_ARCH='$(TEST_ARCH)' build-tests
	@$(TEST_ENV) tests/run.sh more
## check              build the library, check sources, headers, archives and documents; no tests
check: all
	@$(TEST_ENV) tests/run.sh check
## test-models        run the end-to-end tests on each card model of the software NIC
test-models: build-tests
	@B=$(B) tests/models.sh
## build-bench        build the benchmarks
build-bench: all $(BENCHES)
## bench              build and run the benchmarks
bench: build-bench
	@B=$(B) tests/bench/run.sh
## doc                generate the API pages in build/doc/html (needs doxygen)
doc: stage
	@mkdir -p $(B)/doc
	@B=$(B) doxygen core/Doxyfile
## coverage           run the unit tests with gcov, print the covered lines of each folder
coverage: TEST_ENV = B=$(B)/coverage SAN= CC=$(CC) NVCC= T='$(or $(T),test_)' JOBS=$(JOBS)
coverage:
	@tests/deps.sh build demo test
	@targets=$$($(TEST_ENV) tests/run.sh targets) && $(MAKE) --no-print-directory B=$(B)/coverage \
		COVFLAGS=--coverage OPT='-O0 -g' NVCC= $$targets
	@$(TEST_ENV) tests/coverage.sh
