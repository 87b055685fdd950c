# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
# shellcheck shell=sh
#
# Functions for scripts that run a server and a client of gpunetio_verbs_put_bw on the
# software NIC. Creates the temporary folder $DIR. When the including script exits, $DIR is
# removed and a server that still runs is killed.

B=${B:-build}
BOUND=${BOUND:-60}
DIR=$(mktemp -d) || exit 1
pair_server=
pair_port=$((20000 + $$ % 20000))
trap '[ -z "$pair_server" ] || kill "$pair_server" 2>/dev/null; rm -rf "$DIR"' EXIT
trap 'exit 1' INT TERM

pair_start() { # options of put_bw; replaces the calling subshell by put_bw, with a time limit
	exec timeout -k 5 "$BOUND" "$B/bin/softnic-run" -- "$B/bin/gpunetio_verbs_put_bw" \
		-d mlx5_0 -P "$pair_port" -w $((BOUND * 3 / 4)) "$@"
}

pair_hung() { [ "$1" -eq 124 ] || [ "$1" -eq 137 ]; }

# run_pair TAG "server options" "client options": output in $DIR/{server,client}.TAG.
# Returns 0 if both exited with 0 and the server validated every byte.
run_pair() {
	pair_port=$((pair_port + 1))
	# shellcheck disable=SC2086 # a list of options
	(pair_start $2) >"$DIR/server.$1" 2>&1 &
	pair_server=$!
	# shellcheck disable=SC2086 # a list of options
	(pair_start -c 127.0.0.1 $3) >"$DIR/client.$1" 2>&1
	pair_client_rc=$?
	# If the client fails early, the server waits for a connection forever.
	[ $pair_client_rc -eq 0 ] || { sleep 1; kill "$pair_server" 2>/dev/null; }
	wait "$pair_server"
	pair_server_rc=$?
	pair_server=
	! pair_hung $pair_client_rc || echo "hung: killed after $BOUND s" >>"$DIR/client.$1"
	! pair_hung $pair_server_rc || echo "hung: killed after $BOUND s" >>"$DIR/server.$1"
	[ $pair_client_rc -eq 0 ] && [ $pair_server_rc -eq 0 ] &&
		grep -qxF 'Validation successful! Data received correctly from client.' \
			"$DIR/server.$1" && grep -q '^RESULT ' "$DIR/client.$1"
}

pair_show() { # TAG: prints the output of both
	sed 's/^/    server: /' "$DIR/server.$1"
	sed 's/^/    client: /' "$DIR/client.$1"
}

# pair_fields TAG "name name ..." FORMAT: prints these fields of the client's RESULT line
pair_fields() {
	awk -v names="$2" -v format="$3" '/^RESULT / {
		v["reason"] = $0
		sub(/.* reason=/, "", v["reason"])
		sub(/ reason=.*/, "")
		for (i = 2; i <= NF; i++) {
			k = index($i, "=")
			v[substr($i, 1, k - 1)] = substr($i, k + 1)
		}
		n = split(names, name, " ")
		m = split(format, width, " ")
		for (i = 1; i <= n; i++)
			printf width[i] "%s", v[name[i]], i < n ? "  " : "\n"
	}' "$DIR/client.$1"
}
