# Deploys the next version of the page 2m on these hosts of a lab at once. The page consists of lines with the version's
# number. It has the same time of modification on all hosts, and so the same ETag.
#
# usage: sh deploy.sh LAB_DIRECTORY HOST...
set -e
lab=$1
shift
version=$(($(cat "$lab/version") + 1))
echo "$version" >"$lab/version"
for host in "$@"; do
    yes "$(printf v%06d "$version")" | head -c 2097152 >"$lab/$host/site/next"
    touch -d "@$((1000000000 + version))" "$lab/$host/site/next"
done
for host in "$@"; do
    mv "$lab/$host/site/next" "$lab/$host/site/2m"
done
for host in "$@"; do
    kill -HUP "$(cat "$lab/$host/nginx/nginx.pid")"
done
