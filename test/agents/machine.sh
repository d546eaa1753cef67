#!/bin/sh
# machine.sh DIRECTORY NODE PROGRAM -- COMMAND…: runs COMMAND on a machine of its own, whose only neighbour is an internet of its own.
# Both are network namespaces, joined by a cable. PROGRAM is the internet: it finds DIRECTORY/wired when the cable is plugged in. Needs
# root, and goes away with its processes.
set -e
directory=$1 node=$2 program=$3
shift 4
mount --make-rprivate /
rm -f "$directory/wired" "$directory/online" # of a command before this one, whose internet had another certificate
echo "nameserver 93.184.216.1" > "$directory/resolv.conf"
mount --bind "$directory/resolv.conf" /etc/resolv.conf
ip link set lo up
unshare --net -- env -u NODE_EXTRA_CA_CERTS "$node" "$program" "$directory" &
internet=$!
trap 'kill $internet' EXIT
until [ "$(readlink /proc/$internet/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link add wan type veth peer name lan netns "$internet"
nsenter --target "$internet" --net -- sh -ec "
  ip link set lo up
  ip address add 93.184.216.1/24 dev lan
  ip route add local 93.184.216.0/24 dev lo
  ip link set lan up"
ip address add 93.184.217.2/32 dev wan
ip link set wan up
ip route add 93.184.216.0/24 dev wan
nsenter --target "$internet" --net -- ip route add 93.184.217.2/32 dev lan
touch "$directory/wired"
until [ -e "$directory/online" ]; do sleep 0.01; done
"$@"
