# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Installation. INSTALL_ALL and INSTALL_EXAMPLES are lists of lines "MODE FOLDER FILE..."; their form
# is described in core/install/install.sh. Other makefiles add lines to INSTALL_ALL.

##= PREFIX            where `make install` installs (/usr/local)
PREFIX ?= /usr/local
##= LIBDIR            folder of the libraries, absolute or below PREFIX (PREFIX/lib)
LIBDIR ?= lib
##= INCLUDEDIR        its subfolders gdaki and gdaki-doca get the headers (PREFIX/include)
INCLUDEDIR ?= include
##= DESTDIR           put before PREFIX by `make install`, not stored in any file (empty)

# A path with one of these characters would need quotes in a makefile, a shell or a .pc file.
INSTALL_PATHS := PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) LIBDIR=$(LIBDIR) INCLUDEDIR=$(INCLUDEDIR)
hash := \#
INSTALL_BAD := $(wordlist 5,99,$(INSTALL_PATHS)) \
	$(foreach c,& | ; ' " \ * ? [ ` < > $(hash),$(findstring $c,$(INSTALL_PATHS)))
# A shell that is not bash leaves the ~ of PREFIX=~/x to make.
INSTALL_BAD += $(filter ~%,$(PREFIX) $(DESTDIR) $(LIBDIR) $(INCLUDEDIR))
ifneq ($(strip $(INSTALL_BAD)),)
$(error $(INSTALL_PATHS): these paths must not contain spaces, quotes or characters of the shell)
endif
override PREFIX := $(patsubst %/,%,$(abspath $(PREFIX)))
override LIBDIR := $(abspath $(if $(filter /%,$(LIBDIR)),,$(PREFIX)/)$(LIBDIR))
override INCLUDEDIR := $(abspath $(if $(filter /%,$(INCLUDEDIR)),,$(PREFIX)/)$(INCLUDEDIR))
override DESTDIR := $(if $(DESTDIR),$(abspath $(DESTDIR)))
DOCDIR := $(PREFIX)/share/doc/gdaki
MANDIR := $(PREFIX)/share/man

# The programs are beside the libraries that they load, and PREFIX/bin has relative links to them.
# A program then finds its library for any LIBDIR, in a staged tree and in one that was moved.
INSTALL_EXAMPLES = \
	'755 $(LIBDIR)/gdaki $(EXAMPLES) $(CUDA_SO)' \
	'link $(PREFIX)/bin $(patsubst $(B)/bin/%,$(LIBDIR)/gdaki/%,$(EXAMPLES))' \
	'644 $(MANDIR)/man1 $(wildcard examples/*/*.1)' \
	'644 $(MANDIR)/man7 $(wildcard examples/common/*.7)'
headers-in = $(foreach h,$(STAGED),$(if $(filter $(1),$(dir $(h))),$(h)))
INSTALL_ALL = \
	'644 $(LIBDIR) $(LIBS) $(MERGED) $(SDK_LIBS)' \
	'644 $(LIBDIR)/pkgconfig $(wildcard core/install/*.pc.in qp/doca/*.pc.in)' \
	'644 $(LIBDIR)/gdaki-doca/pkgconfig $(wildcard $(SDK_ARCHIVES:%=qp/%/pkgconfig/*.pc.in))' \
	'644 $(LIBDIR)/cmake/gdaki $(wildcard core/install/*.cmake.in)' \
	$(foreach d,$(sort $(dir $(STAGED))),'644 $(patsubst %/,%,$(d:$(B)/include/%=$(INCLUDEDIR)/gdaki/%)) $(call headers-in,$(d))') \
	'644 $(INCLUDEDIR)/gdaki-doca $(STAGED_DOCA)' \
	'644 $(DOCDIR) LICENSE README.md CHANGELOG.md CONTRIBUTING.md' \
	$(foreach d,core doorbell qp $(SDK_ARCHIVES:%=qp/%) examples examples/results tests tests/softnic tests/bench,'644 $(DOCDIR)/$(d) $(wildcard $(d)/*.md $(d)/*.svg)') \
	'644 $(DOCDIR)/examples examples/CMakeLists.txt examples/example.mk' \
	$(foreach d,common ethernet $(sort $(EXAMPLE_NAMES) $(EXAMPLES_MPI)) strategy_batching,'644 $(DOCDIR)/examples/$(d) $(wildcard $(addprefix examples/$(d)/,*.c *.h *.cu *.cuh *.mk Makefile README.md))') \
	'644 $(MANDIR)/man7 core/gdaki.7' \
	$(INSTALL_EXAMPLES)

# @NAME@ in a file X.in. Paths below PREFIX are written with $${prefix}.
below-prefix = $(patsubst $(PREFIX)/%,$${prefix}/%,$(1))
INSTALL_SUBST = s|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(call below-prefix,$(LIBDIR))|; \
	s|@INCLUDEDIR@|$(call below-prefix,$(INCLUDEDIR))|; s|@VERSION@|$(VERSION)|; \
	s|@GDAKI_LIBS@|$(GDAKI_LIBS)|; s|@SYS_LIBS@|$(SYS_LIBS)|; \
	s|@STRATEGIES@|$(DB_STRATEGIES)|; s|@SDK_PARTS@|$(SDK_PARTS)|; s|@SDK_LIBS@|$(SDK_LINK_LIBS)|
install-run = DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) INCLUDEDIR=$(INCLUDEDIR) \
	SUBST='$(INSTALL_SUBST)' core/install/install.sh

.PHONY: install install_examples uninstall
## install            install everything but the tests below PREFIX
install: all
	$(Q)printf '%s\n' $(INSTALL_ALL) | $(install-run) install
## install_examples   install the example programs and their manual pages below PREFIX
install_examples: all
	$(Q)printf '%s\n' $(INSTALL_EXAMPLES) | $(install-run) add
## uninstall          remove what was installed with the same PREFIX, DESTDIR and LIBDIR
uninstall:
	$(Q)$(install-run) uninstall
