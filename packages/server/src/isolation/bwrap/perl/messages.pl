# What the launcher, the keeper and the maker of sockets have in common: taking orders from the server. Only perl itself is needed, no module: one
# would cost two megabytes and ten milliseconds for each box. %NR, the numbers of the system calls, is put in front of this.
#
# An order is one message on descriptor 3: a letter, and descriptors by SCM_RIGHTS. The first of them is a file in memory with
# the order's fields, each ended by a NUL.

my $ORDERS = 3;
my $MOST_DESCRIPTORS = 64;
my $MSG_CMSG_CLOEXEC = 0x40000000;
my ($SOL_SOCKET, $SCM_RIGHTS) = (1, 1);

# The letter and the descriptors of the next order; nothing when the server is gone.
sub receive {
  for (;;) {
    my $letter = "\0" x 8;
    my $control = "\0" x (16 + 4 * $MOST_DESCRIPTORS);
    my $vector = pack("P J", $letter, 8);
    my $header = pack("J J P J P J J", 0, 0, $vector, 1, $control, length $control, 0);
    my ($socket, $flags) = ($ORDERS, $MSG_CMSG_CLOEXEC);
    my $count = syscall($NR{recvmsg}, $socket, $header, $flags);
    next if $count < 0 && $! == 4; # EINTR
    return if $count <= 0;
    my ($length, $level, $type) = unpack("J l l", $control);
    my $carries = (unpack("J*", $header))[5] >= 16 && $level == $SOL_SOCKET && $type == $SCM_RIGHTS;
    return (substr($letter, 0, 1), $carries ? unpack("l*", substr($control, 16, $length - 16)) : ());
  }
}

# Sends one descriptor.
sub transmit {
  my ($socket, $descriptor) = ($_[0] + 0, $_[1] + 0);
  my ($letter, $flags) = ("d", 0);
  my $control = pack("J l l l x4", 20, $SOL_SOCKET, $SCM_RIGHTS, $descriptor);
  my $vector = pack("P J", $letter, 1);
  my $header = pack("J J P J P J J", 0, 0, $vector, 1, $control, length $control, 0);
  return syscall($NR{sendmsg}, $socket, $header, $flags) > 0;
}

# Says a line by a status pipe.
sub report {
  my ($status, @words) = @_;
  my ($line, $number) = (join(" ", @words) . "\n", $status + 0);
  syscall($NR{write}, $number, $line, length $line);
}

sub fields {
  my $descriptor = $_[0] + 0;
  my ($text, $piece, $size) = ("", "\0" x 4096, 4096);
  while ((my $count = syscall($NR{pread64}, $descriptor, $piece, $size, length $text)) > 0) {
    $text .= substr($piece, 0, $count);
  }
  my @fields = split(/\0/, $text, -1);
  pop @fields;
  return @fields;
}

sub first_field {
  my ($descriptor, $piece, $size, $start) = ($_[0] + 0, "\0" x 4096, 4096, 0);
  syscall($NR{pread64}, $descriptor, $piece, $size, $start);
  return (split(/\0/, $piece, 2))[0];
}

sub forget {
  for my $descriptor (@_) { syscall($NR{close}, $descriptor + 0) }
}

# Makes each of the descriptors 0, 1, 2 … in their order; these stay open in the program that comes next, all others do not.
sub place {
  my ($places, $lowest, $command) = (scalar @_, 200, 1030); # F_DUPFD_CLOEXEC: out of the way of the places
  my @away = map {
    my $descriptor = $_ + 0;
    $descriptor < $places ? syscall($NR{fcntl}, $descriptor, $command, $lowest) : $descriptor;
  } @_;
  my $none = 0;
  for my $place (0 .. $#away) {
    my ($from, $to) = ($away[$place] + 0, $place + 0);
    return 0 if $from < 0 || syscall($NR{dup3}, $from, $to, $none) < 0;
  }
  return 1;
}

sub close_from {
  my ($first, $last, $flags) = ($_[0] + 0, 0xffffffff, 0);
  syscall($NR{close_range}, $first, $last, $flags);
}
