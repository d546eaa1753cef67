# Starts the boxes of a server, so that the server does not fork itself for every one: a fork of a large process takes tens of
# milliseconds, one of this takes one. It holds nothing of the server's.
#
#   l  [fields, then what becomes descriptors 0, 1, 2 … of the program]   starts a program
#      COUNT ENTRANCE… PROGRAM ARGUMENT…      the entrances are files of control groups, entered in this order
#   q                                         ends the launcher

close_from(4); # whoever started the server may have left descriptors open in it that survive an exec; no box shall have them
umask 022;
limit(4, 0, 0); # RLIMIT_CORE
limit(7, 16384, 65536); # RLIMIT_NOFILE
# When the host runs out of memory the boxes go first; the server's own protection is not for them.
if (open(my $file, ">", "/proc/self/oom_score_adj")) { syswrite($file, "500") }

$SIG{CHLD} = "IGNORE";
while (my ($letter, $payload, @streams) = receive()) {
  exit 0 if $letter eq "q";
  my $child = fork;
  launch($payload, @streams) if defined $child && $child == 0;
  forget($payload, @streams); # without a process the server sees the end of what it listens to
}

# The server is gone. A box that is set up dies with its bwrap, and that with this process; one that is being set up needs a
# moment until that is arranged.
select(undef, undef, undef, 0.2);
kill "KILL", 0;

sub launch {
  my ($payload, @streams) = @_;
  my ($count, @words) = fields($payload);
  $SIG{CHLD} = "DEFAULT";
  place(@streams) or exit 1;
  # Who cannot enter runs nothing: a box outside of its limits is worse than none.
  for my $entrance (splice(@words, 0, $count)) {
    my $file;
    open($file, ">", $entrance) && syswrite($file, "0") or refuse("cannot enter a control group: $!");
  }
  %ENV = (); # the box can read that of its first process
  exec { $words[0] } @words or refuse("cannot run $words[0]: $!");
}

sub refuse {
  syswrite(STDERR, "launcher: $_[0]\n");
  exit 1;
}

# Lowers a limit to at most these.
sub limit {
  my ($resource, $soft, $hard) = @_;
  my ($self, $none, $old) = (0, 0, "\0" x 16);
  return if syscall($NR{prlimit64}, $self, $resource, $none, $old) < 0;
  my ($old_soft, $old_hard) = unpack("Q Q", $old);
  my $new = pack("Q Q", $soft < $old_soft ? $soft : $old_soft, $hard < $old_hard ? $hard : $old_hard);
  syscall($NR{prlimit64}, $self, $resource, $new, $none);
}
