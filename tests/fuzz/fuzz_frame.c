/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * libFuzzer: received Ethernet frames. An input contains the configuration of the port and a
 * sequence of steps: a frame that reaches the receive path, receive WQEs, rules, changes of
 * TIRs and states. The parser must not read beyond the frame, the NIC must write only to
 * memory that a posted WQE names, and each frame must have exactly one outcome.
 */
#include <stdlib.h>

#include "eth_rig.h"

#define STEPS 64

/* Parses a copy that ends where its allocation ends, so that a sanitizer finds reads beyond it. */
static void parse(const uint8_t *frame, uint32_t len)
{
	uint8_t *copy = malloc(len ? len : 1), type;
	struct sn_parsed p, again;
	unsigned i;

	if (!copy)
		abort();
	memcpy(copy, frame, len);
	sn_eth_parse(copy, len, &p);
	ETH_CHECK(!p.ip || (p.l3_off && p.l3_off + p.l3_len <= len), "layer 3 exceeds the frame");
	ETH_CHECK(!p.l4 || (p.l4_off > p.l3_off && p.l4_off + 8 <= len),
		  "layer 4 exceeds the frame");
	ETH_CHECK(!(p.l3_ok && p.l3_bad) && !(p.l4_ok && p.l4_bad), "checksum is right and wrong");
	ETH_CHECK(!p.l4 || p.ip, "layer 4 without layer 3");
	for (i = 0; i < ETH_TIRS; i++)
		sn_eth_hash(&eth_rig.tir[i], copy, &p, &type);
	sn_eth_parse(copy, len, &again);
	ETH_CHECK(!memcmp(&p, &again, sizeof(p)), "the same frame is parsed differently");
	free(copy);
}

static void arrive(struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), frame[ETH_ROOM];
	uint32_t len = eth_frame(in, frame);
	struct sn_eng *e = sn_dev->eng;
	struct sn_frame *f;

	if (len > SN_ETH_FRAME_MAX)
		len = SN_ETH_FRAME_MAX;
	parse(frame, len);
	f = sn_frame_get(e);
	if (!f)
		return;
	memcpy(f->data, frame, len);
	f->len = len;
	f->local = how & 1;
	f->corrupt = how & 2;
	sn_eth_wants(e, f);
	if (sn_eth_receive(e, f, how & 4) == SN_ETH_TAKEN)
		eth_rig.arrived++;
	else
		ETH_CHECK(how & 4, "a frame that must not wait was refused");
	sn_frame_put(e, f);
}

static void step(struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in);

	switch (what & 7) {
	case 0:
	case 1:
	case 2:
	case 3:
		arrive(in);
		break;
	case 4:
		eth_recv(in);
		break;
	case 5:
		eth_rule(in);
		break;
	case 6:
		eth_program(in);
		break;
	case 7:
		fuzz_passes(sn_dev, 1 + (what >> 6));
		break;
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	rig_setup();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	eth_input(data, size, STEPS, step);
	return 0;
}
