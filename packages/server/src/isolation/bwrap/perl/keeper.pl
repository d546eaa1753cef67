# Process 1 of a box. It forks what the server orders and lives as long as the box.
#
#   r  [fields, status, then what becomes descriptors 0, 1, 2 … of the program]   runs a program
#      WORKDIR INPUT COUNT (RESOURCE VALUE)… COUNT NAME=VALUE… PROGRAM ARGUMENT…
#
#   s  [fields, a socket, then as for r]   the same, by a waiter that stays and takes further orders, of the letter r, by the socket
#
#   t  [fields, status, a socket]   opens a terminal of the box and sends its master by the socket
#
# INPUT is "none", then the streams begin with descriptor 1; "pipe"; or "terminal", which becomes the program's own.
#
# Between the keeper and each program stands a waiter: a subreaper, so that whatever the program leaves behind becomes the
# waiter's child and can be told from what other programs left. It goes when nothing is left, or is there for the next program, for
# making and ending one takes longer than most programs do. The status says, line by line:
#
#   w WAITER        the waiter's process number
#   s MAIN          the program runs
#   f ERRNO STAGE   it does not and will not, whatever is said of it after this: fork, descriptors, terminal, directory, limits, program
#   x CODE          it ended;  k SIGNAL: by a signal;  either with "last" when nothing of it is left
#
#   d               what was asked for is sent
#
# and ends when nothing of the program is left, or with the waiter. All that is said here is the word of the box: the server believes it about this box alone.

my ($PR_SET_DUMPABLE, $PR_SET_CHILD_SUBREAPER, $TIOCSCTTY) = (4, 36, 0x540e);
my ($CLONE_VFORK, $SIGCHLD, $WNOHANG) = (0x4000, 17, 1);

# Where this waiter is, if that is the root of a mount: a program that begins there need not go there, for which the file system would
# be asked whether it may. Nothing in the box can put another directory in its place.
my $here = "";

$0 = "keeper";
close_from(4);
my ($cloexec, $set_flags) = (1, 2);
syscall($NR{fcntl}, $ORDERS, $set_flags, $cloexec);
control($PR_SET_DUMPABLE, 0); # the box's programs are of the same user: none of them shall look at us or hold our descriptors
$SIG{CHLD} = "IGNORE"; # what dies here needs no burial
$SIG{PIPE} = "IGNORE"; # a server that no longer listens is no reason to leave children alone
$SIG{FPE} = "DEFAULT"; # perl ignores it, and so would the programs
syswrite(STDOUT, "ready\n");
open(STDIN, "<", "/dev/null");
open(STDOUT, ">", "/dev/null");
open(STDERR, ">", "/dev/null");

while (my ($letter, $payload, $status, @streams) = receive()) {
  if ($letter eq "r") { run(undef, $payload, $status, @streams) }
  elsif ($letter eq "s") { run($status, $payload, @streams) }
  elsif ($letter eq "t") { open_terminal($status, @streams) }
  forget($payload, $status, @streams);
}
exit 0;

sub run {
  my ($orders, $payload, $status, @streams) = @_;
  my $child = split_off($SIGCHLD);
  if ($child < 0) { report($status, "f", $! + 0, "fork") }
  elsif ($child == 0) { stand_by($orders, $payload, $status, @streams) }
}

sub open_terminal {
  my ($status, $socket) = @_;
  my $terminal;
  my $is_sent = sysopen($terminal, "/dev/ptmx", 0402) && transmit($socket, fileno($terminal)); # O_RDWR, O_NOCTTY
  report($status, $is_sent ? "d" : ("f", $! + 0, "terminal"));
}

# The waiter, with further orders or without. It keeps nothing of a program's.
sub stand_by {
  my ($orders, $payload, $status, @streams) = @_;
  $0 = "waiter";
  $SIG{CHLD} = "DEFAULT";
  control($PR_SET_CHILD_SUBREAPER, 1);
  if (defined $orders) {
    my ($from, $to, $flags) = ($orders + 0, $ORDERS, 02000000); # O_CLOEXEC
    syscall($NR{dup3}, $from, $to, $flags);
    forget($orders);
  }
  else { forget($ORDERS) }
  my $legacy = defined $orders && legacy();
  for (;;) {
    attend($payload, $status, @streams);
    leave(0) unless defined $orders;
    forget($status);
    (undef, $payload, $status, @streams) = receive() or leave(0);
    leave(0) if $legacy ne legacy(); # the order was not begun, and is given to another
  }
}

