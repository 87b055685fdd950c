# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The fuzzers. Each is fuzz_X.c with the sources of FUZZ_OF_X. The functions in FUZZ_WRAP are
# replaced by those of stage.c: a fuzzed NIC has no thread, no clock and no network.
FUZZ_X := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
FUZZ_OF_wire := $(addprefix tests/fuzz/,stage.c input.c rig.c) tests/unit/engine_fake.c $(SOFTNIC_ENGINE)
FUZZ_OF_wqe := $(FUZZ_OF_wire)
FUZZ_OF_frame := $(FUZZ_OF_wire) $(addprefix tests/fuzz/,eth_rig.c eth_frame.c)
FUZZ_OF_eth_wqe := $(FUZZ_OF_frame)
FUZZ_OF_vxlan := $(FUZZ_OF_frame)
FUZZ_OF_cmd := $(addprefix tests/fuzz/,stage.c input.c nic.c boxes.c boxes_eth.c) $(SOFTNIC_FRONT)
FUZZ_OF_uverbs := $(FUZZ_OF_cmd) tests/fuzz/uverbs_calls.c tests/fuzz/uverbs_eth.c
FUZZ_OF_cqe := tests/fuzz/input.c qp/export/dump.c qp/export/error.c core/log/check.c core/log/log.c
FUZZ_WRAP := $(foreach f,pthread_create pthread_timedjoin_np clock_gettime bind sendmmsg recvmmsg \
	dlopen sn_wait sn_wait_setup sn_uar_list,-Wl,--wrap=$(f))
FUZZ_WRAP_MEM := $(foreach f,sn_mem_readable sn_mem_writable sn_mem_write,-Wl,--wrap=$(f))
FUZZ_WRAP_cmd := $(FUZZ_WRAP_MEM)
FUZZ_WRAP_uverbs := $(FUZZ_WRAP_MEM) -Wl,--wrap=sn_net_raw
FUZZ_WRAP_vxlan := -Wl,--wrap=sn_pause_control,--wrap=getrandom
fuzz-srcs = tests/fuzz/fuzz_$(1).c $(FUZZ_OF_$(1))

# Programs that run the inputs in tests/fuzz/corpus, without libFuzzer: any compiler builds them.
REPLAYS := $(patsubst %,$(B)/fuzz/replay_%,$(FUZZ_X))
$(foreach x,$(FUZZ_X),$(eval $(B)/fuzz/replay_$(x): $(call obj,tests/fuzz/replay.c $(call fuzz-srcs,$(x)))))
$(REPLAYS): $(B)/fuzz/replay_%:
	$(call link,$(FUZZ_WRAP) $(FUZZ_WRAP_$*) -lz -ldl -lpthread)

# The fuzzers, with libFuzzer, which only clang has. They share the objects of common sources.
FUZZ_CC := $(if $(findstring clang,$(CC)),$(CC),clang)
FUZZ_CFLAGS := -std=gnu11 -D_GNU_SOURCE -DGDK_SAN -g -O1 -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=undefined $(FUZZ_COV) -pthread -MMD -MP $(INC)
FUZZERS := $(patsubst %,$(B)/fuzz/fuzz_%,$(FUZZ_X))
fuzz-obj = $(patsubst %.c,$(B)/fuzz/obj/%.o,$(1))
$(B)/fuzz/obj/%.o: %.c $(B)/settings/fuzz | stage
	$(call say,FUZZ)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(FUZZ_CFLAGS) -c -o $@ $<
$(foreach x,$(FUZZ_X),$(eval $(B)/fuzz/fuzz_$(x): $(call fuzz-obj,$(call fuzz-srcs,$(x)))))
$(FUZZERS): $(B)/fuzz/fuzz_%:
	$(call say,LD)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer,address,undefined $(FUZZ_COV) -pthread $(FUZZ_WRAP) \
		$(FUZZ_WRAP_$*) -o $@ $(filter %.o,$^) -lz -ldl

.PHONY: build-fuzz fuzz
## build-fuzz         build the fuzzers (needs clang)
build-fuzz: $(FUZZERS)

##= FUZZ_SECONDS      time that all fuzzers of `make fuzz` share, in seconds (150)
FUZZ_SECONDS ?= 150
##= FUZZ_JOBS         processes of each fuzzer at a time (1)
FUZZ_JOBS ?= 1
## fuzz               install missing packages, build the fuzzers and run them; the inputs of
##                    failures are in build/fuzz/found
fuzz:
	@tests/deps.sh build fuzz
	@$(MAKE) --no-print-directory build-fuzz
	@B=$(B) tests/fuzz/run.sh $(FUZZ_SECONDS) $(FUZZ_JOBS)
