#!/bin/sh
# Asks for the names of a TLS service with curl and with openssl s_client, over connections that are kept.
#
# usage: tls_get.sh ADDRESS "NAME=SERVER[,SERVER] ..."
#
# Each request must be answered by one of the servers of its name, and all of a connection by the same one.
set -eu

address=$1
names=$2

# Checks that NAME's answers, a line each, come from one of its SERVERS, and that there are so many.
judge() {
    name=$1 servers=$2 least=$3 answers=$4
    if [ "$(printf '%s\n' "$answers" | wc -l)" != "$least" ]; then
        echo "$name: not $least answers: $answers" >&2
        exit 1
    fi
    one=$(printf '%s\n' "$answers" | sort -u)
    case ,$servers, in
        *",$one,"*) ;;
        *)
            echo "$name was answered by: $one" >&2
            exit 1
            ;;
    esac
}

by_curl() {
    url=https://$1/whoami
    answers=$(curl -sSfk "$3" --resolve "$1:443:$address" -w '%{num_connects} %{http_version}\n' "$url" "$url" "$url")
    # Only the first of the three requests has made a connection.
    made=$(printf '%s\n' "$answers" | grep -c '^[01] [12]')
    kept=$(printf '%s\n' "$answers" | grep -c "^0 $4")
    if [ "$made $kept" != '3 2' ]; then
        echo "$1: the connection was not kept: $answers" >&2
        exit 1
    fi
    judge "$1" "$2" 3 "$(printf '%s\n' "$answers" | grep -v '^[01] ')"
}

by_openssl() {
    request="GET /whoami HTTP/1.1\r\nHost: $1\r\n"
    # shellcheck disable=SC2059 # the requests have the escapes
    answers=$(printf "$request\r\n$request\r\n${request}Connection: close\r\n\r\n" |
        openssl s_client -quiet -connect "$address:443" -servername "$1" 2>/dev/null |
        sed -n 's/^X-Served-By: \(.*\)\r$/\1/p')
    judge "$1" "$2" 3 "$answers"
}

for pair in $names; do
    by_curl "${pair%%=*}" "${pair#*=}" --http1.1 1.1
    by_curl "${pair%%=*}" "${pair#*=}" --http2 2
    by_openssl "${pair%%=*}" "${pair#*=}"
done
