# Starts the boxes of a server, so that the server does not fork itself for every one: a fork of a large process takes tens of
# milliseconds, one of this takes one. It holds nothing of the server's.
#
#   l  [fields, then what becomes descriptors 0, 1, 2 … of the program]   starts a program
#      COUNT ENTRANCE… USER GROUP PROGRAM ARGUMENT…
#      The entrances are files of control groups, entered in this order; the first may be cgroup.procs of a group of version 2, in
#      which the process is then born. USER and GROUP, unless empty, are who it becomes.
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
  my ($count, @words) = fields($payload);
  my @entrances = splice(@words, 0, $count);
  my $child = born_in($entrances[0]);
  if (defined $child) { shift @entrances }
  else { $child = fork }
  launch(\@entrances, \@words, @streams) if defined $child && $child == 0;
  forget(@streams); # without a process the server sees the end of what it listens to
}

# The server is gone. A box that is set up dies with its bwrap, and that with this process; one that is being set up needs a
# moment until that is arranged.
select(undef, undef, undef, 0.2);
kill "KILL", 0;

# A fork whose child is a member of a control group of version 2 from its first moment. Moving a process there has the kernel wait
# for all CPUs, ten milliseconds as a rule. Nothing where that cannot be had, as behind a filter that hides clone3, or in a group whose
# members were killed before: some kernels kill who is born there, so the child says that it lives.
sub born_in {
  my ($group) = ($_[0] // "") =~ m{^(.*)/cgroup\.procs$} or return;
  my ($directory, $into_cgroup, $end_signal) = (undef, 1 << 33, 17);
  sysopen($directory, $group, 0) && pipe(my $hears, my $tells) or return;
  my $arguments = pack("Q11", $into_cgroup, 0, 0, 0, $end_signal, 0, 0, 0, 0, 0, fileno($directory));
  my $child = syscall($NR{clone3}, $arguments, length $arguments);
  return if $child < 0;
  return $child if $child == 0 && syswrite($tells, "born");
  close($tells);
  return sysread($hears, my $word, 1) ? $child : undef;
}

sub launch {
  my ($entrances, $words, @streams) = @_;
  $SIG{CHLD} = "DEFAULT";
  place(@streams) or exit 1;
  close_from(@streams < 3 ? 3 : scalar @streams); # the socket of the orders, where nothing took its place
  # Who cannot enter, or not become who it shall be, runs nothing: a box outside of its limits is worse than none.
  for my $entrance (@$entrances) {
    my $file;
    open($file, ">", $entrance) && syswrite($file, "0") or refuse("cannot enter a control group: $!");
  }
  my ($user, $group) = splice(@$words, 0, 2);
  become($user + 0, $group + 0) or refuse("cannot become another user: $!") if $user ne "";
  %ENV = (); # the box can read that of its first process
  exec { $words->[0] } @$words or refuse("cannot run $words->[0]: $!");
}

# Becomes somebody who has nothing of the server's: no groups, no capabilities, and none to be had from any program.
sub become {
  my ($user, $group) = @_;
  my ($drop, $none, $capability) = (24, 0, 0); # PR_CAPBSET_DROP
  $capability++ while syscall($NR{prctl}, $drop, $capability, $none, $none, $none) == 0;
  return 0 if $! != 22; # EINVAL: that was the last there is
  my ($version_and_self, $no_capabilities) = (pack("L l", 0x20080522, 0), "\0" x 24);
  return syscall($NR{setgroups}, $none, $none) == 0
    && syscall($NR{setresgid}, $group, $group, $group) == 0
    && syscall($NR{setresuid}, $user, $user, $user) == 0
    && syscall($NR{capset}, $version_and_self, $no_capabilities) == 0;
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
