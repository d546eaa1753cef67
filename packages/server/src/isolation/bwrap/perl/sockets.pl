# Makes sockets in the network that it was started in, for the server, which connects them or accepts at them. It stands outside of the
# box: nothing in there can see it, and no descriptor of the box's is involved.
#
#   4, 6  [fields, status, a socket]   makes an unconnected TCP socket of that version of IP and sends it by the socket
#   n     [fields, status, a socket]   gives the loopback device the address that names get theirs from, makes sockets that listen
#                                      (fields: "tcp" or "udp", an address and a port for each) and sends them in their order

$0 = "sockets";
close_from(4);
my %FAMILY = (4 => 2, 6 => 10);
my ($STREAM, $DATAGRAM, $TCP, $UDP, $BACKLOG) = (1, 2, 6, 17, 511);
my ($SIOCSIFADDR, $SIOCSIFNETMASK) = (0x8916, 0x891c);
while (my ($letter, @descriptors) = receive()) {
  my ($fields, $status, $socket) = @descriptors;
  my $failed = $letter eq "n" ? listeners($socket, fields($fields)) : connector($socket, $FAMILY{$letter});
  report($status, defined $failed ? ("f", $! + 0, $failed) : "d");
  forget(@descriptors);
}

# What failed, if anything did.
sub connector {
  my ($socket, $family) = @_;
  socket(my $made, $family, $STREAM, $TCP) or return "socket";
  return transmit($socket, fileno($made)) ? undef : "socket";
}

sub listeners {
  my ($socket, @wanted) = @_;
  return "address" unless given_address();
  for (my $place = 0; my ($kind, $address, $port) = splice(@wanted, 0, 3); $place++) {
    my ($made, $type, $protocol) = (undef, $kind eq "udp" ? ($DATAGRAM, $UDP) : ($STREAM, $TCP));
    socket($made, $FAMILY{4}, $type, $protocol) or return $place;
    bind($made, internet_address($address, $port)) or return $place;
    $kind eq "udp" or listen($made, $BACKLOG) or return $place;
    transmit($socket, fileno($made)) or return $place;
  }
  return undef;
}

# On the loopback device the kernel makes the whole prefix local: every address of it is ours.
sub given_address {
  socket(my $any, $FAMILY{4}, $DATAGRAM, $UDP) or return 0;
  my $device = sub { pack("a16 a24", "lo:1", internet_address($_[0], 0)) };
  return ioctl($any, $SIOCSIFADDR, $device->("198.18.0.1")) && ioctl($any, $SIOCSIFNETMASK, $device->("255.254.0.0"));
}

sub internet_address {
  my ($address, $port) = @_;
  return pack("S n C4 x8", $FAMILY{4}, $port, split(/\./, $address));
}
