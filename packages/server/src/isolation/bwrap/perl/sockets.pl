# Makes sockets in the network that it was started in, for the server, which connects them. It stands outside of the box: nothing
# in there can see it, and no descriptor of the box's is involved.
#
#   4, 6  [fields, status, a socket]   makes an unconnected TCP socket of that version of IP and sends it by the socket

$0 = "sockets";
close_from(4);
my %FAMILY = (4 => 2, 6 => 10);
while (my ($letter, @descriptors) = receive()) {
  my (undef, $status, $socket) = @descriptors;
  my $made;
  my $is_sent = socket($made, $FAMILY{$letter}, 1, 6) && transmit($socket, fileno($made)); # SOCK_STREAM, IPPROTO_TCP
  report($status, $is_sent ? "d" : ("f", $! + 0, "socket"));
  forget(@descriptors);
}
