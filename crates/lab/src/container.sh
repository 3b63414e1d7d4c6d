# Runs a program in a network namespace of its own behind a bridge of the host, as Docker does:
#   sh -c "$(cat container.sh)" container ADDRESS PROGRAM ARGUMENTS
# This very process becomes the program, so that its pid is the program's. The cable between host and container
# can only be laid from outside, once the namespace is there: a second process, which ends then, does that.
set -e
address=$1
shift
if ! ip link show docker0 >/dev/null 2>&1; then
    ip link add docker0 type bridge
    ip addr add 172.17.0.1/16 dev docker0
    ip link set docker0 up
fi
sysctl -qw net.ipv4.ip_forward=1
own=$(readlink /proc/self/ns/net)
(
    tries=0
    while [ "$(readlink /proc/$$/ns/net)" = "$own" ] && [ $tries -lt 500 ]; do
        sleep 0.02
        tries=$((tries + 1))
    done
    # A former container's cable goes with its namespace, which may take a moment.
    cable=docker-${address##*.}
    ip link del "$cable" 2>/dev/null || true
    ip link add "$cable" type veth peer name eth0 netns $$
    ip link set "$cable" master docker0 up
) &
exec unshare --net sh -ec '
    address=$1
    shift
    until ip link show eth0 >/dev/null 2>&1; do sleep 0.02; done
    ip link set lo up
    ip addr add "$address/16" dev eth0
    ip link set eth0 up
    ip route add default via 172.17.0.1
    exec "$@"' container "$address" "$@"
