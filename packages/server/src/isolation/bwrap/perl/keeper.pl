# Process 1 of a box. It forks what the server orders and lives as long as the box.
#
#   r  [fields, status, then what becomes descriptors 0, 1, 2 … of the program]   runs a program
#      WORKDIR INPUT COUNT (RESOURCE VALUE)… COUNT NAME=VALUE… PROGRAM ARGUMENT…
#
#   t  [fields, status, a socket]   opens a terminal of the box and sends its master by the socket
#
# INPUT is "none", then the streams begin with descriptor 1; "pipe"; or "terminal", which becomes the program's own.
#
# Between the keeper and each program stands a waiter: a subreaper, so that whatever the program leaves behind becomes the
# waiter's child and can be told from what other programs left. It goes when nothing is left. The status says, line by line:
#
#   w WAITER        the waiter's process number
#   s MAIN          the program runs
#   f ERRNO STAGE   it does not and will not: fork, descriptors, terminal, directory, limits, program
#   x CODE          it ended;  k SIGNAL: by a signal
#
#   d               what was asked for is sent
#
# and ends with the waiter. All that is said here is the word of the box: the server believes it about this box alone.

my ($PR_SET_DUMPABLE, $PR_SET_CHILD_SUBREAPER, $TIOCSCTTY) = (4, 36, 0x540e);

$0 = "keeper";
close_from(4);
my ($cloexec, $set_flags) = (1, 2);
syscall($NR{fcntl}, $ORDERS, $set_flags, $cloexec);
control($PR_SET_DUMPABLE, 0); # the box's programs are of the same user: none of them shall look at us or hold our descriptors
$SIG{CHLD} = "IGNORE"; # what dies here needs no burial
syswrite(STDOUT, "ready\n");
open(STDIN, "<", "/dev/null");
open(STDOUT, ">", "/dev/null");
open(STDERR, ">", "/dev/null");

while (my ($letter, $payload, $status, @streams) = receive()) {
  if ($letter eq "r") { run($payload, $status, @streams) }
  elsif ($letter eq "t") { open_terminal($status, @streams) }
  forget($payload, $status, @streams);
}
exit 0;

sub run {
  my ($payload, $status, @streams) = @_;
  my $child = fork;
  if (!defined $child) { report($status, "f", $! + 0, "fork") }
  elsif ($child == 0) { stand_by($payload, $status, @streams) }
}

sub open_terminal {
  my ($status, $socket) = @_;
  my $terminal;
  my $is_sent = sysopen($terminal, "/dev/ptmx", 0402) && transmit($socket, fileno($terminal)); # O_RDWR, O_NOCTTY
  report($status, $is_sent ? "d" : ("f", $! + 0, "terminal"));
}

# The waiter. It keeps nothing of the program's.
sub stand_by {
  my ($payload, $status, @streams) = @_;
  $0 = "waiter";
  $SIG{CHLD} = "DEFAULT";
  $SIG{PIPE} = "IGNORE"; # a server that no longer listens is no reason to leave children alone
  control($PR_SET_CHILD_SUBREAPER, 1);
  report($status, "w", $$);
  my @fields = fields($payload);
  my ($reads, $writes);
  my $main = pipe($reads, $writes) ? fork : undef;
  if (!defined $main) {
    report($status, "f", $! + 0, "fork");
    exit 0;
  }
  if ($main == 0) {
    become($writes, \@fields, @streams);
    exit 127;
  }
  close($writes);
  forget($ORDERS, @streams);
  my $failure = "";
  1 while sysread($reads, $failure, 64, length $failure); # ends when the program has taken over
  close($reads);
  report($status, $failure eq "" ? ("s", $main) : ("f", $failure));
  while ((my $ended = waitpid(-1, 0)) > 0) {
    next if $ended != $main || $failure ne "";
    report($status, $? & 127 ? ("k", $? & 127) : ("x", $? >> 8));
  }
  exit 0;
}

# The program. What fails is said on the pipe that closes when all went well.
sub become {
  my ($writes, $fields, @streams) = @_;
  my ($workdir, $input) = splice(@$fields, 0, 2);
  $SIG{PIPE} = "DEFAULT";
  syscall($NR{setsid});
  my $nothing;
  if ($input eq "none") {
    open($nothing, "<", "/dev/null") or return syswrite($writes, ($! + 0) . " descriptors");
    unshift @streams, fileno($nothing);
  }
  place(@streams) or return syswrite($writes, ($! + 0) . " descriptors");
  if ($input eq "terminal") {
    my ($descriptor, $request, $none) = (0, $TIOCSCTTY, 0);
    syscall($NR{ioctl}, $descriptor, $request, $none) < 0 and return syswrite($writes, ($! + 0) . " terminal");
  }
  chdir($workdir) or return syswrite($writes, ($! + 0) . " directory");
  for (1 .. shift @$fields) {
    my ($resource, $value) = splice(@$fields, 0, 2);
    my ($self, $number, $none, $limit) = (0, $resource + 0, 0, pack("Q Q", $value, $value));
    syscall($NR{prlimit64}, $self, $number, $limit, $none) < 0 and return syswrite($writes, ($! + 0) . " limits");
  }
  my $count = shift @$fields;
  %ENV = map { split(/=/, $_, 2) } splice(@$fields, 0, $count);
  exec { $fields->[0] } @$fields or syswrite($writes, ($! + 0) . " program");
}

sub control {
  my ($option, $value, $none) = ($_[0] + 0, $_[1] + 0, 0);
  syscall($NR{prctl}, $option, $value, $none, $none, $none);
}
