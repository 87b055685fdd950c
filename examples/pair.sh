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
pair_port=$((20000 + $$ % 10000))
trap '[ -z "$pair_server" ] || kill "$pair_server" 2>/dev/null; rm -rf "$DIR"' EXIT
trap 'exit 1' INT TERM

pair_start() { # options of put_bw; replaces the calling subshell by put_bw, with a time limit
	exec timeout -k 5 "$BOUND" "$B/bin/softnic-run" -- "$B/bin/gpunetio_verbs_put_bw" \
		-d mlx5_0 -P "$pair_port" -w $((BOUND * 3 / 4)) "$@"
}

pair_hung() { [ "$1" -eq 124 ] || [ "$1" -eq 137 ]; }

# run_pair TAG "server options" "client options": output in $DIR/{server,client,csv}.TAG.
# Returns 0 if both exited with 0 and the server validated every byte.
run_pair() {
	pair_port=$((pair_port + 1))
	# shellcheck disable=SC2086 # a list of options
	(pair_start $2) >"$DIR/server.$1" 2>&1 &
	pair_server=$!
	# shellcheck disable=SC2086 # a list of options
	(pair_start -c 127.0.0.1 --csv "$DIR/csv.$1" $3) >"$DIR/client.$1" 2>&1
	pair_client_rc=$?
	# If the client fails early, the server waits for a connection until its time limit.
	[ $pair_client_rc -eq 0 ] || { sleep 1; kill "$pair_server" 2>/dev/null; }
	wait "$pair_server"
	pair_server_rc=$?
	pair_server=
	! pair_hung $pair_client_rc || echo "hung: killed after $BOUND s" >>"$DIR/client.$1"
	! pair_hung $pair_server_rc || echo "hung: killed after $BOUND s" >>"$DIR/server.$1"
	[ $pair_client_rc -eq 0 ] && [ $pair_server_rc -eq 0 ] &&
		grep -qxF 'Validation successful! Data received correctly from client.' \
			"$DIR/server.$1" && [ -s "$DIR/csv.$1" ]
}

pair_show() { # TAG: prints the output of both
	sed 's/^/    server: /' "$DIR/server.$1"
	sed 's/^/    client: /' "$DIR/client.$1"
}

# pair_fields TAG "name name ..." FORMAT: prints these columns of the client's CSV file
pair_fields() {
	awk -v names="$2" -v format="$3" '
	function split_csv(line, to,    n, quoted, i, c) { # a field with a comma or a quote is quoted
		n = 1
		quoted = 0
		split("", to)
		for (i = 1; i <= length(line); i++) {
			c = substr(line, i, 1)
			if (c == "\"" && quoted && substr(line, i + 1, 1) == "\"")
				to[n] = to[n] substr(line, i++, 1)
			else if (c == "\"")
				quoted = !quoted
			else if (c == "," && !quoted)
				n++
			else
				to[n] = to[n] c
		}
		return n
	}
	NR == 1 { columns = split_csv($0, name_of) }
	NR > 1 {
		split_csv($0, value)
		for (i = 1; i <= columns; i++)
			v[name_of[i]] = value[i]
		n = split(names, name, " ")
		split(format, width, " ")
		for (i = 1; i <= n; i++)
			printf width[i] "%s", v[name[i]], i < n ? "  " : "\n"
	}' "$DIR/csv.$1" 2>/dev/null
}
