# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The software NIC: libsoftnic.so, which softnic-run preloads into a program.
SOFTNIC := $(B)/lib/libsoftnic.so $(B)/bin/softnic-run
SOFTNIC_RUN_SRCS := $(addprefix tests/softnic/,softnic_run.c run_options.c run_program.c elf.c setting.c sysfs.c \
	addr.c cfg.c models.c message.c tmp.c)
SOFTNIC_SRCS := $(sort $(filter-out tests/softnic/softnic_run.c tests/softnic/run_%.c,$(wildcard tests/softnic/*.c)))
# All of the NIC but the interposed C library functions; fuzzers drive it.
SOFTNIC_FRONT := $(filter-out tests/softnic/preload%.c,$(SOFTNIC_SRCS))
# The NIC without commands and verbs. Engine tests and two fuzzers drive it by a front of their own.
SOFTNIC_ENGINE := $(addprefix tests/softnic/,engine.c waiting.c writers.c uar_watch.c sq.c dma.c requester.c \
	window.c response.c peer.c responder.c resource.c rq.c cqe.c mem.c mem_gpu.c guard.c wire.c addr.c \
	ipid.c icrc.c pcap.c recent.c fault.c trace.c trace_eth.c message.c sanitizer.c) \
	$(filter-out %/eth_objects.c,$(wildcard tests/softnic/eth_*.c)) $(wildcard tests/softnic/flow.c tests/softnic/clock.c)

$(B)/lib/libsoftnic.so: $(call obj,$(SOFTNIC_SRCS))
	$(call link,-shared -Xlinker -Bsymbolic-functions -lz -ldl -lpthread)
$(B)/bin/softnic-run: $(call obj,$(SOFTNIC_RUN_SRCS))
	$(call link)
INSTALL_ALL += \
	'755 $(LIBDIR)/gdaki $(SOFTNIC)' \
	'link $(PREFIX)/bin $(LIBDIR)/gdaki/softnic-run' \
	'644 $(MANDIR)/man1 tests/softnic/softnic-run.1'
