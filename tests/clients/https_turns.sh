#!/bin/sh
# Sends requests to three data servers in turn by one run of curl, over one connection with one TLS session.
#
# usage: https_turns.sh ADDRESS REQUESTS FOLDER
#
# What curl says goes to files in FOLDER.
set -eu

address=$1
requests=$2
folder=$3

# The path of each request, and the data server that must answer it.
turns() {
    seq 0 $((requests - 1)) | awk '{ server = "ds" $1 % 3 + 1; print server, "/" server "/curl-" $1 }'
}

turns | sed 's,.* /,url = https://www.example/,' > "$folder/curl.urls"
# Each answer, and how many connections were made for it.
curl -sSfk -v --http1.1 --resolve "www.example:443:$address" -w '%{num_connects}\n' -K "$folder/curl.urls" \
    > "$folder/curl.answers" 2> "$folder/curl.said"
turns | awk '{ print; print NR == 1 ? 1 : 0 }' | cmp - "$folder/curl.answers"
test "$(grep -c 'SSL connection using' "$folder/curl.said")" = 1