# What a program would have from this process that others of the same user can change of it: limits, priorities, its CPUs.
sub legacy {
  my ($self, $none, $process) = (0, 0, 1); # IOPRIO_WHO_PROCESS
  my ($attributes, $attributes_size, $cpus, $cpus_size) = ("\0" x 56, 56, "\0" x 128, 128);
  my $found = "";
  for my $resource (0 .. 15) {
    my ($number, $limit) = ($resource + 0, "\0" x 16);
    syscall($NR{prlimit64}, $self, $number, $none, $limit);
    $found .= $limit;
  }
  syscall($NR{sched_getattr}, $self, $attributes, $attributes_size, $none);
  syscall($NR{sched_getaffinity}, $self, $cpus_size, $cpus);
  return $found . $attributes . $cpus . syscall($NR{ioprio_get}, $process, $self);
}

# One program, until nothing of it is left.
sub attend {
  my ($payload, $status, @streams) = @_;
  report($status, "w", $$);
  my $known = is_still_there() ? $here : "";
  # The kernel lets us go on when the program has taken over, or has ended without that.
  my $main = split_off($CLONE_VFORK | $SIGCHLD);
  if ($main < 0) {
    report($status, "f", $! + 0, "fork");
    leave(0);
  }
  if ($main == 0) {
    report($status, "f", become($known, $payload, @streams));
    leave(127);
  }
  forget(@streams);
  report($status, "s", $main);
  my $workdir = first_field($payload);
  forget($payload);
  while ((my $ended = waitpid(-1, 0)) > 0) {
    next if $ended != $main;
    my @end = $? & 127 ? ("k", $? & 127) : ("x", $? >> 8);
    my $next;
    do { $next = waitpid(-1, $WNOHANG) } while ($next > 0);
    report($status, @end, $next < 0 ? "last" : ()); # the last one: nothing is left to wait for
  }
  stay_at($workdir) if $workdir ne $known;
}

sub is_still_there {
  return $here ne "" && same([stat($here)], [stat(".")]);
}

# Goes to the directory in which the next program is likely to begin, too.
sub stay_at {
  my ($directory) = @_;
  my @root = stat($directory);
  my @above = stat("$directory/..");
  return unless @root && @above && $root[0] != $above[0];
  $here = chdir($directory) ? $directory : "";
}

sub same {
  my ($one, $other) = @_;
  return @$one && @$other && $one->[0] == $other->[0] && $one->[1] == $other->[1];
}

# The program. What it returns is why it is none: an error and the step that failed.
sub become {
  my ($known, $payload, @streams) = @_;
  my ($workdir, $input, @fields) = fields($payload);
  $SIG{PIPE} = "DEFAULT";
  syscall($NR{setsid});
  if ($input eq "none") {
    my ($here, $path, $read_only) = (-100, "/dev/null", 02000000); # AT_FDCWD, O_CLOEXEC
    my $nothing = syscall($NR{openat}, $here, $path, $read_only);
    return ($! + 0, "descriptors") if $nothing < 0;
    unshift @streams, $nothing;
  }
  place(@streams) or return ($! + 0, "descriptors");
  if ($input eq "terminal") {
    my ($descriptor, $request, $none) = (0, $TIOCSCTTY, 0);
    return ($! + 0, "terminal") if syscall($NR{ioctl}, $descriptor, $request, $none) < 0;
  }
  $workdir eq $known or chdir($workdir) or return ($! + 0, "directory");
  for (1 .. shift @fields) {
    my ($resource, $value) = splice(@fields, 0, 2);
    my ($self, $number, $none, $limit) = (0, $resource + 0, 0, pack("Q Q", $value, $value));
    return ($! + 0, "limits") if syscall($NR{prlimit64}, $self, $number, $limit, $none) < 0;
  }
  my $count = shift @fields;
  my @environment = splice(@fields, 0, $count);
  # Without perl's exec and its %ENV, which would set each variable by itself.
  my ($program, $arguments, $variables) = ($fields[0], addresses(\@fields), addresses(\@environment));
  syscall($NR{execve}, $program, $arguments, $variables);
  return ($! + 0, "program");
}

# A fork, without what perl's does besides.
sub split_off {
  my ($flags, $none) = ($_[0] + 0, 0);
  return syscall($NR{clone}, $flags, $none, $none, $none, $none);
}

# Of strings, as the kernel takes them; ended by none.
sub addresses {
  return pack("(P)*", @{$_[0]}) . pack("J", 0);
}

# At once: perl would take itself apart first, and the memory that it touches is not this process's own yet.
sub leave {
  my $code = $_[0] + 0;
  syscall($NR{exit_group}, $code);
}

sub control {
  my ($option, $value, $none) = ($_[0] + 0, $_[1] + 0, 0);
  syscall($NR{prctl}, $option, $value, $none, $none, $none);
}
